// Label selectors: does it match, and is it well formed.
#pragma once

#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <string>

namespace muster::core {

// An empty selector matches everything; a requirement with an unknown operator nothing.
bool matches(const LabelSelector& selector, const StringMap& labels);

void validate_labels(const std::string& path, const StringMap& labels, Violations& found);
void validate_selector(const std::string& path, const LabelSelector& selector, Violations& found);

}  // namespace muster::core
