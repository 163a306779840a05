// Options of muster top.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct TopOptions {
  Target target;
  Kind kind = Kind::node;  // node or job
  bool all_namespaces = false;
  bool headers = true;
};

int execute(const TopOptions& options);

}  // namespace muster::cli
