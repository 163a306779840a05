// Where in a YAML text something stands, for messages. Inside text/ only.
#pragma once

#include <string>
#include <yaml-cpp/mark.h>

namespace muster {

// "line 3, column 7: "; empty when the place is not known.
inline std::string place(const YAML::Mark& mark) {
  if (mark.is_null()) return "";
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1) +
         ": ";
}

}  // namespace muster
