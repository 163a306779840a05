// JSON text -> value, with the repeated keys named: a parser that keeps quiet about them loses what
// was written.
//
// Of a repeated key the last value counts. Nesting is bounded, so that walking a value never
// exhausts the stack.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

constexpr size_t kJsonDepthMax = 128;

struct JsonText {
  nlohmann::json value;
  std::vector<std::string> duplicates;  // paths: "spec.parallelism", "spec.containers[0].name"
};

Result<JsonText> parse_json(std::string_view text);

// "spec" + "foo" -> "spec.foo"; a path that is empty adds no dot.
std::string join_path(const std::string& path, std::string_view name);

}  // namespace muster::api
