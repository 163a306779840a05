// NamespaceSweep: deletes the contents of namespaces that are being deleted, then the namespaces.
//
// The View shows which namespaces those are and what is left in them, so a restarted coordinator
// continues where the last one stopped. A namespace is removed when the last pod of its last job
// has ended, including pods that outlived their job as orphans, unless clients have given it other
// finalizers than ours. A namespace that a user deleted is
// removed when nothing in it belongs to that user; others' objects are left alone, and remain in a
// namespace that nobody created.
//
// Belongs to the API thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/model/view.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
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
  // Starts deletions in this namespace; false: nothing is left to delete.
  bool sweep(const std::string& ns);
  void sweep_job(const core::Job& job);
  // False if it is under way, or too many others are.
  bool ask(const std::string& uid);
  // Returns what to do when the deletion has been carried out.
  std::function<void(Status)> asked(const std::string& uid);

  kj::Timer& timer_;
  const View& view_;
  Backend& backend_;
  bool ready_ = false, running_ = false;
  std::set<std::string> asked_;  // uids of objects whose deletion is under way
  kj::Duration pause_ = 0 * kj::SECONDS;
  kj::Promise<void> work_ = kj::READY_NOW;
};

}  // namespace muster::api
