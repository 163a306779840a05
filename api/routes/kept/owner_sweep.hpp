// OwnerSweep: deletes stored objects (config maps, leases, events) when the last of the owners in
// their metadata.ownerReferences is gone, as Kubernetes' garbage collector does.
//
// The View shows the owners of stored objects and whether they exist, so a restarted coordinator
// continues where the last one stopped. An owner of a kind that muster does not have may exist
// elsewhere, so it keeps its objects.
//
// Belongs to the API thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/model/view.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <optional>
#include <set>
#include <string>

namespace muster::api {

class OwnerSweep {
 public:
  OwnerSweep(kj::Timer& timer, const View& view, Backend& backend)
      : timer_(timer), view_(view), backend_(backend) {}
  // Call it when the View has changed.
  void look();
  void start() {
    ready_ = true;
    look();
  }

 private:
  kj::Promise<void> round();
  bool exists(const core::OwnerRef& owner, const std::string& ns) const;

  kj::Timer& timer_;
  const View& view_;
  Backend& backend_;
  bool ready_ = false, running_ = false, again_ = false;
  std::set<uint64_t> asked_;  // ids of objects whose deletion is under way
  kj::Promise<void> work_ = kj::READY_NOW;
};

// Deletes an object, by `remove`. If its dependents are to stay (Propagation::orphan), the
// references to it are removed from stored objects first. conflict: they change all the time.
kj::Promise<Status> delete_owner(const View& view, Backend& backend,
                                 std::optional<Propagation> propagation, std::string uid,
                                 std::function<void(std::function<void(Status)> done)> remove);

}  // namespace muster::api
