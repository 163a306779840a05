// World: a simulated cluster around the real actors.
//
// The actors run on CAF's test scheduler in an order that the seed chooses; time is virtual; the
// journal forgets what was not synced; links deliver in order, late, and break; agents are
// core::node::Node with an executor that pretends. Whatever may die dies: the coordinator between
// any two messages or in the middle of a commit, agents, links, index actors, whole nodes (silent
// for longer than the grace). The world itself is the witness: it knows every start and every end.
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
  int mid_commit = 1;        // of these, in the middle of a commit
  int agent_restarts = 2;    // the keeper goes on
  int breaks = 4;            // of links
  int silences = 1;          // nodes frozen for longer than the grace, with starts under way
  int index_deaths = 2;      // exceptions in index actors
  int owner_acts = 0;        // times that `owner` is called, among the faults
  Millis pod_ms_max = 400;   // how long a pod runs
  Millis clock_jump_ms = 0;  // planted once, when not 0
};

class World {
 public:
  explicit World(Plan plan);
  ~World();

  // Stores a job; runs until the create is answered (again after a crash).
  void submit(core::JobObjectPtr object);
  // Exit code of an attempt.
  std::function<int(PodId)> exit_code = [](PodId) { return 0; };
  // Called while there are faults: what the owner of a job does.
  std::function<void()> owner;
  // Asks something of a job (its token is set on the way). `done` hears whether it was granted; a
  // crash may swallow that.
  void ask(const std::string& name, core::Event event, std::function<void(Status)> done = nullptr);
  void remove(const std::string& name, bool background, bool orphan,
              std::function<void(Status)> done = nullptr);
  bool may_scale = false;  // then `succeeded` may fall

  // Runs with faults, then without; false when `done` is not true within `limit_ms` of virtual
  // time.
  bool run(const std::function<bool()>& done, Millis limit_ms);

  const core::Job* shown(const std::string& name) const;  // what a client sees
  std::string picture(const std::string& name) const;     // of a job and the agents, for a failure
  // The witness.
  std::map<PodId, int> starts;          // processes ever started for an attempt
  std::set<PodId> ended_ok, ended_bad;  // by their true exit
  std::set<PodId> returned;             // by their agents; they never ran
  std::vector<std::string> broken;      // rules that were seen broken

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
  void process_starts(uint32_t agent, PodId pod, Millis not_after);
  void process_ends(uint32_t agent, PodId pod, int code);

  // Agents' side of the network.
  void connect(uint32_t agent);
  void to_agent(NodeId node, std::function<void(Agent&)> what);
  void to_coordinator(uint32_t agent, std::function<void()> what);
  void break_link(uint32_t agent);
  void pump(uint32_t agent);
  void beat(uint32_t agent);

  Plan plan_;
  std::mt19937_64 random_;
  Millis now_ms_ = 1'700'000'000'000;  // wall clock
  Millis boot_ms_ = 1'000;             // what agents and timers count
  std::multimap<Millis, std::function<void()>> later_;
  storage::MemoryJournal disk_;
  bool calm_ = false;  // no more faults
  bool crash_due_ = false;
  uint64_t life_ = 0;    // of the coordinator; what belongs to an earlier one is void
  uint64_t cut_at_ = 0;  // commit at which the disk takes the process along; 0: none
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
  std::set<PodId> judged_;               // seen counted as failed before their end
  std::map<PodId, Millis> ended_ok_at_;  // boot time
  std::map<NodeId, Millis>
      answered_at_;  // boot time at which an agent answered what had ended there
  int index_deaths_left_ = 0;
};

}  // namespace muster::sim
