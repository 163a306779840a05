// Node: what an agent decides.
//
// Pods are launched and killed by the coordinator; their processes start and end in some pair of
// hands (the keeper's, hollow ones, a simulation's). Node sits between: it is told of everything
// that happens and says, when asked by next(), what to start, to kill, to report and to forget.
// What arrived between two next() is one batch.
//
// Always holds:
//  - at most `slots` pods run, the others wait in the order of their launch;
//  - nothing is started outside the lease, nor while a pod that the coordinator disowned (fenced)
//  is still alive;
//  - a pod id is started once; a kill is answered by an end, also for a pod that waits or was never
//  heard of;
//  - an end is kept, and reported again after each registration, until the report that carried it
//  has returned;
//  - no order of an older epoch is obeyed, nor of an equal one with another nonce (two coordinators
//  on copies of one
//    data-dir).
//
// A pod is a sequence of processes; `Step` names the one that runs. Today the first step is the
// only one: the end of the process is the end of the pod.
//
// Pure: no I/O, no clock. Instants are boot-time milliseconds. O(log n) an event.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::core::node {

// One process of a pod. Containers are numbered init containers first; `instance` counts restarts
// in place.
struct Step {
  uint16_t container = 0;
  uint16_t instance = 0;
  auto operator<=>(const Step&) const = default;
};

// Whose orders: `nonce` tells two coordinators apart that came to the same epoch on copies of one
// data-dir.
struct Term {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  bool operator==(const Term&) const = default;
};

struct Launch {
  PodId pod;
  Millis grace_ms = 0;  // between SIGTERM and SIGKILL, when the agent itself has to end it
};

struct Kill {
  PodId pod;
  Millis grace_ms = 0;  // 0: SIGKILL at once
};

struct ProcessStart {
  PodId pod;
  Step step;
  int pid = 0;
  Millis at = 0;
};

struct ProcessEnd {
  PodId pod;
  Step step;
  uint64_t entry = 0;  // in the keeper's spool; 0: none
  int pid = 0;         // 0: it never started
  int exit_code = 0;
  int signal = 0;
  bool lost = false;  // its keeper died: the exit code is unknown
  std::string error;  // why it could not be started
  Millis started_at = 0;
  Millis ended_at = 0;
};

// A living process that the hands know, at their (re)connect.
struct Living {
  ProcessStart process;
  Millis grace_ms = 0;
  bool killing = false;  // a kill was ordered already
};

enum class Cause : uint8_t {  // as wire::PodEnd::Cause, in the same order
  exited,
  killed,
  never_started,
  start_failed,
  keeper_lost,
  agent_stopped,
  fenced,
  deadline,
  out_of_memory,
};

struct PodStarted {
  PodId pod;
  int pid = 0;
  Millis at = 0;
  uint32_t restarts = 0;
};

struct PodEnded {
  PodId pod;
  Cause cause = Cause::exited;
  int exit_code = 0;
  int signal = 0;
  std::string message;
  Millis started_at = 0;  // meaningless when pid is 0
  Millis ended_at = 0;
  int pid = 0;  // 0: never started
  uint32_t restarts = 0;
};

struct Report {
  uint64_t id = 0;
  std::vector<PodStarted> starts;  // without those whose end is known already
  std::vector<PodEnded> ends;
};

struct StartOrder {
  PodId pod;
  Step step;
};

struct KillOrder {
  PodId pod;
  Step step;
  Millis grace_ms = 0;
};

// To be carried out in this order: kills before starts.
struct Orders {
  std::vector<KillOrder> kills;
  std::vector<StartOrder> starts;
  std::vector<Report> reports;
  std::vector<uint64_t> forget;  // entries of the spool whose ends are on the coordinator's disk
  std::vector<PodId> over;       // nothing of these will be started any more
  Millis again_at = 0;           // ask again then, at the latest; 0: whenever something happens
};

struct Welcome {
  Term term;
  std::vector<PodId> end;  // not open for this node
  Millis lease_ms = 0;
};

