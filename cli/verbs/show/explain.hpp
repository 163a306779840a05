// Options of muster explain.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct ExplainOptions {
  Target target;
  Kind kind = Kind::job;
  std::vector<std::string> path;  // fields, from the object down
  bool recursive = false;
};

int execute(const ExplainOptions& options);

}  // namespace muster::cli
