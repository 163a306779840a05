// YAML entries: a configuration file as it was written, each key with its line.
//
// Unlike a manifest's, scalars stay text: `10s`, `8` and `true` are what was typed, and whoever
// knows the key judges them. A repeated key is there twice.
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

namespace muster {

struct YamlEntry {
  enum class Shape { scalar, list, map, empty };
  std::string key;
  int line = 0;  // counted from 1
  Shape shape = Shape::scalar;
  std::vector<std::string> values;  // of a scalar: one; of a list: its scalars
  std::vector<YamlEntry> below;     // of a map
};

// The entries of the one document, in their order; none of an empty text. invalid, with line and
// column: no YAML, not a map, a key or a list's value that is no scalar.
Result<std::vector<YamlEntry>> yaml_entries(const std::string& text);

}  // namespace muster
