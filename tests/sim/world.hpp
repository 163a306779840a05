// World: a simulated cluster around the real actors.
//
// The actors run on CAF's test scheduler in an order chosen by the seed. Time is virtual. The
// journal forgets what was not synced. Links deliver in order, with delay, and break. Agents are
// core::node::Node with a simulated executor. Anything may fail: the coordinator between any two
// messages or in the middle of a commit, agents, keepers, links, index actors, whole nodes (silent
// for longer than the grace, cut off yet alive, restarted, or on an older copy of their disk), the
// coordinator's disk (which may also be an older copy), clocks. Agents may lie. Nodes may end with
// their allocation, or start nothing for a while. World is also the witness: it knows every start
// and every end.
//
// A Plant (plants.hpp) breaks one of the guarantees on purpose, so that a test can show that the
// checks notice it.
//
// Deterministic: one seed, one history.
#pragma once

#include "actors/cluster_actor.hpp"
#include "actors/journal_actor.hpp"
#include "actors/registry_actor.hpp"
#include "api/view/model/view.hpp"
#include "core/node/node.hpp"
#include "storage/journal/memory_journal.hpp"
#include "tests/sim/plants.hpp"
#include "tests/sim/site_rules.hpp"

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
#include <utility>
#include <vector>

namespace muster::sim {

// Real storage below the simulated disk. If it refuses a commit, the coordinator crashes; each
// start begins with the rows that it holds.
class Store {
 public:
  virtual ~Store() = default;
  virtual Status commit(const std::vector<storage::Row>& rows) = 0;
  struct Held {
    std::vector<storage::Row> rows;
    uint64_t commit = 0;
  };
  virtual Held start() = 0;
};

struct Plan {
  uint64_t seed = 1;
  uint32_t agents = 2;
  uint32_t slots = 3;
  int crashes = 3;               // of the coordinator
  int mid_commit = 1;            // more crashes, in the middle of a commit
  int agent_restarts = 2;        // the keeper keeps running
  int breaks = 4;                // of links
  int silences = 1;              // nodes frozen for longer than the grace, with starts in progress
  int cuts = 0;                  // nodes that keep running without a link for some time
  int index_deaths = 2;          // exceptions in index actors
  int owner_acts = 0;            // calls of `owner` while there are faults
  int keeper_deaths = 0;         // with all processes of their node
  int old_work_dirs = 0;         // nodes that restart on an older copy of their disk
  int old_data_dirs = 0;         // starts of the coordinator on an older copy of its disk
  int failed_syncs = 0;          // the disk reports an error, whether or not it has written
  int node_changes = 0;          // nodes drained, tainted, in trouble, deleted
  int lies = 0;                  // reports of ends by a node that does not have the pods
  int repeats = 0;               // reports that arrive twice
  int operator_acts = 0;         // calls of `operators` while there are faults
  int windows = 0;               // nodes reserved for maintenance or for a user
  int node_ends = 0;             // agents that say when their node ends; then it does
  int failed_starts = 0;         // nodes on which nothing starts for a while
  double crash_chance = 0.0015;  // of a crash of the coordinator, at each step
  size_t recent_max = 1;         // finished jobs in the read model; few, to force reads
  Plant plant = Plant::none;
  Millis pod_ms_max = 400;   // how long a pod runs
  Millis clock_jump_ms = 0;  // applied `clock_jumps` times, forward and back, if not 0
  int clock_jumps = 1;
  Store* store = nullptr;  // for plans without faults of the coordinator's disk
  bool launcher = false;   // index 0 usually aborts soon after another process has ended
  // A site of several users: nodes have CPUs, one per slot, and the labels pool=a and pool=b in
  // turn; queues are stored, and SiteRules are checked.
  bool site = false;
  uint32_t user_pods_max = 0;  // 0: no limit
};

class World {
 public:
  explicit World(Plan plan);
  ~World();

