// OwnerRef: a reference in metadata.ownerReferences. An object whose owners are all gone is deleted
// (api/routes/kept/owner_sweep.hpp).
#pragma once

#include <string>

namespace muster::core {

struct OwnerRef {
  std::string api_version, kind, name, uid;
  bool blocks =
      false;  // blockOwnerDeletion: a foreground deletion of the owner waits for the object
  bool operator==(const OwnerRef&) const = default;
};

}  // namespace muster::core
