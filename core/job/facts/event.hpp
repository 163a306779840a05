// Events: what a job reacts to. All events that have arrived go into one sync (job-semantics 14).
#pragma once

#include "core/index_set.hpp"
#include "core/job/facts/dependency.hpp"
#include "core/job/facts/overrides.hpp"
#include "core/job/facts/pod.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace muster::core {

// Slots that the cluster grants: how many on each node, and the node's registration at that time. A
// registration is one welcome of an agent; orders under an earlier one never arrive.
struct SlotsGranted {
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint64_t> registrations;
  Steps steps{};  // of the pods that they are for
};

// A report from an agent. Answered by AckReport with this token once durable.
struct PodsReported {
  struct Start {
    PodKey pod;
    std::optional<int32_t> pid{};  // absent: no process of it has started yet
    int32_t restarts = 0;
    Age age;
    Readiness readiness = Readiness::ready;
    std::vector<ContainerNowOf<Age>> containers{};  // empty: one, never restarted
    std::string cpus{};  // that it has for itself, as "0-3,8"; empty: none
  };
  using Ended = PodEndReport<PodKey, Age>;
  uint64_t token = 0;
  NodeId node = kNoNode;
  std::vector<Start> starts;
  std::vector<Ended> ends;
  std::string node_name{};  // for people, if a pod could not be started; empty: not known
};

// The node was declared lost (or its Node object deleted): every open pod there ends with this
// cause.
struct NodeLost {
  NodeId node = kNoNode;
  EndCause cause = EndCause::node_lost;
};

// The agent of this incarnation registered and knows these pods of the job (running, waiting,
// ended). Answered by AnswerReconcile with the pods that it must end.
struct NodeRegistered {
  NodeId node = kNoNode;
  std::set<PodKey> known;
  // What the agent knows is from before a restore. A pod that is bound to the node and not known to
  // have started may have run and ended since the backup, so it is not launched again.
  bool restored = false;
};

// The node's agent was welcomed: launches and kills may be sent (again). Pods that the agent knew
// when it registered are not launched: their ends may be in flight, and once such an end is
// acknowledged, the agent would start the pod a second time.
struct NodeReady {
  NodeId node = kNoNode;
  std::set<PodKey> known;
  uint64_t registration = 0;
};

// An agent's answer to AskNodes: these pods of the job had ended there and were not acknowledged.
struct NodeHeard {
  NodeId node = kNoNode;
  uint64_t question = 0;
  std::set<PodKey> ended;
};

// An instant that the job waits for may have passed; also the first event of a new job.
struct TimePassed {};

// The owner's requests are answered by Answer with their token once durable.

// Another job, which this one may wait for (muster.dev/after), has ended. Answered like the owner's
// requests, even if this job does not wait for it. `progress`: for a job that follows it; null: the
// other job is gone, and what this one has recorded is all that is known.
struct DependencyHasEnded {
  uint64_t token = 0;
  JobId job = 0;
  DependencyEnd how = DependencyEnd::succeeded;
  ProgressPtr progress{};
};

// A job that this one may follow index by index: how far its indexes are by now. Answered as above.
struct DependencyHasAdvanced {
  uint64_t token = 0;
  JobId job = 0;
  ProgressPtr progress;
};

// Deletes the job. `orphan` implies background: the pods keep running.
struct JobDeletion {
  uint64_t token = 0;
  bool background = true;
  bool orphan = false;
};

// The owner changed metadata or spec. A conflict if the job's object is no longer `seen`.
struct OwnerUpdate {
  uint64_t token = 0;
  JobObjectPtr seen;
  JobObjectPtr object;
};

// Deletes pods: for their owner, or because of a disruption, which the pods' DisruptionTarget
// condition then shows. Unknown pods are ignored.
struct PodsDeletion {
  enum class Why : uint8_t {
    owner,       // a plain delete
    eviction,    // DisruptionTarget/EvictionByEvictionAPI
    preemption,  // DisruptionTarget/PreemptionByScheduler
    taint,       // DisruptionTarget/DeletionByTaintManager
  };
  uint64_t token = 0;  // 0: no answer is expected
  std::vector<PodKey> pods;
  Why why = Why::owner;
  std::optional<Millis> grace_ms;  // absent: the template's
};

// The cluster takes slots back on these nodes for pods of a higher priority.
struct Preempted {
  std::map<NodeId, uint32_t> slots;
  Steps steps{};  // of the pods that hold them
};

// The job's pods with these steps must leave these nodes: they do not tolerate a NoExecute taint
// there, or would stay for too long.
struct Tainted {
  std::vector<NodeId> nodes;
  Steps steps{};
};

// Every node that could take the job's pods has failed to start one (FreeSlots::avoid). What fails
// to start from now on counts as a failure, until a pod has started.
struct NowhereElse {};

// Sets conditions, labels and annotations of a pod.
struct PodConditionsWrite {
  uint64_t token = 0;
  PodKey pod;
  std::vector<PodCondition> conditions;
  std::vector<PodMetaChange> meta{};
};

// Sets a status, as JSON: the whole status of a job that another controller manages, or the list of
// conditions set from outside on a job that muster manages. A conflict if `seen` or `seen_json` is
// no longer current.
struct StatusWrite {
  uint64_t token = 0;
  std::string json;
  bool conditions = false;  // muster manages the job
  JobObjectPtr seen{};      // null: unconditional
  std::string seen_json{};  // with `seen`
  JobObjectPtr object{};    // with `seen`: metadata written in the same request
};

// Holds the job or releases it. A conflict if the job is held by an operator and this is not from
// one, or if there is nothing left to hold. Holding it again with the same reason changes nothing.
struct HoldChange {
  uint64_t token = 0;
  bool hold = true;
  std::string by;  // the user
  bool by_operator = false;
  std::string reason{};
};

// Overrides what the job's object says of its pods. A conflict if the overrides are no longer
// `seen`.
struct OverridesChange {
  uint64_t token = 0;
  Overrides seen, next;
  std::string by;
};

// Ends the job, or only these indexes of it, for good. A conflict if its end is decided, or if
// single indexes cannot be cancelled: it has none, or they belong to a gang. Repeating it changes
// nothing.
struct Cancellation {
  uint64_t token = 0;
  std::string by;                     // the user
  std::optional<IndexSet> indexes{};  // absent: the whole job
};

using Event =
    std::variant<SlotsGranted, PodsReported, NodeLost, NodeRegistered, NodeReady, TimePassed,
                 JobDeletion, OwnerUpdate, PodsDeletion, Preempted, Tainted, PodConditionsWrite,
                 StatusWrite, NodeHeard, DependencyHasEnded, DependencyHasAdvanced, NowhereElse,
                 HoldChange, OverridesChange, Cancellation>;

}  // namespace muster::core
