// Owned: a job that names owners (metadata.ownerReferences), for the sweep that deletes what has
// lost its owners.
//
// Only kinds that muster has are judged. An object with an owner of another kind only is not
// remembered: its owner may exist elsewhere, so it always stays.
#pragma once

#include "core/ids.hpp"
#include "core/kept.hpp"
#include "core/spec/fields/owner_ref.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::api {

struct OwnedJob {
  std::string ns, name, uid;
  std::vector<core::OwnerRef> owners;
};

// These jobs, by id and by the uid of each owner.
class OwnedJobs {
 public:
  void set(JobId id, OwnedJob job);
  void erase(JobId id);

  const std::map<JobId, OwnedJob>& all() const { return all_; }
  const std::set<JobId>& of(const std::string& uid) const;

 private:
  std::map<JobId, OwnedJob> all_;
  std::unordered_map<std::string, std::set<JobId>> jobs_;  // never empty
};

// Kinds of owners.
enum class OwnerKind { foreign, job, pod, node, kept };
OwnerKind owner_kind(const core::OwnerRef& owner);
// Of an owner that is a stored object.
std::optional<core::KeptKind> kept_owner_kind(const core::OwnerRef& owner);
// Whether at least one of the owners is of a kind that muster has.
bool has_own_owners(const std::vector<core::OwnerRef>& owners);

}  // namespace muster::api
