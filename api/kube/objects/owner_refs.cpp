#include "api/kube/objects/owner_refs.hpp"

#include <utility>

namespace muster::api {
namespace {

constexpr const char* kMember = "ownerReferences";

bool is_true(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

void check_owner(const core::OwnerRef& owner, core::Violations& found) {
  const std::string path = std::string("metadata.") + kMember;
  const std::string version = owner.api_version.substr(owner.api_version.find('/') + 1);
  if (version.empty())
    found.invalid(path + ".apiVersion", owner.api_version, "version must not be empty");
  if (owner.kind.empty()) found.invalid(path + ".kind", "", "must not be empty");
  if (owner.name.empty()) found.invalid(path + ".name", "", "must not be empty");
  if (owner.uid.empty()) found.invalid(path + ".uid", "", "must not be empty");
  if (owner.api_version == "v1" && owner.kind == "Event")
    found.invalid(path, owner.kind + "/" + owner.name,
                  "/v1, Kind=Event is disallowed from being an owner");
}

}  // namespace

std::vector<core::OwnerRef> read_owner_refs(const Json& metadata) {
  std::vector<core::OwnerRef> owners;
  const auto found = metadata.find(kMember);
  if (found == metadata.end() || !found->is_array()) return owners;
  for (const Json& one : *found) {
    if (!one.is_object()) continue;
    owners.push_back({member_text(one, "apiVersion"), member_text(one, "kind"),
                      member_text(one, "name"), member_text(one, "uid"),
                      is_true(one, "blockOwnerDeletion"), is_true(one, "controller")});
  }
  return owners;
}

void check_owner_refs(const std::vector<core::OwnerRef>& owners, core::Violations& found) {
  std::string first;
  for (const core::OwnerRef& owner : owners) {
    check_owner(owner, found);
    if (!owner.controller) continue;
    const std::string name = owner.kind + "/" + owner.name;
    if (!first.empty())
      found.invalid(std::string("metadata.") + kMember, name,
                    "Only one reference can have Controller set to true. Found \"true\" in "
                    "references for " +
                        first + " and " + name);
    else
      first = name;
  }
}

void drop_owner_refs(Json& metadata, const std::string& uid) {
  const auto found = metadata.find(kMember);
  if (found == metadata.end() || !found->is_array()) return;
  Json left = Json::array();
  for (Json& one : *found)
    if (member_text(one, "uid") != uid) left.push_back(std::move(one));
  if (left.empty())
    metadata.erase(found);
  else
    *found = std::move(left);
}

}  // namespace muster::api
