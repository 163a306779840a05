// The pod failure policy (job-semantics 6): which rule a failed pod matches.
#pragma once

#include "core/job/job.hpp"

#include <string>

namespace muster::core {

struct PolicyMatch {
  FailureAction action = FailureAction::none;  // none: no rule matches; the failure counts
  std::string message;                         // of FailJob (6.4)
};

// Of this pod with the state that it has now. The first rule that matches decides.
PolicyMatch match_failure(const Job& job, const Pod& pod);

}  // namespace muster::core
