// Node: what an agent decides.
//
// The coordinator launches and kills pods; an executor (the keeper, a hollow one, the simulation's)
// starts and ends their processes. Node sits between them: it receives every event, and next()
// returns what to start, kill, report and forget. Everything that arrives between two calls of
// next() is one batch.
//
// Invariants:
//  - while `slots` pods run, no other pod starts; pods wait in launch order and are returned if
//    they wait too long. If the executor queues, pods with a single process that is never restarted
//    wait there, because the executor is the first to know that a slot is free. A pod of several
//    processes waits here until fewer pods than slots are ordered, so that the room for queued
//    processes (Orders::room) never has to shrink below what the executor runs;
//  - nothing starts outside the lease, or while a fenced pod is still alive; a start order carries
//    the end of the lease, and a process that missed it waits here for the next lease;
//  - while the executor is in trouble (pulse.hpp), nothing starts and waiting pods are returned;
//  - while new pods are held, the same applies to pods of which no process has started yet;
//  - a pod with an epilog keeps its slot and devices until that is over, and is reported then, with
//    the end that it had; epilogs start outside the lease, too, since they are not the pod;
//  - after a start that failed for a reason of the node (no memory, a full disk), nothing starts
//  for
//    a while, which doubles each time until a process has started;
//  - a known pod is never started again; every kill is answered by an end, even if the pod waits,
//    is between two of its processes, or is unknown;
//  - an end is kept, and reported again after each registration, until a report that carried it has
//    returned without asking to keep it;
//  - orders from an older epoch are ignored, and so are orders from the same epoch with another
//    nonce (two coordinators on copies of one data-dir).
//
// A pod is a sequence of processes, identified by their Step; PodRun decides which starts when. A
// pod holds its slot and devices from its first process to its end, even between two processes.
//
// Pure: no I/O, no clock. Instants are boot-time milliseconds. O(log n) per event.
#pragma once

#include "core/node/devices.hpp"
#include "core/node/pod_run.hpp"
#include "core/node/pulse.hpp"
#include "core/node/values.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::core::node {

class Node {
 public:
  static constexpr size_t kReportsMax = 4;  // reports in flight
  // How long a pod waits while all slots are taken before it is returned, since other nodes may
  // have free ones.
  static constexpr Millis kWaitMaxMs = 2'000;
  // How long nothing is started after the executor has failed to start a process.
  static constexpr Millis kHoldMs = 1'000;
  // The same after a start that failed for a reason of the node.
  static constexpr Millis kFaultHoldMinMs = 2'000, kFaultHoldMaxMs = 60'000;
  static constexpr size_t kGatherFrom =
      16;  // pods here or unacknowledged; with fewer, a delay would idle slots

  // `gather_ms`: a report that is not full waits until this long after the previous one. At high
  // rates this turns single ends, each with its own sync, into lists; when little happens or few
  // pods are here, a report goes out at once.
  explicit Node(uint32_t slots, Term highest = {}, Millis gather_ms = 0, Devices devices = {})
      : slots_(slots), gather_ms_(gather_ms), term_(highest), devices_(std::move(devices)) {}

  // --- from the coordinator. False: ignored, because its term is stale. `sent_at`: when the
  // registration was sent, which counts as a heartbeat.
  bool registered(const Welcome& welcome, Millis sent_at);
  bool launch(Term term, const std::vector<Launch>& pods, Millis now);
  bool kill(Term term, const std::vector<Kill>& kills, Millis now);
  bool limit(Term term, const std::vector<Limit>& limits, Millis now);
  bool heartbeat_answered(Term term, Millis sent_at);
  // `kept`: ends that were not acknowledged; they are kept for the next registration.
  void report_returned(uint64_t id, const std::vector<PodId>& kept = {});
  // The connection is lost, or the registration was superseded: reports in flight will be repeated.
  void disconnected();
  // Ends pods that are not open here; a refusal may list some too.
  void fence(const std::vector<PodId>& pods, Millis now);
  // Serves a coordinator of another cluster from now on. Requires empty().
  void new_cluster();

  // --- from the executor
  void process_started(const ProcessStart& start);
  void process_ended(const ProcessEnd& end);
  // Everything that a new executor knows. Processes of the old one that are not listed are lost if
  // they had started; otherwise they go back to waiting.
  void executor_connected(const std::vector<Living>& living, const std::vector<ProcessEnd>& ended,
                          Millis now);

