// FieldSet: which places of an object somebody speaks for.
//
// A tree whose edges are path elements, written as in Kubernetes' FieldsV1:
//
//   f:NAME     a member of an object or of a map
//   k:{KEYS}   an element of a list, named by its key members ({"name":"main"})
//   v:VALUE    an element of a list of plain values, named by itself
//
// A node that is a member stands for the place itself, its children for places below. In JSON a
// member without children is {}, one with children has a "." beside them. Pure.
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
  // Drops nodes that stand for nothing.
  void prune();
  const FieldSet& below(std::string_view element) const;  // an empty set if there is nothing
  bool operator==(const FieldSet&) const = default;
};

FieldSet united(FieldSet a, const FieldSet& b);
FieldSet common(const FieldSet& a, const FieldSet& b);
FieldSet without(FieldSet a, const FieldSet& b);

// As Kubernetes prints a path: `.spec.template.spec.containers[name="main"].image`. At most so
// many, the longest cut.
std::vector<std::string> paths(const FieldSet& set, size_t most = SIZE_MAX);

nlohmann::json to_fields_v1(const FieldSet& set);
// Nothing: no such text.
std::optional<FieldSet> from_fields_v1(const nlohmann::json& json);

}  // namespace muster::api
