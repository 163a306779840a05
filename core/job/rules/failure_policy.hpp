// The pod failure policy (job-semantics 6): which rule a failed pod matches.
#pragma once

#include "core/job/fold/job.hpp"
#include "core/spec/values/gates.hpp"

#include <string>

namespace muster::core {

struct PolicyMatch {
  FailureAction action = FailureAction::none;  // none: no rule matches; the failure counts
  std::string message;                         // of FailJob (6.4)
  // A disruption that would have been ignored, had not as many of the index been ignored before as
  // muster.dev/disruptions-max allows.
  bool capped = false;
};

// Matches the pod in its current state. The first matching rule decides; FailIndex rules are
// skipped while the gate of backoffLimitPerIndex is off.
// An Ignore rule counts a disruption of an index that has had its maximum of them.
PolicyMatch match_failure(const Job& job, const Pod& pod, const Gates& gates);

}  // namespace muster::core
