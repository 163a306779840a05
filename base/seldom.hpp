// Seldom: rate limit for a repeated log line. Lets the first one through, then at most one every
// ten seconds, with the number suppressed since.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

class Seldom {
 public:
  static constexpr Millis kEachMs = 10'000;

  // The suffix for the line, such as " (and 17 more since the last such line)"; nullopt: suppress
  // it.
  std::optional<std::string> due(Millis now) {
    if (said_ && now - said_at_ < kEachMs) {
      ++unsaid_;
      return std::nullopt;
    }
    std::string more;
    if (unsaid_ > 0) more = " (and " + std::to_string(unsaid_) + " more since the last such line)";
    said_ = true;
    said_at_ = now;
    unsaid_ = 0;
    return more;
  }

 private:
  bool said_ = false;
  Millis said_at_ = 0;
  uint64_t unsaid_ = 0;
};

}  // namespace muster
