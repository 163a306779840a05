// NamespaceSweep: deletes what is in namespaces that are being deleted, and then these.
//
// It keeps nothing of its own: which namespaces those are, and what is left in them, is in the
// View, so a restart goes on where it was. A namespace goes when the last pod of its last job has
// ended. Of a namespace that a user deleted, only that user's objects are deleted; should another
// user's have arrived meanwhile, it waits for them.
//
// Belongs to the API's thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/view.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <set>
#include <string>

namespace muster::api {

class NamespaceSweep {
 public:
  NamespaceSweep(kj::Timer& timer, const View& view, Backend& backend)
      : timer_(timer), view_(view), backend_(backend) {}
  // Call it when the backend is ready, and when the View has changed.
  void look();
  void start() {
    ready_ = true;
    look();
  }

 private:
  kj::Promise<void> round();
  // Orders deletions in this namespace; false: nothing is left in it.
  bool sweep(const std::string& ns);

  kj::Timer& timer_;
  const View& view_;
  Backend& backend_;
  bool ready_ = false, running_ = false;
  std::set<std::string> asked_;  // uids of objects whose deletion is under way
  kj::Promise<void> work_ = kj::READY_NOW;
};

}  // namespace muster::api
