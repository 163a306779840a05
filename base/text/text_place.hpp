// A position in a text: line and column, counted from 1.
#pragma once

#include <compare>
#include <cstddef>

namespace muster {

struct TextPlace {
  size_t line = 1, column = 1;
  auto operator<=>(const TextPlace&) const = default;
};

}  // namespace muster