class Node {
 public:
  static constexpr size_t kListMax = 512;   // entries of a list in a report
  static constexpr size_t kReportsMax = 4;  // in flight
  static constexpr size_t kGatherFrom =
      16;  // pods here or not acked: with fewer, a slot would be idle

  // `gather_ms`: a report that is not full waits until this long after the one before it. At high
  // rates that makes lists of what would be single ends, each with a sync of its own; when little
  // happens, or few pods are here, a report goes at once.
  explicit Node(uint32_t slots, Term highest = {}, Millis gather_ms = 0)
      : slots_(slots), gather_ms_(gather_ms), term_(highest) {}

  // --- what the coordinator says. False: it is not obeyed, its term is a past one.
  // `sent_at` is when the registration was sent; it counts as a heartbeat.
  bool registered(const Welcome& welcome, Millis sent_at);
  bool launch(Term term, const std::vector<Launch>& pods, Millis now);
  bool kill(Term term, const std::vector<Kill>& kills, Millis now);
  bool heartbeat_answered(Term term, Millis sent_at);
  void report_returned(uint64_t id);
  // The connection is gone, or the registration was superseded: what was under way will be reported
  // again.
  void disconnected();
  // A refused agent too is told what to end.
  void fence(const std::vector<PodId>& pods, Millis now);
  // A coordinator of another cluster is served from now on; only when empty().
  void new_cluster();

  // --- what the hands say
  void process_started(const ProcessStart& start);
  void process_ended(const ProcessEnd& end);
  // All that new hands know. What was under way with the old ones and is not listed: waits again
  // when it had not been started, else it is lost.
  void hands_connected(const std::vector<Living>& living, const std::vector<ProcessEnd>& ended,
                       Millis now);

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
  bool idle() const { return pods_.empty(); }
  bool empty() const { return pods_.empty() && unacked_.empty(); }
  size_t unacked() const { return unacked_.size(); }

 private:
  struct Pod {
    bool running = false;  // ordered to start; else it waits
    bool adopted = false;  // heard of from the hands, never launched here: it can't be started
    Step step;
    Millis grace_ms = 0;
    int pid = 0;  // of the newest process; 0: not known to have started
    Millis started_at = 0;
    uint32_t restarts = 0;
    bool start_acked = false;
    std::optional<Cause> stop;  // ordered to end, and why
    Millis stop_grace_ms = 0;
    std::vector<uint64_t> entries;  // of its earlier processes
  };
  struct Unacked {
    PodEnded end;
    std::vector<uint64_t> entries;
  };
  struct Flight {
    std::vector<PodId> starts, ends;
  };
  using Pods = std::map<PodId, Pod>;

  bool obeys(Term term);
  bool may_start(Millis now) const;
  void stop_pod(Pods::iterator pod, Cause why, Millis grace_ms, Millis now);
  void finish(PodEnded end, std::vector<uint64_t> entries);
  void finish_unstarted(Pods::iterator pod, Cause why, Millis now);
  Report take_report();
  void take_reports(Orders& orders, Millis now);

  const uint32_t slots_;
  const Millis gather_ms_;
  Millis reported_at_ = 0;  // when the last report was made
  Term term_;               // highest seen
  bool connected_ = false;
  bool stopping_ = false;
  Millis lease_ms_ = 0;
  Millis lease_until_ = 0;  // nothing is started from then on
  uint32_t running_ = 0;
  Pods pods_;
  std::map<PodId, Unacked> unacked_;
  std::set<PodId> fencing_;    // fenced and not yet dead
  std::deque<PodId> waiting_;  // may name pods that wait no longer
  std::deque<PodId> starts_;   // to be reported; may name pods that have ended
  std::deque<PodId> ends_;     // to be reported
  std::map<uint64_t, Flight> flights_;
  uint64_t last_report_ = 0;
  std::vector<KillOrder> kills_;
  std::vector<uint64_t> forget_;
  std::vector<PodId> over_;
};

}  // namespace muster::core::node
