// FieldSet: the fields of an object that a manager owns.
//
// A tree whose edges are path elements, written as in Kubernetes' FieldsV1:
//
//   f:NAME     a member of an object or of a map
//   k:{KEYS}   an element of a list, named by its key members ({"name":"main"})
//   v:VALUE    an element of a list of plain values, named by itself
//
// A node's `member` stands for the field itself, its children for fields below. In JSON a member
// without children is {}; one with children also has a ".". Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

struct FieldSet {
  bool member = false;
  std::map<std::string, FieldSet, std::less<>> children;

  bool empty() const;
  // Drops nodes that contain nothing.
  void prune();
  const FieldSet& below(std::string_view element) const;  // empty if there is none
  bool operator==(const FieldSet&) const = default;
};

FieldSet united(FieldSet a, FieldSet b);
FieldSet common(const FieldSet& a, const FieldSet& b);
FieldSet without(FieldSet a, const FieldSet& b);

// Paths as Kubernetes prints them: `.spec.template.spec.containers[name="main"].image`. Returns at
// most `most` paths and cuts very long ones.
std::vector<std::string> paths(const FieldSet& set, size_t most = SIZE_MAX);

nlohmann::json to_fields_v1(const FieldSet& set);
// Nothing if the JSON is not valid FieldsV1.
std::optional<FieldSet> from_fields_v1(const nlohmann::json& json);

}  // namespace muster::api
