// ConfigDesk: holds the starts of processes whose pods use config maps until the data has been
// fetched from the coordinator.
//
// The data is good for kFreshMs, so however many pods of a job start, the coordinator is asked only
// a few times a second, and it sends the data again only if it has changed. While a config map is
// missing, or there is no connection, the job's starts are held, and the coordinator is asked again
// every second.
//
// Pods with other limits than their job's template has (ADR 76) have a template of their own, known
// by its generation.
//
// Invariant: a held start is released once, or dropped by a kill or a withdrawal, which the caller
// answers in the executor's place.
//
// Belongs to the agent's KJ thread.
#pragma once

#include "agent/run/executor.hpp"
#include "base/clock.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <functional>
#include <map>
#include <schema/agent.capnp.h>
#include <string>
#include <utility>
#include <vector>

namespace muster::agent {

class ConfigDesk final : private kj::TaskSet::ErrorHandler {
 public:
  static constexpr Millis kFreshMs = 250;

  struct Agent {
    std::function<kj::Maybe<wire::Session::Client>()> session;
    // Takes starts of one job, with a template that has the data. It may hold them again.
    std::function<void(std::vector<Executor::Start>)> release;
  };
  // `extras`: as for read_template().
  ConfigDesk(kj::Timer& timer, Agent agent, const core::node::NodeExtras& extras = {})
      : timer_(timer), agent_(std::move(agent)), extras_(extras), tasks_(*this) {}

  // This template with the data, if it is fresh; null: hold the start.
  core::node::PodTemplatePtr fresh(const core::node::PodTemplate& job) const;
  void hold(Executor::Start start);
  // Likewise, but asks only after a second: it cannot start now.
  void hold_longer(Executor::Start start);
  // Drops what is held for these; returns their ends in the executor's place.
  std::vector<core::node::ProcessEnd> drop(const std::vector<core::node::KillOrder>& kills,
                                           const std::vector<PodId>& withdrawn);
  // The executor is gone, and with it all orders.
  void clear();
  // There is a new session.
  void connected();

 private:
  struct Job {
    core::node::PodTemplatePtr fetched;  // null: nothing yet
    uint64_t version = 0;                // of `fetched`
    Millis fetched_at = 0;
    bool asking = false, waiting = false;  // for an answer; for the next attempt
    size_t asked = 0;                      // times
    std::string missing;
    std::vector<Executor::Start> held;
  };

  using Key = std::pair<JobId, int64_t>;  // with the generation of the template
  static Key key_of(const Executor::Start& start) {
    return {start.order.pod.job, start.job->generation};
  }
  void ask(Key id);
  void ask_later(Key id);
  void answered(Key id, Millis asked_at, wire::Session::ConfigsResults::Reader answer);
  void sweep();
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer_;
  const Agent agent_;
  const core::node::NodeExtras extras_;
  std::map<Key, Job> jobs_;
  kj::TaskSet tasks_;
};

}  // namespace muster::agent
