#include "client/terminal/color.hpp"

#include <cstdlib>
#include <unistd.h>

namespace muster::cli {
namespace {

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

}  // namespace

When parse_when(std::string_view word) {
  if (word == "always") return When::always;
  if (word == "never") return When::never;
  return When::automatic;
}

bool is_terminal(int fd) {
  return isatty(fd) == 1 && variable("TERM") != "dumb";
}

Paint::Paint(When when, int fd)
    : on_(when == When::always ||
          (when == When::automatic && is_terminal(fd) && variable("NO_COLOR").empty())) {}

std::string Paint::in(const char* code, std::string_view text) const {
  if (!on_ || text.empty()) return std::string(text);
  return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

}  // namespace muster::cli
