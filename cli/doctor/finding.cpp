#include "cli/doctor/finding.hpp"

#include <array>
#include <cstdio>

namespace muster::cli::doctor {

const char* name_of(Level level) {
  switch (level) {
    case Level::ok:
      return "ok";
    case Level::unknown:
      return "unknown";
    case Level::warning:
      return "warning";
    case Level::problem:
      return "problem";
  }
  return "";
}

std::string size_text(uint64_t bytes) {
  std::array<char, 48> text{};
  const auto in = [&text, bytes](int shift, const char* unit) {
    const double size = static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << shift);
    std::snprintf(text.data(), text.size(), size < 10 ? "%.1f %s" : "%.0f %s", size, unit);
  };
  if (bytes >= uint64_t{1} << 40)
    in(40, "TiB");
  else if (bytes >= 1u << 30)
    in(30, "GiB");
  else if (bytes >= 1u << 20)
    in(20, "MiB");
  else if (bytes >= 1u << 10)
    in(10, "KiB");
  else
    return std::to_string(bytes) + " bytes";
  return text.data();
}

std::string micros_text(uint64_t micros) {
  std::array<char, 48> text{};
  if (micros >= 1'000'000)
    std::snprintf(text.data(), text.size(), "%.2f s", static_cast<double>(micros) / 1e6);
  else
    std::snprintf(text.data(), text.size(), micros < 10'000 ? "%.1f ms" : "%.0f ms",
                  static_cast<double>(micros) / 1e3);
  return text.data();
}

}  // namespace muster::cli::doctor
