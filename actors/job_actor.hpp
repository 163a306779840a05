// JobActor: owns one core::Job and is the only writer of its records.
//
// Spawned by the RegistryActor; its death ends the process. Supervises its index actors: respawns
// one that dies and repeats the orders for its pods, but ends the process if they keep dying.
//
// Invariant: at most one batch is in flight to the journal, and nothing is decided meanwhile. So
// everything that arrives during a sync becomes one decision (natural batching), and the gate
// releases the effects of a decision without records at once, since all they rest on is durable.
#pragma once

#include "actors/gate.hpp"
#include "actors/interfaces.hpp"
#include "actors/waiting_pods.hpp"
#include "core/job/fold/hosts.hpp"
#include "core/job/fold/job.hpp"
#include "core/job/fold/job_clock.hpp"
#include "core/job/rules/decide.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_config.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>
#include <optional>
#include <set>
#include <unordered_map>

namespace muster::actors {

// Minimum bytes of records since the last snapshot before a new one is written.
constexpr uint64_t kTailBytesMin = 256 * 1024;

// What all job actors share.
struct JobSurroundings {
  journal_actor journal;
  cluster_actor cluster;
  registry_actor registry;
  SealedLink link;
  WallClock clock;
  ElapsedClock elapsed;
  core::Knobs knobs;  // the coordinator's; a job's annotations take precedence
  uint64_t tail_bytes_min = kTailBytesMin;
  bool history = true;  // keep an entry of each job that has ended or is deleted
  // Called for each decision, on the actor's thread; may be null.
  std::function<void(bool indexed, core::SyncAction, double seconds)> synced;
  std::shared_ptr<WaitingPods> waiting;
};

class JobActor : public GatedActor<job_actor> {
 public:
  // `next_seq`: sequence of its next append. `first_tail_seq` and `tail_bytes`: first append since
  // the last snapshot, and the bytes of all of them. `dependents`: see HasDependents.
  JobActor(caf::actor_config& config, JobSurroundings around, core::JobClock clock, core::Job job,
           uint64_t next_seq, uint64_t first_tail_seq, uint64_t tail_bytes,
           core::Dependents dependents = {});
  behavior_type make_behavior() override;
  void on_exit() override;

 private:
  // An index actor and the pods that it ends.
  struct Follower {
    index_actor actor;
    std::set<PodKey> pods;
  };

  void take(core::Event event);
  void ready(const NodeReadyNow& m);
  void take_ask(const JobAsk& m);
  void step();
  void use_again(core::Decision& decision);
  void tell_hosts(const Durable& durable);
  void tell_progress();
  void tell_completions();
  void durable(const std::vector<core::Effect>& effects, const Durable& durable);
  void leave_if_idle();
  std::vector<storage::Row> rows_of(const core::Decision& decision);

  void perform(const core::Effect& effect, const Durable& durable);
  void act(const core::LaunchPods& order, const Durable& durable);
  void act(const core::KillPods& order, const Durable& durable);
  void act(const core::LimitPods& order, const Durable& durable);
  void act(const core::AckReport& order, const Durable& durable) {
    acknowledge(order.token, durable);
  }
  void act(const core::Answer& order, const Durable& durable);
  void act(const core::AskSlots& order, const Durable&) { ask_slots(order); }
  void act(const core::FreeSlots& order, const Durable&);
  void act(const core::AnswerReconcile& order, const Durable& durable);
  void act(const core::AskNodes& order, const Durable& durable);
  void act(const core::WakeAt& order, const Durable&);
  void act(const core::PodsClosed& order, const Durable&);
  void act(const core::JobOver& order, const Durable&);

  bool place_as_wished();
  void ask_slots(const core::AskSlots& order);
  void ask_slots(core::Steps steps, uint32_t pods);
  uint64_t remember(CountdownPtr ack);
  void acknowledge(uint64_t token, const Durable& durable);
  Follower& follower(uint32_t index);
  void follow_kill(const core::KillPods::One& kill, const Durable& durable);
  void respawn(const caf::down_msg& down);

  core::Knobs knobs() const;
  Millis now() const { return clock_.now(around_.elapsed()); }

  JobSurroundings around_;
  core::JobClock clock_;
  core::Job job_;
  core::Hearing hearing_;
  core::Dependents dependents_;
  core::ProgressPtr told_progress_;          // to the registry
  std::optional<int32_t> told_completions_;  // likewise
  core::Knobs knobs_;
  WaitingPods::OfJob waiting_;
  bool has_summary_row_ = false;
  core::JobObjectPtr judged_object_;  // the object behind knobs_ and the last AskSlots
  bool is_mpi_;                       // from judged_object_
  uint64_t next_seq_;
  uint64_t first_tail_seq_;
  uint64_t tail_bytes_;
  uint64_t snapshot_bytes_ = 0;  // size of the last snapshot written

  std::vector<core::Event> arrived_;
  bool step_due_ = false;
  bool stopping_ = false;
  uint64_t last_token_ = 0;
  std::unordered_map<uint64_t, CountdownPtr> acks_;
  std::unordered_map<uint64_t, Reply<Status>> asks_;
  std::deque<std::pair<NodeId, Reply<std::vector<PodKey>>>> reconciles_;
  // Pods of this job that a node's agent knew when it registered, until the node is ready: (link,
  // pods).
  std::map<NodeId, std::pair<uint64_t, std::set<PodKey>>> known_;
  std::map<core::Steps, uint64_t> slots_received_;  // for pods with these steps
  std::map<core::Steps, Want> asked_;               // likewise, the last one sent
  // The objects that the scheduler and the nodes get for pods with these steps
  // (core::placed_object), and what they were made from.
  struct Objects {
    core::JobObjectPtr placed, launched;
  };
  const Objects& objects(core::Steps steps);
  std::map<core::Steps, Objects> objects_;
  core::JobObjectPtr placed_from_;
  core::Overrides placed_overrides_;
  std::map<NodeId, uint64_t> keeps_on_;  // nodes where it may reuse freed slots, with sessions
  core::RunTimes ran_;                   // of pods whose slots were reused; for the next Freed
  uint64_t wake_round_ = 0;
  std::optional<Millis> wake_ms_;  // instant of the timer
  bool hidden_reported_ = false;
  core::HostListPtr sent_hosts_;  // last sent to the agents

  std::unordered_map<uint32_t, Follower> followers_;
  std::map<caf::actor_addr, uint32_t> index_of_;
  std::deque<Millis> deaths_;
};

}  // namespace muster::actors
