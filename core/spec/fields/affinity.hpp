// Affinity: which nodes a job's pods require, and which they prefer (v1 NodeAffinity).
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <cstdint>
#include <string>

namespace muster::core {

// Whether a node with this name and these labels is acceptable to the pods.
bool is_required(const NodeAffinity& affinity, const std::string& node, const StringMap& labels);
// The sum of the weights of the preferences that the node satisfies.
int64_t preference(const NodeAffinity& affinity, const std::string& node, const StringMap& labels);

void validate_node_affinity(const std::string& path, const NodeAffinity& affinity,
                            Violations& found);

}  // namespace muster::core
