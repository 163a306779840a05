// Slots: which jobs hold and wait for slots and resources, and which job gets what becomes free.
//
// Nothing here is durable: at startup, hold() restores what jobs hold, and jobs ask again for what
// they want. A job is known here only while it waits for slots or holds some. Its pods with steps
// (core/spec/values/steps.hpp), which require more, are those of a job of their own here: JobId is
// what in_steps() returns.
//
// place() goes through these steps in order:
//  - Avoidance: a node that could not start a job's pod for a reason of its own gets no more of its
//    pods for kAvoidMs. A job that would have to avoid every node is told so, and avoids none, but
//    does not try them more often than every kNowhereAgainMs.
//  - Taints: jobs must take their pods off nodes with NoExecute taints that they do not tolerate,
//    or no longer tolerate.
//  - Placement of free slots (placement.hpp).
//  - Patience: a job that needs much at once (a gang, pods with requests), has less than its fair
//    share and has waited for kPatienceMs gets a reservation (reservation.hpp). Only one job at a
//    time has one: two would each collect part of what both need. It is planned anew as pods end,
//    and lent to pods that are likely to end before it is complete.
//  - Preemption of pods of lower priority (preemption.hpp). The room is reserved for the job. Slots
//    of victims that have not ended yet count as becoming free, so no second pod is preempted for
//    the same need.
//  - Prefetch: a node gets about as many pods beyond its slots as short ones end there in
//    kPrefetchSpanMs, so that a free slot is filled at once. Only pods of the highest waiting
//    priority, never pods of gangs or pods that request resources. The node returns pods that wait
//    there too long.
//
// A round looks at nodes that have something free, at users who want something and at the jobs that
// get something, not at all that there is: what jobs hold and want is added up as it changes.
//
// Invariant: no node holds more than it has, except by prefetch or if it has shrunk.
#pragma once

#include "base/clock.hpp"
#include "core/cluster/slots/expected_start.hpp"
#include "core/cluster/slots/placement.hpp"
#include "core/cluster/slots/preemption.hpp"
#include "core/cluster/slots/recent_use.hpp"
#include "core/cluster/slots/reservation.hpp"
#include "core/queue/priority_class.hpp"
#include "core/queue/queue.hpp"
#include "core/quick_ends.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::core {

struct SlotsSettings {
  uint32_t user_pods_max = 0;  // on nodes at a time, of all jobs of one owner; 0: no limit
  // The highest priority that users may ask for in queues that do not say.
  int32_t user_priority_max = INT32_MAX;
  PlacementChoice placement = PlacementChoice::pack;  // of jobs that do not choose: pack or spread
  Millis use_half_life_ms = RecentUse::kHalfLifeMs;   // 0: recent use does not count
  // A plan, or a preemption, looks at about this many nodes, and jobs there, in one round, and goes
  // on in the next.
  size_t looks_max = 2'000;
};

class Slots {
 public:
  explicit Slots(SlotsSettings settings = {})
      : settings_(settings), use_(settings.use_half_life_ms) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  // How long a job that needs much at once competes with the others before it gets a reservation.
  static constexpr Millis kPatienceMs = 1'000;
  // Minimum interval between two plans of a reservation, and by how much it grows with the places
  // where jobs hold slots: a plan looks at all of them.
  static constexpr Millis kPlanEveryMs = 50;
  static constexpr size_t kPlacesPerMs = 50;
  // How long a job keeps away from a node that could not start its pods.
  static constexpr Millis kAvoidMs = 300'000;
  // How long a job that has nowhere else to go stays away from nodes that it has tried twice.
  static constexpr Millis kNowhereAgainMs = 2'000;
  // Minimum interval between two preemptions, and by how much it grows with the places where jobs
  // hold slots: a preemption looks at all of them.
  static constexpr Millis kPreemptEveryMs = 50;
  static constexpr size_t kPreemptPlacesPerMs = 200;

