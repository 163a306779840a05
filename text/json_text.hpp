// JSON text -> value, with the repeated keys named: a parser that keeps quiet about them loses what
// was written.
//
// Of a repeated key the last value counts. Nesting is bounded, so that walking a value never
// exhausts the stack; so is the number of values, since each costs memory and time at every step
// that follows (docs/decisions/0011-bounded-requests.md).
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
constexpr size_t kDuplicatesMax = 100;  // repeated or unknown fields that are named

struct JsonLimits {
  size_t members, values;  // of objects; of all kinds
  size_t depth = kJsonDepthMax;
};
// A JSON patch of 10,000 operations has 30,000 members.
constexpr JsonLimits kRequestLimits{32'000, 160'000};
constexpr JsonLimits kNoLimits{SIZE_MAX, SIZE_MAX, 1000};  // for text that is ours

struct JsonText {
  nlohmann::json value;
  std::vector<std::string> duplicates;  // paths: "spec.parallelism", "spec.containers[0].name"
};

Result<JsonText> parse_json(std::string_view text, const JsonLimits& limits = kRequestLimits);

// How deep objects and lists of a JSON text nest, and how many members the objects have.
struct JsonShape {
  size_t depth = 0, members = 0;
};
JsonShape json_shape(std::string_view text);

// "spec" + "foo" -> "spec.foo"; a path that is empty adds no dot.
std::string join_path(const std::string& path, std::string_view name);

}  // namespace muster
