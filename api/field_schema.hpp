// FieldSchema: how a field is owned: as a whole, member by member, or element by element.
//
// Names and types come from fields.hpp; here stands what Kubernetes' schemas add to them: which
// lists have keys, which are sets, and which objects are changed only as a whole. What is in no
// table is taken apart as far as it consists of objects, and its lists are wholes.
#pragma once

#include "api/field_set.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace muster::api {

struct FieldType {
  std::string_view type = "any";  // as in fields.hpp
  bool atomic = false;
  std::string_view keys = "";  // of a list: names joined by commas; "=": a set of plain values

  FieldType member(std::string_view name) const;  // of an object or map
  FieldType element() const;                      // of a list
};

enum class Shape { leaf, map, keyed, set };
// Of a value that stands where `type` is expected. A list whose elements can't be told apart by
// their keys is a leaf.
Shape shape_of(const FieldType& type, const nlohmann::json& value);

// The path element of a list's element.
std::string element_of(const FieldType& list, const nlohmann::json& element);

// All places of a value.
FieldSet fields_of(const FieldType& type, const nlohmann::json& value);

// What differs between two values.
struct Comparison {
  FieldSet added, modified, removed;
};
Comparison compared(const FieldType& type, const nlohmann::json& before,
                    const nlohmann::json& after);

// `live` with all that `wanted` says put in; lists with keys keep what they have.
nlohmann::json merged(const FieldType& type, nlohmann::json live, const nlohmann::json& wanted);

// `value` without the places in `last` that `owned` does not hold. An object goes with the last
// place that somebody spoke for in it.
nlohmann::json disowned(const FieldType& type, nlohmann::json value, const FieldSet& last,
                        const FieldSet& owned);

}  // namespace muster::api