  // Adds or updates a node; nothing is placed there until it is usable.
  void set_node(const NodeInfo& info);
  void set_usable(NodeId node, bool usable);
  // The node was lost, replaced or deleted: releases everything held there.
  void remove_node(NodeId node);

  // At startup: the slots that a job's open pods hold.
  void hold(JobId job, const JobObjectPtr& object, const std::map<NodeId, uint32_t>& slots);
  // `pending`: the number of waiting pods. `received`: how many of the slots ever granted to the
  // job have arrived; the rest are in flight.
  void want(JobId job, uint32_t pending, uint64_t received, const JobObjectPtr& object);
  // `quick`: the slots freed by short pods; prefetch is based on these.
  // `ran`: how long its pods ran, of those that have exited.
  void freed(JobId job, const std::map<NodeId, uint32_t>& slots, const QuickEndsOfNodes& quick,
             const RunTimes& ran, Millis now);
  // These nodes could not start a pod of the job for a reason of their own. Call it before freed().
  void avoid(JobId job, const std::vector<NodeId>& nodes, Millis now);
  void left(JobId job);  // it has no pods left
  bool knows(JobId job) const { return clients_.contains(job); }
  bool lacks() const;  // a job waits for slots, and its owner may have them
  // Whether the job may use the slots that it frees for its next pods: if its nodes would still
  // take them and hold no more pods than slots. Not for a gang, which needs all its slots at once,
  // nor if a limit of its owner or queue is exceeded, or other jobs wait for it.
  bool may_keep(JobId job) const;
  // Whether it must not keep slots because of its queue, a limit, or others who wait for that.
  bool must_share(JobId job) const;
  // Whether limits, or rules of its queue, say how much of it may start.
  bool is_limited(JobId job) const;
  bool any_waits() const { return !waiting_.empty(); }  // for slots or a limit
  // Slots granted or occupied by a pod.
  uint32_t used(NodeId node) const;

  // All queues and priority classes that there are. Acts on jobs that wait, and ends nothing.
  void set_queues(const std::vector<Queue>& queues, const PriorityClasses& classes = {});
  // Why a job waits because of its queue.
  struct QueueWait {
    enum class Why : uint8_t { no_queue, not_open, time_limit, limit, no_node };
    std::string queue;
    Why why = Why::no_queue;
    bool per_user = false;  // the limit is of each user
    std::optional<Allowance::Shortage> shortage{};
    bool operator==(const QueueWait&) const = default;
  };
  std::map<JobId, QueueWait> queue_waits() const;

  // A user's standing in a queue, among those who hold or want slots there.
  struct Standing {
    UserId user = 0;
    std::string name;   // as in the newest of the user's jobs since the start; may be empty
    std::string queue;  // empty: of one who has had some lately, and neither holds nor wants any
    double held = 0;    // part of the cluster: the largest of slots, CPUs, memory and each device
    double use = 0;     // likewise, recently (recent_use.hpp), in all queues
    double weight = 1;  // as use leaves it
    uint64_t waiting = 0;    // pods
    double queue_level = 0;  // what all in the queue hold, over its weight; the smallest goes first
    // What is held over the weight: within a queue, the smallest goes first.
    double level() const { return held / weight; }
  };
  // By queue and user.
  std::vector<Standing> standings() const;
  // At startup: the user's use as it was `span_ms` ago.
  void restore_use(UserId user, double use, Millis span_ms) {
    use_.restore(user, use, span_ms);
    weights_known_ = false;
  }
  // Counts what users hold up to now.
  void note_use(Millis now);
  const std::map<UserId, double>& uses() const { return use_.all(); }
  // Whether anybody has held anything since the last call.
  bool take_used() { return std::exchange(used_, false); }
  // The job that places are being kept for, and when all of them are likely to be free, on the
  // clock of place().
  struct Awaited {
    JobId job = 0;
    Millis start_ms = 0;
  };
  std::optional<Awaited> awaited() const;
  // Who waits for slots and may have them, the first in line first.
  std::vector<Expectation> line(Millis now);

