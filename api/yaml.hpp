// YAML -> JSON text, as kubectl reads it: several documents, YAML 1.1 scalars, merge keys.
//
// Unquoted true, yes, on, null, 7, 0x1f, 1.5 are typed; quoted text stays text. A repeated key is
// kept, so that strict decoding can name it. A text that begins with `{` is JSON and goes through
// as it is.
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

namespace muster::api {

// One JSON text a document; empty documents are left out. Errors say line and column, counted
// from 1.
Result<std::vector<std::string>> yaml_to_json(const std::string& text);

}  // namespace muster::api
