// The owner references in an object's metadata. They are stored as clients wrote them, so what is
// not a reference is skipped.
#pragma once

#include "base/text/json.hpp"
#include "core/spec/fields/owner_ref.hpp"
#include "core/spec/values/violations.hpp"

#include <string>
#include <vector>

namespace muster::api {

std::vector<core::OwnerRef> read_owner_refs(const Json& metadata);
// As Kubernetes checks them: apimachinery's ValidateOwnerReferences.
void check_owner_refs(const std::vector<core::OwnerRef>& owners, core::Violations& found);
// Removes the references to this owner.
void drop_owner_refs(Json& metadata, const std::string& uid);

}  // namespace muster::api
