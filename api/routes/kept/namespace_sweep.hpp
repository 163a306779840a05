// NamespaceSweep: deletes the contents of namespaces that are being deleted, then the namespaces.
//
// The View shows which namespaces those are and what is left in them, so a restarted coordinator
// continues where the last one stopped. A namespace is removed when the last pod of its last job
// has ended. In a namespace that a user deleted, only that user's objects are deleted; if another
// user has added objects meanwhile, the namespace stays until those are gone.
//
// Belongs to the API thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/model/view.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <set>
#include <string>

namespace muster::api {

class NamespaceSweep {
 public:
  NamespaceSweep(kj::Timer& timer, const View& view, Backend& backend)
      : timer_(timer), view_(view), backend_(backend) {}
  // Call it when the View has changed.
  void look();
  void start() {
    ready_ = true;
    look();
  }

 private:
  kj::Promise<void> round();
  // Starts deletions in this namespace; false: nothing is left in it.
  bool sweep(const std::string& ns);

  kj::Timer& timer_;
  const View& view_;
  Backend& backend_;
  bool ready_ = false, running_ = false;
  std::set<std::string> asked_;  // uids of objects whose deletion is under way
  kj::Promise<void> work_ = kj::READY_NOW;
};

}  // namespace muster::api
