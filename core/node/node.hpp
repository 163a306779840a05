// Node: what an agent decides.
//
// Pods are launched and killed by the coordinator; their processes start and end in some pair of
// executor (the keeper's, hollow ones, a simulation's). Node sits between: it is told of everything
// that happens and says, when asked by next(), what to start, to kill, to report and to forget.
// What arrived between two next() is one batch.
//
// Always holds:
//  - at most `slots` pods run, the others wait in the order of their launch, and those that waited
//  for long are returned;
//  - nothing is started outside the lease, nor while a pod that the coordinator disowned (fenced)
//  is still alive; an order to start carries the lease's end, and what the executor did not start
//  for it waits here for the next lease;
//  - while the executor is in trouble (pulse.hpp) nothing is started, and what waits is returned;
//  - a pod id is begun once; a kill is answered by an end, also for a pod that waits, that is
//  between two of its processes, or that was never heard of;
//  - an end is kept, and reported again after each registration, until the report that carried it
//  has returned and did not name it as one to keep;
//  - no order of an older epoch is obeyed, nor of an equal one with another nonce (two coordinators
//  on copies of one data-dir).
//
// A pod is a sequence of processes, told apart by their Step; which comes when is PodRun's. It
// holds its slot, and its devices, from its first process to its end, between two of them too.
//
// Pure: no I/O, no clock. Instants are boot-time milliseconds. O(log n) an event.
#pragma once

#include "core/node/devices.hpp"
#include "core/node/pod_run.hpp"
#include "core/node/values.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace muster::core::node {

class Node {
 public:
  static constexpr size_t kListMax = 512;   // entries of a list in a report
  static constexpr size_t kReportsMax = 4;  // in flight
  // So long a pod waits here while all slots are taken; then other nodes may have some.
  static constexpr Millis kWaitMaxMs = 2'000;
  // The executor is left alone for so long after it could not start something.
  static constexpr Millis kHoldMs = 1'000;
  static constexpr size_t kGatherFrom =
      16;  // pods here or not acked: with fewer, a slot would be idle

  // `gather_ms`: a report that is not full waits until this long after the one before it. At high
  // rates that makes lists of what would be single ends, each with a sync of its own; when little
  // happens, or few pods are here, a report goes at once.
  explicit Node(uint32_t slots, Term highest = {}, Millis gather_ms = 0,
                const DeviceCounts& devices = {})
      : slots_(slots), gather_ms_(gather_ms), term_(highest), devices_(devices) {}

  // --- what the coordinator says. False: it is not obeyed, its term is a past one.
  // `sent_at` is when the registration was sent; it counts as a heartbeat.
  bool registered(const Welcome& welcome, Millis sent_at);
  bool launch(Term term, const std::vector<Launch>& pods, Millis now);
  bool kill(Term term, const std::vector<Kill>& kills, Millis now);
  bool heartbeat_answered(Term term, Millis sent_at);
  // `kept`: ends that were not taken; they are kept for the next registration.
  void report_returned(uint64_t id, const std::vector<PodId>& kept = {});
  // The connection is gone, or the registration was superseded: what was under way will be reported
  // again.
  void disconnected();
  // A refused agent too is told what to end.
  void fence(const std::vector<PodId>& pods, Millis now);
  // A coordinator of another cluster is served from now on; only when empty().
  void new_cluster();

  // --- what the executor says
  void process_started(const ProcessStart& start);
  void process_ended(const ProcessEnd& end);
  // All that a new executor knows. What was under way with the old one and is not listed: waits
  // again when it had not been started, else it is lost.
  void executor_connected(const std::vector<Living>& living, const std::vector<ProcessEnd>& ended,
                          Millis now);

  // Whether they are in trouble: they do not answer, or cannot note what they do.
  void executor_in_trouble(bool trouble) { executor_in_trouble_ = trouble; }

  // The node is short of memory: this pod ends at once (hard eviction).
  void evict(PodId pod, Millis now);
  // The agent drains: every pod is ended with its grace, whatever comes is turned away.
  void stop(Millis now);

