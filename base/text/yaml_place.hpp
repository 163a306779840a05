// Positions in a YAML text, for messages. Used only inside base/text/.
#pragma once

#include "base/text/text_place.hpp"

#include <string>
#include <yaml-cpp/mark.h>

namespace muster {

// The place of a mark in a text that begins at `first_line`; the beginning of the text if unknown.
inline TextPlace text_place(const YAML::Mark& mark, size_t first_line = 1) {
  if (mark.is_null()) return {first_line, 1};
  return {first_line + static_cast<size_t>(mark.line), static_cast<size_t>(mark.column) + 1};
}

// "line 3, column 7: "
inline std::string place_text(const TextPlace& place) {
  return "line " + std::to_string(place.line) + ", column " + std::to_string(place.column) + ": ";
}

// The same for a mark; empty if the mark is unknown.
inline std::string place(const YAML::Mark& mark) {
  return mark.is_null() ? "" : place_text(text_place(mark));
}

}  // namespace muster
