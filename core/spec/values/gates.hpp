// Gates: features that an operator can turn off (`--feature-gates Name=false,…`) for a gradual
// rollout. All are on by default.
//
// Admission reads them (a field whose gate is off is dropped from a new job, but stays in a job
// that has it), and so does decide(), but never apply(), so records fold the same under any
// setting.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace muster::core {

struct Gates {
  bool backoff_limit_per_index = true;  // JobBackoffLimitPerIndex
  bool success_policy = true;           // JobSuccessPolicy
  bool elastic_indexed = true;          // ElasticIndexedJob
  bool pod_failure_policy = true;       // JobPodFailurePolicy
  bool pod_replacement_policy = true;   // JobPodReplacementPolicy
  bool managed_by = true;               // JobManagedBy
  bool operator==(const Gates&) const = default;
};

// Applies "JobSuccessPolicy=false,ElasticIndexedJob=true" to `gates`. An unknown name or a value
// other than true and false is `invalid`; the error names it and what would be right.
Result<Gates> parse_gates(std::string_view text, Gates gates = {});

}  // namespace muster::core
