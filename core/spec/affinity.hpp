// Affinity: which nodes the pods of a job must have, and which they prefer (v1 NodeAffinity).
#pragma once

#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <cstdint>
#include <string>

namespace muster::core {

// Whether a node with this name and these labels is one that the pods may have.
bool is_required(const NodeAffinity& affinity, const std::string& node, const StringMap& labels);
// The sum of the weights of what it has of the preferences.
int64_t preference(const NodeAffinity& affinity, const std::string& node, const StringMap& labels);

void validate_node_affinity(const std::string& path, const NodeAffinity& affinity,
                            Violations& found);

}  // namespace muster::core