  // Slots that a job got on a node.
  struct Granted {
    JobId job = 0;
    NodeId node = kNoNode;
    uint32_t pods = 0;
  };
  struct Round {
    std::vector<Granted> grants;  // one for each job and node, in the order of these
    Grants victims;               // slots to take back
    std::map<JobId, std::vector<NodeId>> tainted;  // nodes that a job's pods must leave
    std::vector<JobId> nowhere;                    // jobs that would have to avoid every node
    std::optional<Millis> again_ms{};  // at the latest, call place() again after this time
    void again_in(Millis ms) { again_ms = std::min(ms, again_ms.value_or(ms)); }
  };
  // How far the wall clock is ahead of the clock of place().
  void set_wall(Millis ahead_ms) { wall_ahead_ms_ = ahead_ms; }
  // `now` never goes back (it is not the wall clock).
  Round place(Millis now);

 private:
  struct Client;
  struct Site {
    uint32_t used = 0;
    bool usable = false;
    bool listed = false;           // in open_
    Millis look_ms = 0;            // when the next job may have to leave because of taints
    Amounts taken;                 // resources of the used slots
    std::vector<Client*> tenants;  // jobs that have pods here
    NodeInfo info;
    StringMap labels;
    std::deque<std::pair<Millis, QuickEnds>> quick;  // recent
    QuickEnds recent;                                // all of them
    std::vector<Taint> taints;                       // its NoExecute taints, seen since tainted_ms
    Millis tainted_ms = 0;
    NodeEnds ends;
    bool ending = false;  // some of them are to come, or now
  };
  // A user, or those without an owner, in one queue.
  struct Sharer {
    UserShare share;
    Allowance own;
    size_t jobs = 0;  // that hold or want slots
  };
  struct InQueue {
    std::optional<Queue> stored;
    QueueShare share;
    Allowance total;
    std::map<std::optional<UserId>, Sharer> users;
    size_t jobs = 0;     // that hold or want slots
    double weights = 0;  // of its users who do
    mutable std::optional<bool>
        nodeless{};  // no node has the labels that it selects; absent: unknown
  };
  struct User {
    Allowance all;    // in all queues
    size_t jobs = 0;  // that hold or want slots
  };
  // What each grant looks at comes first: with 10^4 jobs, most of it is far from what was used
  // last.
  struct Client : WaitingJob {
    JobObjectPtr object;
    uint32_t pending = 0;
    bool active = false;  // counted in `jobs` of its user, sharer and queue
    bool asked = false;   // it has called want() since the start, so it can give slots back
    std::optional<QueueWait::Why> barred;  // by its queue
    uint64_t received = 0;
    uint64_t granted = 0;
    Holdings places;
    Millis pause_ms = 0;                                    // after a plan that failed
    std::optional<int32_t> rank;                            // its priority, as counted in ranks_
    std::optional<Millis> short_since;                      // waiting without a grant since then
    std::map<NodeId, std::pair<uint32_t, Millis>> leaving;  // preempted slots; awaited until then
    Demand need;
    User* person = nullptr;
    Sharer* sharer = nullptr;
    InQueue* queue = nullptr;
    RunTimes ran;  // of its pods, the recent ones first of all
    std::optional<UserId> owner;
    std::optional<Owner> facts;  // of the owner
    int32_t template_priority = 0;
    bool template_preempts = true;
    Millis taint_notified_ms = 0;          // when it was last notified of taints
    Millis reserved_notified_ms = 0;       // likewise, of reserved nodes
    std::map<NodeId, Millis> avoid_until;  // need.avoids
    bool told_nowhere = false;             // that it would have to avoid every node
    std::optional<Millis> tried_again_ms;  // when it last ceased to avoid all of them

    // Grants in flight count against what the job wants.
    uint32_t lacking() const {
      uint64_t coming = granted - received;
      return pending > coming ? static_cast<uint32_t>(pending - coming) : 0;
    }
    bool idle() const {
      return pending == 0 && places.empty() && granted == received && avoid_until.empty();
    }
    bool needs_much() const { return pack ? !pack->plain : need.gang || !need.amounts.none(); }
  };

