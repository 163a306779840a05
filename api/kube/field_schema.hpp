// FieldSchema: how a field is owned: as a whole, member by member, or element by element.
//
// api/openapi/ says which lists have keys, which are sets, and which objects are changed only as a
// whole (api_types.hpp). What no type describes, and what is in fields that are not looked at, is
// taken apart as far as it consists of objects, and its lists are wholes.
#pragma once

#include "api/kube/api_types.hpp"
#include "api/kube/field_set.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace muster::api {

// What is known of the place where a value stands.
class FieldType {
 public:
  FieldType() = default;                      // nothing
  explicit FieldType(std::string_view type);  // an object of this ApiType; of none: nothing

  FieldType member(std::string_view name) const;  // of an object or map
  FieldType element() const;                      // of a list

  bool atomic() const { return field_ != nullptr && field_->atomic; }
  bool is_map() const { return field_ != nullptr && field_->map; }
  bool is_set() const { return field_ != nullptr && field_->set; }
  std::span<const std::string_view> keys() const;  // of a list; empty: it has none

 private:
  FieldType inner() const;  // of an item of this list or map

  const ApiField* field_ = nullptr;  // the value is all of it
  const ApiType* object_ = nullptr;  // the value is one
};

enum class Shape { leaf, map, keyed, set };
// Of a value at such a place. A list whose elements can't be told apart by
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
