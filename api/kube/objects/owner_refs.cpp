#include "api/kube/objects/owner_refs.hpp"

#include <utility>

namespace muster::api {
namespace {

constexpr const char* kMember = "ownerReferences";

}  // namespace

std::vector<core::OwnerRef> read_owner_refs(const Json& metadata) {
  std::vector<core::OwnerRef> owners;
  const auto found = metadata.find(kMember);
  if (found == metadata.end() || !found->is_array()) return owners;
  for (const Json& one : *found) {
    if (!one.is_object()) continue;
    const auto blocks = one.find("blockOwnerDeletion");
    owners.push_back({member_text(one, "apiVersion"), member_text(one, "kind"),
                      member_text(one, "name"), member_text(one, "uid"),
                      blocks != one.end() && *blocks == true});
  }
  return owners;
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
