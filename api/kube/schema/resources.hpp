// Resources: what is served, as listed in discovery and the OpenAPI documents.
//
// Each resource and each subresource (`jobs/scale`) has one row. The handlers are in api/routes/
// and must serve exactly what the rows list.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster::api {

struct Resource {
  std::string_view group;  // "": the core group
  std::string_view version;
  std::string_view name;
  std::string_view kind;
  std::string_view kind_group_version;  // if it differs from the resource's
  bool namespaced = true;
  std::string_view verbs;  // separated by spaces
  std::string_view singular{}, short_names{}, category{};

  bool is_sub() const { return name.find('/') != std::string_view::npos; }
  bool can(std::string_view verb) const;
  std::string group_version() const;  // "v1", "batch/v1"
};

std::span<const Resource> resources();

struct Group {
  std::string_view name;
  std::string_view version;
};
// All groups except the core group.
std::span<const Group> groups();

}  // namespace muster::api
