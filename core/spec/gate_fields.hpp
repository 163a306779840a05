// What a feature gate that is off does to a manifest: its fields are dropped, as a Kubernetes that
// does not know them would. A job that has a field keeps it: only new uses are dropped.
#pragma once

#include "core/spec/gates.hpp"
#include "core/spec/job_spec.hpp"

#include <string>
#include <vector>

namespace muster::core {

// Stands for the rules of the pod failure policy whose action is FailIndex.
inline constexpr const char* kFailIndexRules = "podFailurePolicy.rules[FailIndex]";

// Drops them from `spec`; `old` is the job before an update, or nullptr. Returns the names of the
// fields of spec that were dropped ("backoffLimitPerIndex"), so that the text can follow.
std::vector<std::string> drop_gated(const Gates& gates, JobSpec& spec, const JobSpec* old);

}  // namespace muster::core