  // The executor is gone and none has replaced it: whatever it had begun, or may have, is lost with
  // it. Called after a grace, and after the processes() have been killed.
  void executor_lost(Millis now);

  // Whether the executor starts queued orders on its own. Call this before executor_connected().
  void executor_queues(bool queues) { executor_queues_ = queues; }
  // Whether the executor does not answer or cannot persist what it does.
  void executor_in_trouble(bool trouble) { executor_in_trouble_ = trouble; }
  // Whether pods that have not begun must not, as while a health check fails. Others go on: their
  // next containers start, and failed ones are restarted in place.
  void hold_new_pods(bool hold) { new_pods_held_ = hold; }
  // How many processes have started, of those that this object was told of.
  uint64_t started() const { return started_; }
  // Why nothing starts after a start that failed for a reason of the node. No trouble: it may.
  Trouble start_trouble(Millis now) const;

  // The node is short of memory: this pod ends at once (hard eviction).
  void evict(PodId pod, Millis now);
  // Ends a started pod with its grace, unless it is already ending; the end gets this cause and
  // message. A pod that is unknown or has not started is left alone.
  void give_up(PodId pod, EndCause why, std::string message, Millis now);
  // The agent drains: every pod is ended with its grace, and new ones are rejected.
  void stop(Millis now);

  // What to do now.
  Orders next(Millis now);

  // The latest time to start a process whose start order has not been passed on yet. `now` or
  // earlier: do not start it now. nullopt: it is no longer wanted.
  std::optional<Millis> start_by(PodId pod, Step step, Millis now) const;

  // --- for the registration
  Term term() const { return term_; }
  std::vector<PodId> running() const;
  std::vector<PodId> waiting() const;
  std::vector<PodId> ended() const;
  // The first of these ends, except those of processes lost with their keeper.
  std::vector<PodEnded> ends(size_t most) const;

  bool knows(PodId pod) const { return pods_.contains(pod) || unacked_.contains(pod); }
  bool runs(PodId pod) const { return pods_.contains(pod); }  // or waits
  bool runs(PodId pod, uint16_t container) const;             // it is known to have a process
  // All processes that are known to run.
  std::vector<ProcessStart> living() const;
  // Running pods that were not ordered to end, with the pids of their containers' main processes.
  std::vector<std::pair<PodId, std::vector<int>>> processes() const;
  DeviceMapPtr devices_of(PodId pod) const {
    const auto found = pods_.find(pod);
    return found == pods_.end() ? nullptr : found->second.devices;
  }
  bool idle() const { return pods_.empty(); }
  bool empty() const { return pods_.empty() && unacked_.empty(); }
  size_t unacked() const { return unacked_.size(); }

 private:
  struct Pod {
    Pod(PodPlanPtr plan, Millis grace)
        : run(std::move(plan)),
          limit_ms(run.planned() ? run.plan()->deadline_ms : std::nullopt),
          grace_ms(grace) {}
    PodRun run;
    std::optional<Millis> limit_ms;  // from its first process
    bool running = false;    // it has a slot, or is queued at the executor; else it waits here
    bool queued = false;     // running, by a queued order
    Millis queued_at = 0;    // when it was ordered, if queued
    bool withdrawn = false;  // the executor was ordered to drop it unless it has begun
    bool adopted = false;    // known from the executor, never launched here
    Millis grace_ms = 0;
    uint64_t number = 0;  // in launch order, which is the order of waiting_
    Millis launched_at = 0;
    DeviceMapPtr devices{};
    PodRun::Shown shown{};             // what was reported, or is about to be
    uint32_t reported = 0, acked = 0;  // versions of `shown`
    std::optional<EndCause> stop{};    // why it was ordered to end, if it was
    std::string stop_message{};        // from give_up()
    Millis stop_grace_ms = 0;
    std::optional<Millis> timer_at{};  // its instant in timers_
    bool signalled = false;            // PodPlan::signal was ordered
    bool hook_killed = false;          // its running hook was, at its time limit
  };
  struct Unacked {
    PodEnded end;
    std::vector<uint64_t> entries;
  };
  struct Flight {
    std::vector<std::pair<PodId, uint32_t>> starts;  // with the version of `shown`
    std::vector<PodId> ends;
  };
  using Pods = std::map<PodId, Pod>;

