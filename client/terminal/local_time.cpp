#include "client/terminal/local_time.hpp"

#include <array>
#include <ctime>

namespace muster::cli {

std::string local_text(Millis at_ms) {
  const std::time_t at = at_ms / 1000;
  std::tm parts{};
  ::localtime_r(&at, &parts);
  std::array<char, 40> text;
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S%z", &parts);
  std::string out(text.data(), size);
  if (out.size() > 2) out.insert(out.size() - 2, ":");  // of the zone: +0100
  return out;
}

}  // namespace muster::cli
