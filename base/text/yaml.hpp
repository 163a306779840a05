// YAML: converts YAML to JSON text as kubectl does: several documents, YAML 1.1 scalars, merge
// keys.
//
// Each document is read separately, so an error in one does not hide the next.
//
// Unquoted true, yes, on, null, 7, 0x1f, 1.5 are typed; quoted ones stay strings. Repeated keys are
// kept, so that strict decoding can report them. A single document that begins with `{` is JSON and
// is returned unchanged.
#pragma once

#include "base/result.hpp"
#include "base/text/text_place.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Aliases expand to everything they refer to, and merge keys visit all of it, so a small text can
// cause huge output, or endless work without any. Both are bounded.
struct YamlLimits {
  size_t json_bytes = 4u << 20;  // of all documents; more than any API server accepts
  size_t visits = 1'000'000;     // of nodes; once for each alias that leads there
};

struct YamlDocument {
  std::string json;
  std::string problem;  // why it cannot be read; empty if it can
  TextPlace place;      // of the problem, or where the document begins
  // Where to find its fields (yaml_fields.hpp): the document's number within `source`, the part of
  // the text that begins at `first_line`.
  std::shared_ptr<const std::string> source{};
  size_t first_line = 1, number = 0;
};

// The documents of a text, in order; empty ones are skipped. A malformed part between `---` lines
// is one document with a problem. Past json_bytes, the last document has the problem and the rest
// is left out.
std::vector<YamlDocument> yaml_documents(const std::string& text, const YamlLimits& limits = {});

// One JSON text per document, or the first problem, which begins with its place.
Result<std::vector<std::string>> yaml_to_json(const std::string& text,
                                              const YamlLimits& limits = {});

// Parsing YAML takes about 3 µs per token, twenty times as long as JSON. A text that would stall a
// server is recognized by its length and by the number of characters that may begin a token.
constexpr size_t kYamlBodyMax = 64u << 10;  // bytes
constexpr size_t kYamlTokensMax = 6'000;
// Whether the text is a JSON object and not the first of several documents.
bool is_json_object(std::string_view text);
Status check_yaml_body(std::string_view text);

}  // namespace muster
