// App: words of the command line -> Options. The only file that includes the parser.
#pragma once

#include "cli/options.hpp"

#include <optional>

namespace muster::cli {

struct Parsed {
  std::optional<Options>
      options;  // nothing: all was said already (help, wrong usage), leave with exit_code
  int exit_code = 0;
};

Parsed parse(int argc, const char* const* argv);

}  // namespace muster::cli