  // How many pods may be prefetched to a node now.
  struct Ahead {
    uint32_t pods;
    Site* site;
  };

  // Where a preemption in a large cluster looks next.
  struct Search {
    NodeId next = 0;
    int32_t below = INT32_MIN;  // the priority of pods that may have to end; that: none yet
    int32_t found_below = 0;    // likewise, for what it has found
    std::vector<NodeId> found;  // where there are some
    uint64_t offered = 0;       // places for pods, at most
    JobId job = 0;              // the gang that it is for
  };
  // What a preemption looks at in a round.
  struct Scope {
    std::vector<FreeNode> nodes;
    std::vector<Holder> holders;
    JobId gang = 0;   // for which there may be enough now; 0: none
    bool all = true;  // every node has been looked at by now
  };
  // In the making: what jobs hold without what is prefetched.
  struct Noting {
    std::vector<double> parts;  // by node: of its pods that have a slot. Empty: all
    size_t next = 0;            // bucket of clients_
    size_t buckets = 0;
  };

  // slots.cpp
  Site* site(NodeId node) const;
  void open(Site& site);
  void set_ends(Site& site, NodeEnds ends);
  Client& client(JobId job);
  void learn(Client& client, const JobObjectPtr& object);
  // What a job holds and waits since, while it is not counted.
  struct Uncounted {
    uint32_t pods = 0;
    std::optional<Millis> since;
  };
  Uncounted uncount(Client& client);
  void count_again(Client& client, const Uncounted& was);
  void settle(Client& client);
  void take(Client& client, NodeId node, uint32_t count, Millis now);
  void release(Client& client, NodeId node, uint32_t count);
  void forget_idle(Client& client);
  std::vector<Client*> by_id();
  FreeNode free_node(const Site& site, Millis now) const;
  uint32_t prefetch_max(Site& site, Millis now) const;
  void find_free(Millis now, std::vector<FreeNode>& free, std::vector<Ahead>& ahead);
  bool any_may_have(const Line& line) const;
  JobId next_served() const;
  std::vector<WaitingJob*> reserved(Millis now);
  void grant(const std::vector<Placed>& placed, Millis now, Round& round);
  void use_reserved(JobId job, NodeId node, uint32_t count);
  std::vector<FreeNode> first_ahead(std::vector<Ahead> ahead, Millis now, Round& round) const;
  void place_ahead(std::vector<Ahead> ahead, Millis now, Round& round);
  void leave_tainted(Millis now, Round& round);
  void leave_reserved(Millis now, Round& round);
  void look_elsewhere(Millis now, Round& round);
  bool has_somewhere(const Client& client) const;
  // queues.cpp
  void enrol(Client& client);
  const Queue* queue_of(const Client& client) const;
  std::optional<QueueWait::Why> bar(const Client& client) const;
  bool has_no_node(const InQueue& queue) const;
  void forget_nodeless();
  // shares.cpp
  void note_changes();
  bool note_parts(Noting& noting);
  void recount();
  double cost(const Demand& demand) const;
  double part(double slots) const;
  double weight_of(const InQueue& queue, UserId user, size_t users) const;
  std::map<UserId, double> held_by_users() const;
  bool has_its_share(const Client& client) const;
  // reserving.cpp
  void drop_reservation(JobId job);
  // Counts the places that are kept for the job now under its limits.
  void count_kept(Client& client);
  void set_short_since(Client& client, std::optional<Millis> since);
  std::optional<Millis> runs_ms(const Client& client) const;
  Millis ends_at(const Client& client, const Holding& holding, Millis now) const;
  Outlook outlook(const Site& site, const Client& client, Millis now) const;
  const Planning* look_around(const Client& client, Millis now);
  bool can_use(const Client& client, const Reservation& kept) const;
  Client* most_patient(Millis now);
  void begin_to_wait(Millis now);
  bool could_ever_start(const Client& client) const;
  void count_rivals(std::vector<Expectation>& line) const;
  bool be_patient(Millis now, Round& round);
  bool plan_anew(Millis now, Round& round);
  void give_up_plan(Client& client, Millis now);
  void keep(Client& client, const Plan& plan);
  void expect_at(Due due);
  void preempt(Millis now, Round& round);
  std::vector<Client*> preemptors(int32_t lowest);
  Scope look_for_victims(const std::vector<Client*>& waiting,
                         const std::map<JobId, Reservation>& before, bool whole, Millis now);
  void add_holders(const Site& site, int32_t below, std::vector<Holder>& holders) const;
  bool look_further(Search& search, int32_t highest, const Client* gang, Millis now);
  int32_t above(int32_t than, int32_t highest) const;
  Client* next_gang(const std::vector<Client*>& waiting,
                    const std::map<JobId, Reservation>& before);
  void make_room(Preemption& preemption, const std::vector<Client*>& jobs, Millis now,
                 Round& round);

