// Drops the fields of disabled feature gates from a manifest, as Kubernetes does. A job that
// already has such a field keeps it: only new uses are dropped.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/gates.hpp"

#include <string>
#include <vector>

namespace muster::core {

// Stands for the rules of the pod failure policy whose action is FailIndex.
inline constexpr const char* kFailIndexRules = "podFailurePolicy.rules[FailIndex]";

// Drops these fields from `spec`; `old` is the job before an update, or nullptr. Returns the names
// of the dropped fields ("backoffLimitPerIndex"), so that the JSON text can be changed to match.
std::vector<std::string> drop_gated(const Gates& gates, JobSpec& spec, const JobSpec* old);

}  // namespace muster::core
