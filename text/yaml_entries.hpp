// YAML entries: a configuration file as written, each key with its line.
//
// Unlike in a manifest, scalars stay text (`10s`, `8` and `true` as typed), and the code that knows
// the key interprets them. A repeated key appears twice.
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

// The entries of a single document, in order; empty for an empty text. `invalid`, with line and
// column: not YAML, several documents, not a map, nested too deep, or a key or list item that is
// not a scalar.
Result<std::vector<YamlEntry>> yaml_entries(const std::string& text);

}  // namespace muster
