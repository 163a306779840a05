// The pod failure policy (job-semantics 6): which rule a failed pod matches.
#pragma once

#include "core/job/job.hpp"
#include "core/spec/gates.hpp"

#include <string>

namespace muster::core {

struct PolicyMatch {
  FailureAction action = FailureAction::none;  // none: no rule matches; the failure counts
  std::string message;                         // of FailJob (6.4)
};

// Of this pod with the state that it has now. The first rule that matches decides; FailIndex rules
// are passed over while there are no limits per index.
PolicyMatch match_failure(const Job& job, const Pod& pod, const Gates& gates);

}  // namespace muster::core
