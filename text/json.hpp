// JSON values: the two kinds that muster uses, their text, and what reads them without surprises.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace muster {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// The value below these members; nullptr: there is none, or something on the way is no object.
const Json* find_path(const Json& json, std::initializer_list<const char*> names);
// The text of this member; empty: there is none, or it is no string.
std::string member_text(const Json& object, const char* name);
// Appends a JSON string, quotes included; bytes that are no UTF-8 become U+FFFD.
void append_quoted(std::string& out, std::string_view text);
// A text that is ours: no member is there twice, so none is looked for. The library's own parser
// does, which for objects of many members takes the square of their number. Discarded if broken.
OrderedJson parse_ordered(std::string_view text);
// The members in the map's order, as fast.
inline OrderedJson ordered(const std::map<std::string, std::string>& map) {
  return map.empty() ? OrderedJson::object() : OrderedJson(map);
}
// As JSON text that never fails: bytes that are no UTF-8 become U+FFFD. indent -1: one line.
std::string dumped(const OrderedJson& json);
std::string dumped(const Json& json, int indent = -1);

}  // namespace muster
