// App: words of the command line and the configuration -> Options.
#pragma once

#include "cli/settings/config.hpp"
#include "cli/settings/options.hpp"

#include <optional>

namespace muster::cli {

struct Parsed {
  std::optional<Options>
      options;  // nothing: all was said already (help, wrong usage), leave with exit_code
  int exit_code = 0;
};

Parsed parse(int argc, const char* const* argv, const Config& config = {});

}  // namespace muster::cli
