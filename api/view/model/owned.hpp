// Owned: a job that names owners (metadata.ownerReferences), for the sweep that deletes what has
// lost its owners.
//
// Only kinds that muster has are judged. An object with an owner of another kind only is not
// remembered: its owner may exist elsewhere, so it always stays.
#pragma once

#include "core/kept.hpp"
#include "core/spec/fields/owner_ref.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::api {

struct OwnedJob {
  std::string ns, name, uid;
  std::vector<core::OwnerRef> owners;
};

// Kinds of owners.
enum class OwnerKind { foreign, job, pod, node, kept };
OwnerKind owner_kind(const core::OwnerRef& owner);
// Of an owner that is a stored object.
std::optional<core::KeptKind> kept_owner_kind(const core::OwnerRef& owner);
// Whether at least one of the owners is of a kind that muster has.
bool has_own_owners(const std::vector<core::OwnerRef>& owners);

}  // namespace muster::api
