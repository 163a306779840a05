// Events: what a job has to react to. All that have arrived go into one sync (job-semantics 14).
#pragma once

#include "core/job/dependency.hpp"
#include "core/job/pod.hpp"
#include "core/spec/job_spec.hpp"

#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace muster::core {

// Slots that the cluster grants: how many on each node, and the registration under which each node
// has them. A registration is one welcome of an agent; orders under an earlier one never arrive.
struct SlotsGranted {
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint64_t> registrations;
};

// A report of an agent. Answered by AckReport with this token once durable.
struct PodsReported {
  struct Start {
    PodKey pod;
    std::optional<int32_t> pid{};  // absent: no process of it has started yet
    int32_t restarts = 0;
    Age age;
    Readiness readiness = Readiness::ready;
  };
  using Ended = PodEndReport<PodKey, Age>;
  uint64_t token = 0;
  NodeId node = kNoNode;
  std::vector<Start> starts;
  std::vector<Ended> ends;
};

// The node was declared lost (or its Node object deleted): every open pod there ends with this
// cause.
struct NodeLost {
  NodeId node = kNoNode;
  EndCause cause = EndCause::node_lost;
};

// The agent of this incarnation registered and knows these pods of the job (running, waiting,
// ended). Answered by AnswerReconcile with what it must end.
struct NodeRegistered {
  NodeId node = kNoNode;
  std::set<PodKey> known;
  // What the agent knows predates a restore. A pod that is bound to it and not known to have
  // started may have run and ended since the backup, so it is not launched again.
  bool restored = false;
};

// The node's agent was welcomed: launches and kills may be sent (again). What the agent knew when
// it registered is not launched: its end may be in flight, and after the acknowledgement of that
// end the agent would start it a second time.
struct NodeReady {
  NodeId node = kNoNode;
  std::set<PodKey> known;
  uint64_t registration = 0;
};

// A node's agent answers AskNodes: these pods of the job had ended there and were not acknowledged.
struct NodeHeard {
  NodeId node = kNoNode;
  uint64_t question = 0;
  std::set<PodKey> ended;
};

// An instant that the job waits for may have come; also the first event of a new job.
struct TimePassed {};

// The owner's requests are answered by Answer with their token once durable.

// Another job, for which this one may wait (muster.dev/after), has ended. Answered like the owner's
// requests, also if the job does not wait for it.
struct DependencyHasEnded {
  uint64_t token = 0;
  JobId job = 0;
  DependencyEnd how = DependencyEnd::succeeded;
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

// Deletes pods: for their owner, or because of a disruption, which their condition DisruptionTarget
// then shows. Unknown pods are ignored.
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
};

// All pods of the job on these nodes must leave: they do not tolerate a NoExecute taint there.
struct Tainted {
  std::vector<NodeId> nodes;
};

// Sets conditions, labels and annotations of a pod.
struct PodConditionsWrite {
  uint64_t token = 0;
  PodKey pod;
  std::vector<PodCondition> conditions;
  std::vector<PodMetaChange> meta{};
};

// Sets the status of a job that another controller manages, as JSON; of a job that muster manages,
// the list of conditions set from outside. A conflict if `seen` or `seen_json` is no longer
// current.
struct StatusWrite {
  uint64_t token = 0;
  std::string json;
  bool conditions = false;  // muster manages the job
  JobObjectPtr seen{};      // null: unconditional
  std::string seen_json{};  // with `seen`
  JobObjectPtr object{};    // with `seen`: metadata written in the same request
};

using Event = std::variant<SlotsGranted, PodsReported, NodeLost, NodeRegistered, NodeReady,
                           TimePassed, JobDeletion, OwnerUpdate, PodsDeletion, Preempted, Tainted,
                           PodConditionsWrite, StatusWrite, NodeHeard, DependencyHasEnded>;

}  // namespace muster::core
