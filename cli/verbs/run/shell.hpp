// muster shell: options and what `muster run --pty` shares with it.
#pragma once

#include "cli/verbs/run/run_options.hpp"

namespace muster::cli {

struct ShellOptions {
  RunOptions run;  // its command is what runs on the terminal; empty: the user's shell
};
int execute(const ShellOptions& options);

}  // namespace muster::cli
