// Options of muster dev.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

// A local cluster, for as long as the command runs.
struct DevOptions {
  uint32_t nodes = 3;
  uint32_t slots = 4;    // of each node
  std::string data_dir;  // absolute; empty: a temporary one
  std::string api = "127.0.0.1:0";
  std::vector<std::string> command;  // run it there, then end; empty: run until Ctrl-C
};

int execute(const DevOptions& options);

}  // namespace muster::cli
