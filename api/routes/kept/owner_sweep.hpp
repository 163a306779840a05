// OwnerSweep: Kubernetes' garbage collector. Deletes jobs and stored objects (config maps, leases,
// events) when the last of the owners in their metadata.ownerReferences is gone, by the rules in
// api/view/query/owners.hpp, and owners that were deleted in the foreground when their dependents
// are gone. A job that it deletes goes as by DELETE with background propagation.
//
// The View shows who owns what and what exists, so a restarted coordinator continues where the last
// one stopped. At most a hundred writes are under way at a time.
//
// Belongs to the API thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/model/view.hpp"
#include "base/clock.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <set>
#include <string>
#include <utility>

namespace muster::api {

class Owners;
struct Dependent;
struct Verdict;

class OwnerSweep {
 public:
  OwnerSweep(kj::Timer& timer, const View& view, Backend& backend, WallClock now)
      : timer_(timer), view_(view), backend_(backend), now_(std::move(now)), tasks_(errors_) {}
  // Call it when the View has changed.
  void look();
  void start() {
    ready_ = true;
    look();
  }

 private:
  struct Errors final : kj::TaskSet::ErrorHandler {
    void taskFailed(kj::Exception&& failed) override;
  };
  bool idle() const;
  kj::Promise<void> round();
  void carry_out(const Owners& owners, const Dependent& one, const Verdict& verdict);
  void carry_out_of_job(const Owners& owners, const Dependent& one, const Verdict& verdict);
  // Owners that wait for nothing any more.
  void let_go(const Owners& owners);
  // Whether something may be done now about the object with this uid.
  bool may_ask(const std::string& uid) const;
  void ask(const std::string& uid, kj::Promise<Status> work);

  kj::Timer& timer_;
  const View& view_;
  Backend& backend_;
  WallClock now_;
  bool ready_ = false, running_ = false, again_ = false;
  std::set<std::string> asked_;  // uids of objects with a write under way
  kj::Promise<void> work_ = kj::READY_NOW;
  Errors errors_;
  kj::TaskSet tasks_;
};

}  // namespace muster::api
