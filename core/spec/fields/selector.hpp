// Labels, annotations and label selectors: validation and matching.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <string>

namespace muster::core {

// An empty selector matches everything; a requirement with an unknown operator matches nothing.
bool matches(const LabelSelector& selector, const StringMap& labels);

void validate_labels(const std::string& path, const StringMap& labels, Violations& found);
// Keys must be qualified names; the total size of keys and values is bounded as in Kubernetes.
void validate_annotation_map(const std::string& path, const StringMap& annotations,
                             Violations& found);
void validate_selector(const std::string& path, const LabelSelector& selector, Violations& found);

}  // namespace muster::core
