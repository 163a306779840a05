// World: a simulated cluster around the real actors.
//
// The actors run on CAF's test scheduler in an order chosen by the seed. Time is virtual. The
// journal forgets what was not synced. Links deliver in order, with delay, and break. Agents are
// core::node::Node with a simulated executor. Anything may crash: the coordinator between any two
// messages or in the middle of a commit, agents, links, index actors, and whole nodes (silent for
// longer than the grace). World is also the witness: it knows every start and every end.
//
// Deterministic: one seed, one history.
#pragma once

#include "actors/cluster_actor.hpp"
#include "actors/journal_actor.hpp"
#include "actors/registry_actor.hpp"
#include "api/view/view.hpp"
#include "core/node/node.hpp"
#include "storage/memory_journal.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster::sim {

struct Plan {
  uint64_t seed = 1;
  uint32_t agents = 2;
  uint32_t slots = 3;
  int crashes = 3;           // of the coordinator
  int mid_commit = 1;        // more crashes, in the middle of a commit
  int agent_restarts = 2;    // the keeper keeps running
  int breaks = 4;            // of links
  int silences = 1;          // nodes frozen for longer than the grace, with starts in progress
  int index_deaths = 2;      // exceptions in index actors
  int owner_acts = 0;        // calls of `owner` while there are faults
  Millis pod_ms_max = 400;   // how long a pod runs
  Millis clock_jump_ms = 0;  // applied once, if not 0
  bool launcher = false;     // index 0 usually aborts soon after another process has ended
  bool as_one = false;  // all pods of a job have the same attempt, and start after the last one
};

class World {
 public:
  explicit World(Plan plan);
  ~World();

  // Stores a job and runs until the create is answered, repeating it after a crash.
  void submit(core::JobObjectPtr object);
  // The exit code of an attempt.
  std::function<int(PodId)> exit_code = [](PodId) { return 0; };
  // How long it runs if nothing ends it. Unset: up to Plan::pod_ms_max.
  std::function<Millis(PodId)> run_ms;
  // Acts as the owner of a job; called while there are faults.
  std::function<void()> owner;
  // Sends an event to a job and sets its token. `done` gets the outcome, unless a crash swallows
  // it.
  void ask(const std::string& name, core::Event event, std::function<void(Status)> done = nullptr);
  void remove(const std::string& name, bool background, bool orphan,
              std::function<void(Status)> done = nullptr);
  bool may_scale = false;  // lets `succeeded` fall

  // Runs with faults, then without. False if `done` is not true within `limit_ms` of virtual time.
  bool run(const std::function<bool()>& done, Millis limit_ms);

  const core::Job* shown(const std::string& name) const;  // what a client sees
  std::string picture(const std::string& name) const;     // job and agents, for failure messages
  // What the witness saw.
  std::map<PodId, int> starts;          // processes ever started for an attempt
  std::set<PodId> ended_ok, ended_bad;  // by their real exit codes
  std::set<PodId> returned;             // by their agents, without having run
  std::vector<std::string> broken;      // violated rules

 private:
  struct Config;
  struct Coordinator;
  struct Agent;
  class Link;
  class Disk;

  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  uint64_t below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  void at(Millis when_ms, std::function<void()> what);
  void trace(const std::string& what);
  void boot();
  void crash(bool planned_mid_commit);
  void step();
  void faults();
  void check_shown();
  void begin_start(uint32_t agent, PodId pod, Millis not_after);
  void fill_room(uint32_t agent);
  void drop_queued(uint32_t agent, PodId pod);
  void report_unstarted(uint32_t agent, PodId pod);
  void process_starts(uint32_t agent, PodId pod, Millis not_after);
  void process_ends(uint32_t agent, PodId pod, int code);
  void abort_launcher(PodId because);

  // The agents' side of the network.
  void connect(uint32_t agent);
  void to_agent(NodeId node, std::function<void(Agent&)> what);
  void to_coordinator(uint32_t agent, std::function<void()> what);
  void break_link(uint32_t agent);
  void pump(uint32_t agent);
  void beat(uint32_t agent);

  Plan plan_;
  std::mt19937_64 random_;
  Millis now_ms_ = 1'700'000'000'000;  // wall clock
  Millis boot_ms_ = 1'000;             // the clock of agents and timers
  std::multimap<Millis, std::function<void()>> later_;
  storage::MemoryJournal disk_;
  bool calm_ = false;  // no more faults
  bool crash_due_ = false;
  uint64_t life_ = 0;    // of the coordinator; callbacks of an earlier life are ignored
  uint64_t cut_at_ = 0;  // the commit at which the disk crashes the process; 0: none
  std::unique_ptr<Link> link_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::unique_ptr<api::View> view_;
  struct Seen {
    uint64_t failed = 0, succeeded = 0;
    std::set<std::string> conditions;
  };
  std::map<JobId, Seen> seen_;
  std::map<JobId, std::map<uint32_t, std::set<std::pair<PodId, uint32_t>>>>
      live_;  // index -> (attempt, agent)
  std::set<NodeId> lost_;
  std::set<PodId> judged_;                // counted as failed before their end
  std::map<PodId, Millis> ended_ok_at_;   // boot time
  std::map<NodeId, Millis> answered_at_;  // boot time at which an agent last named its ends
  int index_deaths_left_ = 0;
};

}  // namespace muster::sim
