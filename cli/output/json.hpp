// Reading JSON that others wrote, without surprises: what is missing or of another type is empty or
// 0.
#pragma once

#include "text/json.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace muster::cli {

// Discarded (is_discarded()) when the text is no JSON.
Json read_json(std::string_view text);

// The value below these keys; null when one of them is missing.
const Json& at(const Json& json, std::initializer_list<const char*> keys);
std::string text_at(const Json& json, std::initializer_list<const char*> keys);
int64_t number_at(const Json& json, std::initializer_list<const char*> keys, int64_t otherwise = 0);

// A condition of this type whose status is "True"; null when there is none.
const Json& condition_of(const Json& object, std::string_view type);

// Removes what there is of these members; nothing when it is no object.
void erase_members(Json& object, std::initializer_list<const char*> names);

// As YAML, keys in order, as kubectl prints it.
std::string to_yaml(const Json& json);

}  // namespace muster::cli
