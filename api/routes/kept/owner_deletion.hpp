// Deletes objects that may own others. What becomes of their dependents is up to the propagation:
//
// - background (and where none is given): OwnerSweep deletes them once the owner is gone.
// - orphan: the references to the owner are removed from them first.
// - foreground: while there are dependents with blockOwnerDeletion, the owner gets the finalizer
//   foregroundDeletion and stays, with a deletionTimestamp; OwnerSweep deletes the dependents, then
//   the owner. Pods and nodes cannot be held like this: for them it is as in the background.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/model/view.hpp"
#include "api/view/query/owners.hpp"

#include <kj/async.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

// Deletes one object, or several at one look at the View. Who owns what is looked up only if the
// propagation depends on it, and not after a function has returned.
class OwnerDeletion {
 public:
  OwnerDeletion(const View& view, Backend& backend) : view_(view), backend_(backend) {}
  OwnerDeletion(const View& view, Backend& backend, const Owners& owners)
      : view_(view), backend_(backend), given_(&owners) {}
  // conflict: its dependents change all the time.
  kj::Promise<Status> job(const core::JobMeta& meta, Propagation propagation);
  kj::Promise<Status> kept(const core::KeptPtr& kept, std::optional<Propagation> propagation,
                           Millis now_ms);
  // A pod or a node, by `remove`.
  kj::Promise<Status> other(const std::string& uid, std::optional<Propagation> propagation,
                            std::function<void(std::function<void(Status)> done)> remove);

 private:
  const Owners& owners();

  const View& view_;
  Backend& backend_;
  const Owners* given_ = nullptr;
  std::optional<Owners> made_;
};

// Without the references to these owners.
core::KeptPtr without_owners(const core::Kept& kept, const std::vector<std::string>& uids);
core::JobObjectPtr without_owners(const core::JobObject& job, const std::vector<std::string>& uids);
// With or without the finalizer that keeps it until its dependents are gone.
core::JobObjectPtr held(const core::JobObject& job, bool hold);

}  // namespace muster::api