  bool obeys(Term term);
  bool in_charge(Millis now) const;
  bool may_start(Millis now) const;
  bool cannot_start(Millis now) const;
  bool held(const Pod& pod) const { return new_pods_held_ && !pod.run.ran(); }
  std::string why_not(Millis now) const;
  Pods::iterator adopt(PodId id, const Origin& origin, Millis grace_ms);
  void stop_pod(Pods::iterator pod, EndCause why, Millis grace_ms, Millis now);
  void order_kills(PodId id, const Pod& pod);
  void refuse(Pods::iterator pod, Millis now);
  void process_lives(Pods::iterator found, Step step);
  void not_started(Pods::iterator pod, const ProcessEnd& end);
  void hold_after(const ProcessEnd& fault);
  void note_start(Millis at);
  void not_begun(Pods::iterator pod, std::string why, Millis now);
  void wait_again(Pods::iterator pod);
  void complete(Orders& orders, size_t from, const Pod& pod) const;
  void renew(Millis sent_at);
  Millis fence_of(const Pod& pod) const;
  static bool is_fenced(const Pod& pod, const ProcessEnd& end);
  static void stop_fenced(Pod& pod);
  void go_on(Pods::iterator pod, Millis now);
  void finish(Pods::iterator pod, Millis now);
  void finish(Pods::iterator pod, PodEnded end);
  void finish(PodEnded end, std::vector<uint64_t> entries);
  void release(Pod& pod);
  void lose(PodId id, Pod& pod, Step step, Millis now);
  void lose_what_is_not(const std::set<std::pair<PodId, uint16_t>>& alive, Millis now);
  static std::optional<Millis> deadline_of(const Pod& pod);
  static std::optional<Millis> signal_of(const Pod& pod);
  void order_signals(PodId id, Pod& pod);
  void set_timer(PodId id, Pod& pod);
  void forget_timer(PodId id, Pod& pod);
  void run_timers(Millis now);
  static bool is_late(const Pod& pod, const Living& hook, Millis now);
  void start_epilogs(Orders& orders, Millis now);
  void start_due(Orders& orders, Millis now);
  void start_waiting(Orders& orders, Millis now);
  std::optional<Millis> return_waiting(Millis now);
  std::optional<Millis> withdraw_queued(Orders& orders, Millis now);
  void set_room(Orders& orders, Millis now);
  void tell_changes();
  Report take_report();
  void take_reports(Orders& orders, Millis now);

  const uint32_t slots_;
  const Millis gather_ms_;
  Millis reported_at_ = 0;  // when the last report was made
  Term term_;               // highest seen
  bool connected_ = false;
  bool stopping_ = false;
  bool executor_in_trouble_ = false;
  bool new_pods_held_ = false;
  bool executor_queues_ = false;
  Millis hold_until_ = 0;     // nothing starts before this
  Millis fault_hold_ms_ = 0;  // the last hold after a node fault; 0: a process started since
  Millis fault_until_ = 0;    // its end
  std::string fault_{};       // what failed
  uint64_t started_ = 0;
  Millis last_start_at_ = 0;  // of these
  Millis lease_ms_ = 0;
  Millis lease_until_ = 0;  // nothing starts from then on
  Millis contact_at_ = 0;   // when the last heartbeat that was answered was sent; 0: none
  std::optional<Millis> contact_notified_;  // last contact_at_ that this executor got
  uint64_t last_number_ = 0;
  uint32_t running_ = 0;
  uint32_t queued_ = 0;           // part of running_
  std::optional<uint32_t> room_;  // last ordered
  Devices devices_;
  Pods pods_;
  std::map<PodId, Unacked> unacked_;
  std::set<PodId> fencing_;                    // fenced and still alive
  std::deque<PodId> waiting_;                  // may contain pods that no longer wait
  std::deque<PodId> queue_;                    // queued pods; may contain some that have started
  std::set<std::pair<Millis, PodId>> timers_;  // restarts and deadlines, of pods with a slot
  std::set<PodId> due_;                        // pods with a process to start now
  std::set<PodId> epilogs_;                    // pods with an epilog to start now
  std::vector<PodId> changed_;                 // pods whose `shown` may have changed
  std::deque<PodId> starts_;                   // to report; may contain pods that have ended
  std::deque<PodId> ends_;                     // to be reported
  std::vector<PodId> kept_;                    // to report after the next registration
  std::map<uint64_t, Flight> flights_;
  uint64_t last_report_ = 0;
  std::vector<KillOrder> kills_;
  std::vector<SignalOrder> signals_;
  std::vector<uint64_t> forget_;
  std::vector<PodId> over_;
};

}  // namespace muster::core::node
