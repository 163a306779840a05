// CronController: creates and deletes the jobs of CronJobs as core/cron decides.
//
// It keeps nothing that the View does not show, so a restarted coordinator continues where the last
// one stopped. Per CronJob, one round is under way at a time: deletions, then a creation, then the
// status. A job is created with the rights that its owner has at that time.
//
// Belongs to the API thread.
#pragma once

#include "api/kube/objects/cron_object.hpp"
#include "api/routes/jobs/job_writer.hpp"
#include "core/cron/decide.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::api {

class CronController final : private JobWriter, private kj::TaskSet::ErrorHandler {
 public:
  CronController(const RouteContext& context, kj::Timer& timer)
      : JobWriter(context), timer_(timer), rounds_(*this) {}
  // Call it when the View has changed.
  void look();
  void start();

 private:
  // A CronJob as of its last round.
  struct Known {
    core::KeptPtr kept;
    Json json;
    core::CronJob cron;
    std::optional<core::Zone> zone;  // nothing: unknown
    std::vector<core::ChildJob> children;
    std::optional<Millis> wake;
    bool busy = false;  // a round is under way
  };
  struct Created {
    std::optional<core::JobRef> job;
    std::string why;  // if there is none
  };

  kj::Promise<void> run();
  void look_at_all();
  void look_at(const Shown& shown, Millis now);
  bool controls(JobId job, const std::string& uid) const;
  std::vector<core::ChildJob> children_of(const core::Kept& cron);
  std::optional<core::ChildJob> child(JobId id, std::optional<uint32_t> owner);
  kj::Promise<void> round(uint64_t id);
  kj::Promise<bool> remove(const Known& known, const std::vector<core::JobRef>& jobs);
  kj::Promise<Created> create(const Known& known, Millis scheduled_ms);
  Created existing(const core::Kept& cron, const std::string& name) const;
  kj::Promise<void> write(const Known& known, const core::CronStatus& status);
  void report(const Known& known, const core::CronEvent& event);
  void taskFailed(kj::Exception&& failed) override;

  kj::Timer& timer_;
  std::map<uint64_t, std::shared_ptr<Known>> known_;  // by id of the stored object
  std::unordered_map<JobId, core::ChildJob> ended_;   // children that have left memory
  kj::Own<kj::PromiseFulfiller<void>> changed_;       // set while it waits for a change
  size_t busy_ = 0;                                   // rounds that are under way
  kj::TaskSet rounds_;
  kj::Promise<void> work_ = kj::READY_NOW;
};

}  // namespace muster::api
