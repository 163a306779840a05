// OwnerRef: a reference in metadata.ownerReferences. An object whose owners are all gone is deleted
// (api/routes/kept/owner_sweep.hpp).
#pragma once

#include <string>
#include <vector>

namespace muster::core {

struct OwnerRef {
  std::string api_version, kind, name, uid;
  bool blocks =
      false;  // blockOwnerDeletion: a foreground deletion of the owner waits for the object
  bool controller = false;  // it manages the object; at most one owner does
  bool operator==(const OwnerRef&) const = default;
};

// The owner that manages the object; nullptr: none.
inline const OwnerRef* controller_of(const std::vector<OwnerRef>& owners) {
  for (const OwnerRef& owner : owners)
    if (owner.controller) return &owner;
  return nullptr;
}

}  // namespace muster::core
