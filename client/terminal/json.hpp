// Lenient access to foreign JSON, where a missing value or one of another type reads as null, "" or
// 0; and YAML output.
#pragma once

#include "base/text/json.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace muster::cli {

// Discarded (is_discarded()) if the text is not JSON.
Json read_json(std::string_view text);

// The value at this path of keys; null if a key is missing.
const Json& at(const Json& json, std::initializer_list<const char*> keys);
std::string text_at(const Json& json, std::initializer_list<const char*> keys);
int64_t number_at(const Json& json, std::initializer_list<const char*> keys, int64_t otherwise = 0);

// The condition of this type whose status is "True"; null if there is none.
const Json& condition_of(const Json& object, std::string_view type);

// Removes these members if they exist; does nothing if `object` is not an object.
void erase_members(Json& object, std::initializer_list<const char*> names);

// As YAML, keys in order, like kubectl.
std::string to_yaml(const Json& json);

}  // namespace muster::cli
