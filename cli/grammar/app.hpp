// App: turns the command line and the configuration into a call of a verb. The only user of CLI11.
#pragma once

#include "cli/verbs/verb.hpp"
#include "client/settings/config.hpp"

#include <optional>

namespace muster::cli {

struct Parsed {
  // Nothing: help or a usage error was printed; exit with exit_code.
  std::optional<Call> call;
  int exit_code = 0;
};

Parsed parse(int argc, const char* const* argv, const Config& config = {});

}  // namespace muster::cli
