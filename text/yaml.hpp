// YAML -> JSON text, as kubectl reads it: several documents, YAML 1.1 scalars, merge keys.
//
// Unquoted true, yes, on, null, 7, 0x1f, 1.5 are typed; quoted text stays text. A repeated key is
// kept, so that strict decoding can name it. A text that begins with `{` is JSON and goes through
// as it is.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// An alias stands for all that it names, and a merge key looks at all of it: a small text can ask
// for a huge one, or for endless work that writes nothing. Both are bounded.
struct YamlLimits {
  size_t json_bytes = 4u << 20;  // of all documents, more than any API server takes
  size_t visits = 1'000'000;     // of nodes, once for each alias that leads there
};

// One JSON text a document; empty documents are left out. Errors say line and column, counted
// from 1.
Result<std::vector<std::string>> yaml_to_json(const std::string& text,
                                              const YamlLimits& limits = {});

// Reading YAML takes some 3 µs a token, twenty times what JSON takes: a text that would hold up a
// server is told by its length and by the characters that may begin a token.
constexpr size_t kYamlBodyMax = 64u << 10;  // bytes
constexpr size_t kYamlTokensMax = 6'000;
// A JSON object, unless it is the first of several documents.
bool is_json_object(std::string_view text);
Status check_yaml_body(std::string_view text);

}  // namespace muster
