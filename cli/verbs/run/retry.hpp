// Options of muster retry.
#pragma once

#include "cli/verbs/verb.hpp"
#include "client/inputs/wishes.hpp"

namespace muster::cli {

struct RetryOptions {
  Target target;
  std::string job;
  RetryWishes wishes;
  bool wait = false;
  bool dependents = false;  // also the jobs that failed because this one did
  std::string data_dir;     // of an embedded run; empty: on the coordinator
  int slots = 0;            // with data_dir; 0: as in that run
};

int execute(const RetryOptions& options);

}  // namespace muster::cli
