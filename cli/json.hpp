// Reading JSON that others wrote, without surprises: what is missing or of another type is empty or
// 0.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace muster::cli {

using Json = nlohmann::json;

// Discarded (is_discarded()) when the text is no JSON.
Json parse_json(std::string_view text);

// The value below these keys; null when one of them is missing.
const Json& at(const Json& json, std::initializer_list<const char*> keys);
std::string text_at(const Json& json, std::initializer_list<const char*> keys);
int64_t number_at(const Json& json, std::initializer_list<const char*> keys, int64_t otherwise = 0);

// A condition of this type whose status is "True"; null when there is none.
const Json& condition_of(const Json& object, std::string_view type);

// As YAML, keys in order, as kubectl prints it.
std::string to_yaml(const Json& json);

// As JSON text; bytes that are no UTF-8 become U+FFFD. indent -1: one line.
std::string dumped(const Json& json, int indent = -1);

}  // namespace muster::cli
