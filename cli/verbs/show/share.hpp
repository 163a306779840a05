// Options of muster share.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct ShareOptions {
  Target target;
  bool headers = true;
};

int execute(const ShareOptions& options);

}  // namespace muster::cli
