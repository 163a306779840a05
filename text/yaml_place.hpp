// The place of something in a YAML text, for messages. Used inside text/ only.
#pragma once

#include <string>
#include <yaml-cpp/mark.h>

namespace muster {

// "line 3, column 7: "; empty if the place is unknown.
inline std::string place(const YAML::Mark& mark) {
  if (mark.is_null()) return "";
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1) +
         ": ";
}

}  // namespace muster
