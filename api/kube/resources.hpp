// Resources: what is served, as discovery and the OpenAPI documents tell it.
//
// One row a resource; a subresource (`jobs/scale`) is a row of its own. Routes.cpp does the work;
// what a row promises is what it answers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

struct Resource {
  std::string_view group;  // "": the core group
  std::string_view version;
  std::string_view name;
  std::string_view kind;
  std::string_view kind_group_version;  // when it is not the resource's
  bool namespaced = true;
  std::string_view verbs;  // words
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
// Beside the core group.
std::span<const Group> groups();

// "a b c" -> a, b, c
std::vector<std::string> words(std::string_view text);

}  // namespace muster::api