  // Creates a job and runs until the create is answered, repeating it after a crash.
  void submit(core::JobObjectPtr object);
  // Sends the job once. `done` gets the answer, unless a crash swallows it.
  void create(core::JobObjectPtr object, std::function<void(muster::Status)> done);
  // The exit code of an attempt; in a pod of several processes, of each process.
  std::function<int(PodId)> exit_code = [](PodId) { return 0; };
  // If set, gives the exit code of each process instead.
  std::function<int(PodId, core::node::Step)> step_code;
  // How long a process runs if nothing ends it. Unset: up to Plan::pod_ms_max.
  std::function<Millis(PodId)> run_ms;
  // Acts as the owner of a job; called while there are faults.
  std::function<void()> owner;
  std::function<void()> operators;  // likewise
  // Sends an event to a job, whose actor sets its token. `done` gets the outcome, unless a crash
  // swallows it.
  void ask(const std::string& name, core::Event event,
           std::function<void(muster::Status)> done = nullptr);
  void remove(const std::string& name, bool background, bool orphan,
              std::function<void(muster::Status)> done = nullptr);
  // Stores an object in place of `old`; a null `next` deletes it. `done` as above.
  void store(core::KeptPtr old, core::KeptPtr next, std::function<void(muster::Status)> done);
  core::KeptPtr stored(core::KeptKind kind, const std::string& name) const;  // null: there is none
  bool may_scale = false;  // `succeeded` may decrease

  // Runs with faults, then without. False if `done` is still not true after `limit_ms` of virtual
  // time without faults.
  bool run(const std::function<bool()>& done, Millis limit_ms);

  const core::Job* shown(const std::string& name) const;  // what a client sees
  const core::Job* shown(JobId id) const;
  // Whether nothing is left of any job outside the coordinator: no process, no unreported end.
  bool quiet() const;
  // After a history: the attempts of a job on the disk, and contradictions in what is on the disk.
  std::vector<core::Pod> attempts(JobId id);
  std::vector<std::string> verify();
  // The number of actors that run in the coordinator.
  size_t actors() const;
  Millis now() const { return boot_ms_; }
  bool calm() const { return calm_; }
  // Whether the API answers: not while on an older copy of the disk.
  bool serves() const { return !on_old_disk_; }
  std::string picture(const std::string& name) const;  // job and agents, for failure messages
  // What the witness saw.
  std::set<PodId> ended_ok, ended_bad;  // by their real exit codes
  std::set<PodId> returned;             // by their agents, without having run
  std::vector<std::string> broken;      // violated rules
  struct Witnessed {
    Millis started_at = 0;  // its first process
    uint32_t ends = 0;
    int code = 0;         // of its last process
    bool lost = false;    // its keeper died with it, or its node's disk was replaced
    Millis ended_at = 0;  // its last process
    NodeId node = kNoNode;
  };
  std::map<PodId, Witnessed> seen;
  std::set<NodeId> lost;                // declared lost, or deleted
  std::map<JobId, uint32_t> unstarted;  // starts that nodes have failed for reasons of their own
  struct Count {
    uint64_t crashes = 0, faults = 0, starts = 0, ends = 0, commits = 0;
    std::map<std::string, uint64_t> points;  // crashes, by record and step
  };
  Count count;

 private:
  struct Config;
  struct Coordinator;
  struct Agent;
  struct Process;
  class Link;
  class Disk;
  using ProcessKey = std::pair<PodId, core::node::Step>;

