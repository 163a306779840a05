#include "api/kube/schema/api_types.hpp"

#include <algorithm>

// api_types() and merged_lists() are in gen/api_tables.cpp, which the build generates.
namespace muster::api {

const ApiField* ApiType::field(std::string_view wanted) const {
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [&](const ApiField& field) { return field.name == wanted; });
  return it == fields.end() ? nullptr : &*it;
}

const ApiType* api_type(std::string_view name) {
  const auto types = api_types();
  const auto it = std::lower_bound(
      types.begin(), types.end(), name,
      [](const ApiType& type, std::string_view wanted) { return type.name < wanted; });
  return it == types.end() || it->name != name ? nullptr : &*it;
}

const ApiType* api_kind(std::string_view group_version, std::string_view kind) {
  for (const ApiType& type : api_types())
    if (type.kind == kind && type.group_version == group_version) return &type;
  return nullptr;
}

}  // namespace muster::api
