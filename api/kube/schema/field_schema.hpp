// FieldSchema: how a field is owned: as a whole, member by member, or element by element.
//
// api/openapi/ says which lists have keys, which are sets, and which objects change only as a whole
// (api_types.hpp). Without a type, and in unread fields, objects are owned member by member and
// lists as a whole.
#pragma once

#include "api/kube/schema/api_types.hpp"
#include "api/kube/schema/field_set.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace muster::api {

// What the schema says about the place of a value.
class FieldType {
 public:
  FieldType() = default;                      // nothing known
  explicit FieldType(std::string_view type);  // an object of this ApiType, if it exists

  FieldType member(std::string_view name) const;  // of an object or map
  FieldType element() const;                      // of a list

  bool atomic() const { return field_ != nullptr && field_->atomic; }
  bool is_map() const { return field_ != nullptr && field_->map; }
  bool is_set() const { return field_ != nullptr && field_->set; }
  std::span<const std::string_view> keys() const;  // of a list; empty: none

 private:
  FieldType inner() const;  // of an item of this list or map

  const ApiField* field_ = nullptr;  // set if the value is the whole of this field
  const ApiType* object_ = nullptr;  // set if the value is an object of this type
};

enum class Shape { leaf, map, keyed, set };
// The shape of a value of this type. A list whose elements are not distinct by key is a leaf.
Shape shape_of(const FieldType& type, const nlohmann::json& value);

// The first list that has two elements with the same key (or, in a set, the same value), and what
// they share: `.spec.template.spec.containers[name="a"].env: duplicate entries for key
// [name="B"]`. Empty: there is none.
std::string repeated_element(const FieldType& type, const nlohmann::json& value);

// The FieldsV1 path element for a list element.
std::string element_of(const FieldType& list, const nlohmann::json& element);

// All fields of a value.
FieldSet fields_of(const FieldType& type, const nlohmann::json& value);

// How two values differ.
struct Comparison {
  FieldSet added, modified, removed;
};
Comparison compared(const FieldType& type, const nlohmann::json& before,
                    const nlohmann::json& after);

// `live` with everything in `wanted` merged in; lists with keys keep their other elements.
nlohmann::json merged(const FieldType& type, nlohmann::json live, const nlohmann::json& wanted);

// `value` without the fields in `last` that `owned` does not contain. An object is removed along
// with its last owned field.
nlohmann::json disowned(const FieldType& type, nlohmann::json value, const FieldSet& last,
                        const FieldSet& owned);

}  // namespace muster::api
