// App: turns the command line and the configuration into Options.
#pragma once

#include "cli/verbs/options.hpp"
#include "client/settings/config.hpp"

#include <optional>

namespace muster::cli {

struct Parsed {
  // Nothing: help or a usage error was printed; exit with exit_code.
  std::optional<Options> options;
  int exit_code = 0;
};

Parsed parse(int argc, const char* const* argv, const Config& config = {});

}  // namespace muster::cli
