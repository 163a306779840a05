// JSON values: the two types that muster uses, access to their members, and printing that never
// fails.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// The value at this path of member names; nullptr if one is missing or its parent is not an object.
const Json* find_path(const Json& json, std::initializer_list<const char*> names);
// The text of this member; empty if it is missing or not a string.
std::string member_text(const Json& object, const char* name);
// A member that is a whole number, if it is one.
template <class T>
std::optional<T> member_number(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  return it->template get<T>();
}
// Appends a JSON string, quotes included; invalid UTF-8 becomes U+FFFD.
void append_quoted(std::string& out, std::string_view text);
// Parses text that muster wrote, which has no duplicate members. The library's own parser checks
// for them, in time quadratic in the size of an object. Returns a discarded value if the text is
// malformed.
OrderedJson parse_ordered(std::string_view text);
// Converts a map, keeping its order, also in linear time.
inline OrderedJson ordered(const std::map<std::string, std::string>& map) {
  return map.empty() ? OrderedJson::object() : OrderedJson(map);
}
// Prints JSON. Never fails: invalid UTF-8 becomes U+FFFD. An indent of -1 means one line.
std::string dumped(const OrderedJson& json);
std::string dumped(const Json& json, int indent = -1);

}  // namespace muster
