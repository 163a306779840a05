// Options of muster wait.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct WaitOptions {
  Target target;
  std::vector<std::string> jobs;
  KnownObject known{};    // of the only job, if this process has created it
  bool deleted = false;   // wait until it is gone
  std::string condition;  // empty: Complete or Failed
  bool condition_value = true;
  std::optional<Millis> timeout_ms;
};

int execute(const WaitOptions& options);

}  // namespace muster::cli