  std::string missing(JobId id);
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  uint64_t below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  void at(Millis when_ms, std::function<void()> what);
  void trace(const std::string& what);
  void trace_commit(const core::Committed& batch);
  void boot();
  void crash(bool planned_mid_commit);
  void step();
  void faults();
  void check_shown();
  void begin_start(uint32_t agent, const core::node::StartOrder& order);
  void fill_room(uint32_t agent);
  void drop_queued(uint32_t agent, PodId pod);
  void report_unstarted(uint32_t agent, ProcessKey key);
  void process_starts(uint32_t agent, const core::node::StartOrder& order, uint64_t keeper);
  void check_start(const Agent& agent, ProcessKey key);
  void process_ends(uint32_t agent, ProcessKey key, int code);
  int code_of(ProcessKey key) const;
  void see_end(Agent& agent, ProcessKey key, int code);
  core::node::ProcessEnd end_of(Agent& agent, ProcessKey key, const Process& process, int code);
  core::node::Origin origin_of(const Agent& agent, const core::node::StartOrder& order,
                               std::optional<Millis> started_at) const;
  void watch_fence(uint32_t agent, ProcessKey key, uint64_t keeper);
  void abort_launcher(PodId because);
  void restart_agent(uint32_t agent);
  void end_keeper(Agent& agent);
  void kill_keeper(uint32_t agent);
  void restore_work_dir(uint32_t agent);
  void change_node(uint32_t agent);
  void reserve(uint32_t agent);
  void end_node(uint32_t agent);
  void fail_start(uint32_t agent, const core::node::StartOrder& order);
  void tell_end(uint32_t agent, uint64_t entry);
  void check_site(const core::Committed& batch);
  void tell_queues();
  void lie(uint32_t agent);
  void note_crash_point(const std::vector<storage::Row>& rows, const char* step);
  void check_accepted();
  void begin_serving();
  void tidy_nodes();
  bool planted(Plant plant, double p = 1);
  void crash_soon();

  // The agents' side of the network.
  core::PodsReported::Ended reported(const core::node::PodEnded& end) const;
  void connect(uint32_t agent);
  void reconnect(uint32_t agent, Millis after_ms);
  void to_agent(NodeId node, std::function<void(Agent&)> what);
  void to_coordinator(uint32_t agent, std::function<void()> what);
  void break_link(uint32_t agent);
  void pump(uint32_t agent);
  void beat(uint32_t agent);

  Plan plan_;
  SiteRules rules_;
  std::mt19937_64 random_;
  Millis now_ms_ = 1'700'000'000'000;  // wall clock
  Millis boot_ms_ = 1'000;             // the clock of agents and timers
  std::multimap<Millis, std::function<void()>> later_;
  storage::MemoryJournal disk_;
  bool calm_ = false;  // no more faults
  bool crash_due_ = false;
  bool on_old_disk_ = false;
  std::optional<storage::MemoryJournal> newest_;  // the latest disk, while an older copy is in use
  std::optional<storage::MemoryJournal> backup_;
  std::set<NodeId> backup_nodes_;        // registered when it was made
  std::vector<storage::Row> last_rows_;  // of the last commit
  std::set<std::string> accepted_;       // jobs whose create was answered
  std::set<std::string> with_ttl_;
  std::set<std::string> removed_;  // jobs whose deletion was requested, or whose TTL was over
  std::map<PodId, NodeId> launched_on_;
  std::set<NodeId> deleted_;  // nodes whose object was deleted: others get their pods
  uint64_t life_ = 0;         // of the coordinator; callbacks of earlier lives are ignored
  std::map<std::string, core::StringMap> first_selectors_;  // of queues; Plant::selector_kept
  uint64_t cut_at_ = 0;  // the commit at which the disk crashes the process; 0: none
  std::unique_ptr<Link> link_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::unique_ptr<api::View> view_;
  struct Counts {
    uint64_t failed = 0, succeeded = 0;
    std::set<std::string> conditions;
  };
  std::map<JobId, Counts> shown_;
  std::map<JobId, std::pair<std::string, std::string>> names_;  // namespace, name
  struct Live {
    PodId pod;
    uint32_t agent = 0;
    NodeId node = kNoNode;
    int processes = 0;
    bool late = false;  // its keeper was frozen when it should have ended it for lack of contact
  };
  std::map<JobId, std::map<uint32_t, std::vector<Live>>> live_;      // by index
  std::multimap<ProcessKey, std::pair<uint32_t, uint64_t>> starts_;  // agent and its disk
  std::set<PodId> judged_;               // counted as failed before their end
  std::map<PodId, Millis> ended_ok_at_;  // boot time
  // Boot time at which an agent last listed its ends of a job, in an answer that has arrived.
  std::map<std::pair<NodeId, JobId>, Millis> answered_at_;
  int index_deaths_left_ = 0;
};

}  // namespace muster::sim
