// Options of muster cancel.
#pragma once

#include "cli/verbs/verb.hpp"

#include <string>
#include <vector>

namespace muster::cli {

struct CancelOptions {
  Target target;
  std::vector<std::string> names;
  std::string index, task;  // sets; both empty: the whole jobs
};
int execute(const CancelOptions& options);

}  // namespace muster::cli
