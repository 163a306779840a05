// JSON text: parses JSON and reports duplicate keys. A parser that silently drops them loses what
// the user wrote.
//
// The last value of a repeated key wins. Nesting is bounded so that walking a value can't exhaust
// the stack, and the number of values because each costs memory and time in every later step
// (docs/decisions/0011-bounded-requests.md).
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

constexpr size_t kJsonDepthMax = 128;
constexpr size_t kDuplicatesMax = 100;  // duplicate or unknown fields reported

struct JsonLimits {
  size_t members, values;  // members of all objects; values of any type
  size_t depth = kJsonDepthMax;
};
// A JSON patch of 10,000 operations has 30,000 members.
constexpr JsonLimits kRequestLimits{32'000, 160'000};
constexpr JsonLimits kNoLimits{SIZE_MAX, SIZE_MAX, 1000};  // for text that muster wrote

struct JsonText {
  nlohmann::json value;
  std::vector<std::string> duplicates;  // paths: "spec.parallelism", "spec.containers[0].name"
};

Result<JsonText> parse_json(std::string_view text, const JsonLimits& limits = kRequestLimits);

// The nesting depth of a JSON text, and the number of members in its objects.
struct JsonShape {
  size_t depth = 0, members = 0;
};
JsonShape json_shape(std::string_view text);

// "spec" + "foo" -> "spec.foo"; an empty path adds no dot.
std::string join_path(const std::string& path, std::string_view name);

}  // namespace muster
