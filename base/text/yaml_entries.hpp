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
  std::vector<std::string> values;  // one for a scalar; the items of a list
  std::vector<YamlEntry> below;     // of a map
};

// The entries of a single document, in order; empty for an empty text. `invalid`, with line and
// column, if the text is not YAML, has several documents, is not a map or is nested too deep, or if
// a key or list item is not a scalar.
Result<std::vector<YamlEntry>> yaml_entries(const std::string& text);

}  // namespace muster