  const SlotsSettings settings_;
  std::map<NodeId, Site> sites_;
  std::vector<Site*> site_of_;  // by id, as far as any has been set; null: there is none
  std::vector<std::pair<NodeId, Site*>> open_;  // may have free slots, or room for prefetch
  Amounts all_;                                 // what all nodes have together
  uint64_t all_slots_ = 0;                      // likewise
  bool costs_known_ = true;                     // otherwise, they are of other nodes
  size_t tainted_ = 0;                          // nodes with NoExecute taints
  size_t ending_ = 0;                           // nodes that end or are reserved
  size_t places_ = 0;                           // pairs of a job and a node where it has pods
  Millis wall_ahead_ms_ = 0;
  std::unordered_map<JobId, Client> clients_;
  WaitingJobs waiting_;
  std::set<JobId> wanting_;          // those in waiting_
  std::set<JobId> avoiding_;         // those with avoid_until
  JobId first_served_ = 0;           // in this round, among equals
  std::map<int32_t, size_t> ranks_;  // jobs that can give slots back, by priority

  std::map<std::string, InQueue> queues_;
  PriorityClasses classes_;
  uint32_t queue_numbers_ = 0;
  std::map<std::optional<UserId>, User> users_;
  size_t active_users_ = 0;
  double queue_weights_ = 0;  // of queues whose jobs hold or want slots
  bool weights_known_ = false;
  RecentUse use_;
  std::optional<Millis> use_noted_ms_;
  std::optional<Noting> noting_;
  bool used_ = false;                    // somebody has held something since take_used()
  std::map<UserId, std::string> names_;  // of owners

  std::map<JobId, Reservation> reservations_;
  std::vector<JobId> fresh_;  // may need a short_since
  // Jobs with a short_since that need much at once, by priority and then by that; and by it alone.
  std::set<std::tuple<int64_t, Millis, JobId>> patience_;
  std::set<std::pair<Millis, JobId>> due_;
  Millis next_look_ms_ = 0;         // for the one to get a reservation
  std::optional<JobId> patient_;    // the job that patience gave a reservation
  Millis start_ms_ = 0;             // when that is likely to be complete
  Millis lend_until_ms_ = 0;        // what was first expected: its places are not lent beyond
  Millis patient_ms_ = 0;           // when it got that
  Millis due_ms_ = 0;               // since when it is late, if it is still there
  std::optional<Millis> first_ms_;  // of the first round
  Millis next_plan_ms_ = 0;         // no plan is made before
  // What it looks at for that, from this node on.
  std::optional<Planning> planning_;
  JobId planned_job_ = 0;
  NodeId next_planned_ = 0;
  Millis next_preempt_ms_ = 0;  // nothing is preempted before
  std::set<JobId> leaving_;     // jobs with preempted slots
  Search search_, gang_search_;
};

}  // namespace muster::core
