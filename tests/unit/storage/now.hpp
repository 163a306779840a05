// kNow: the current time in the storage tests.
#pragma once

#include "base/clock.hpp"

namespace muster::storage {

inline constexpr Millis kNow = 1'790'000'000'000;

}  // namespace muster::storage