  // What is to be done now.
  Orders next(Millis now);

  // --- what is told at registration
  Term term() const { return term_; }
  std::vector<PodId> running() const;
  std::vector<PodId> waiting() const;
  std::vector<PodId> ended() const;

  bool knows(PodId pod) const { return pods_.contains(pod) || unacked_.contains(pod); }
  bool runs(PodId pod) const { return pods_.contains(pod); }  // or waits
  // Pods that run and were not told to end, with the pids of their containers' first processes.
  std::vector<std::pair<PodId, std::vector<int>>> processes() const;
  bool idle() const { return pods_.empty(); }
  bool empty() const { return pods_.empty() && unacked_.empty(); }
  size_t unacked() const { return unacked_.size(); }

 private:
  struct Pod {
    explicit Pod(PodPlanPtr plan, Millis grace) : run(std::move(plan)), grace_ms(grace) {}
    PodRun run;
    bool running = false;  // it has a slot; else it waits
    bool adopted = false;  // heard of from the executor, never launched here
    Millis grace_ms = 0;
    Millis launched_at = 0;
    DeviceMapPtr devices{};
    PodRun::Shown shown{};           // what was told, or is about to be
    uint32_t told = 0, acked = 0;    // versions of it
    std::optional<EndCause> stop{};  // ordered to end, and why
    Millis stop_grace_ms = 0;
    Millis timer_at = 0;  // in timers_; 0: not
  };
  struct Unacked {
    PodEnded end;
    std::vector<uint64_t> entries;
  };
  struct Flight {
    std::vector<std::pair<PodId, uint32_t>> starts;  // and which version of it
    std::vector<PodId> ends;
  };
  using Pods = std::map<PodId, Pod>;

  bool obeys(Term term);
  bool in_charge(Millis now) const;
  bool may_start(Millis now) const;
  Pods::iterator adopt(PodId id, const Origin& origin, Millis grace_ms);
  void stop_pod(Pods::iterator pod, EndCause why, Millis grace_ms, Millis now);
  void order_kills(PodId id, const Pod& pod);
  void refuse(Pods::iterator pod, Millis now);
  void not_started(Pods::iterator pod, const ProcessEnd& end);
  void wait_again(Pods::iterator pod);
  void complete(Orders& orders, size_t from, const Pod& pod) const;
  void go_on(Pods::iterator pod, Millis now);
  void finish(Pods::iterator pod, Millis now);
  void finish(Pods::iterator pod, PodEnded end);
  void finish(PodEnded end, std::vector<uint64_t> entries);
  void release(Pod& pod);
  void lose_what_is_not(const std::set<std::pair<PodId, uint16_t>>& alive, Millis now);
  static std::optional<Millis> deadline_of(const Pod& pod);
  void set_timer(PodId id, Pod& pod);
  void run_timers(Millis now);
  void start_due(Orders& orders, Millis now);
  void start_waiting(Orders& orders, Millis now);
  Millis return_waiting(Millis now);
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
  Millis hold_until_ = 0;  // nothing is started before
  Millis lease_ms_ = 0;
  Millis lease_until_ = 0;  // nothing is started from then on
  uint32_t running_ = 0;
  Devices devices_;
  Pods pods_;
  std::map<PodId, Unacked> unacked_;
  std::set<PodId> fencing_;                    // fenced and not yet dead
  std::deque<PodId> waiting_;                  // may name pods that wait no longer
  std::set<std::pair<Millis, PodId>> timers_;  // restarts and deadlines, of pods with a slot
  std::set<PodId> due_;                        // something of these is to be started now
  std::vector<PodId> changed_;                 // what is shown of these may have
  std::deque<PodId> starts_;                   // to be reported; may name pods that have ended
  std::deque<PodId> ends_;                     // to be reported
  std::vector<PodId> kept_;                    // to be reported after the next registration
  std::map<uint64_t, Flight> flights_;
  uint64_t last_report_ = 0;
  std::vector<KillOrder> kills_;
  std::vector<uint64_t> forget_;
  std::vector<PodId> over_;
};

}  // namespace muster::core::node
