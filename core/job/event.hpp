// Events: what reached a job. All that arrived meanwhile is one sync (job-semantics 14).
#pragma once

#include "core/job/pod.hpp"
#include "core/spec/job_spec.hpp"

#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace muster::core {

// Slots that the cluster grants: how many on each node, and the registration under which each node
// has them. A registration is one welcome of an agent; what is ordered under an earlier one never
// arrives.
struct SlotsGranted {
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint64_t> registrations;
};

// An agent reports. Answered by AckReport with this token once durable.
struct PodsReported {
  struct Start {
    PodKey pod;
    int32_t pid = 0;
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

// Declared lost (or deleted by hand): every open pod there ends with this cause.
struct NodeLost {
  NodeId node = kNoNode;
  EndCause cause = EndCause::node_lost;
};

// The agent of this incarnation registered and knows these pods of ours (running, waiting, ended).
// Answered by AnswerReconcile with what it must end.
struct NodeRegistered {
  NodeId node = kNoNode;
  std::set<PodKey> known;
  // What the agent knows is from before a restore. Then what is bound to it and was never started
  // here may have run and ended since the backup was made: it is not launched a second time.
  bool restored = false;
};

// The node's agent was welcomed: launches and kills may be sent (again). What the agent knew when
// it registered is not launched again: its end may be on its way, and after the ack of that end the
// agent would start it a second time.
struct NodeReady {
  NodeId node = kNoNode;
  std::set<PodKey> known;
  uint64_t registration = 0;
};

// The agent of this node answers a question (AskNodes): of ours, these had ended there and were not
// acknowledged yet.
struct NodeHeard {
  NodeId node = kNoNode;
  uint64_t question = 0;
  std::set<PodKey> ended;
};

// Some instant that was waited for may have come; also the first event of a new job.
struct TimePassed {};

// What the owner asks for is answered by Answer with its token once durable.

// Deletes the job. `orphan` implies background: the pods run on.
struct JobDeletion {
  uint64_t token = 0;
  bool background = true;
  bool orphan = false;
};

// The owner changed metadata or spec. Made for the object that was seen: of another one a conflict.
struct OwnerUpdate {
  uint64_t token = 0;
  JobObjectPtr seen;
  JobObjectPtr object;
};

// Pods are to be deleted: by their owner, or because of a disruption, which is then told by their
// condition DisruptionTarget. What is not there is passed over.
struct PodsDeletion {
  enum class Why : uint8_t {
    owner,       // a plain delete
    eviction,    // DisruptionTarget/EvictionByEvictionAPI
    preemption,  // DisruptionTarget/PreemptionByScheduler
    taint,       // DisruptionTarget/DeletionByTaintManager
  };
  uint64_t token = 0;  // 0: nobody waits for an answer
  std::vector<PodKey> pods;
  Why why = Why::owner;
  std::optional<Millis> grace_ms;  // absent: the template's
};

// The cluster takes slots back on these nodes for pods of a higher priority.
struct Preempted {
  std::map<NodeId, uint32_t> slots;
};

// All its pods on these nodes must go: a taint NoExecute is there that they do not tolerate.
struct Tainted {
  std::vector<NodeId> nodes;
};

// Conditions, labels and annotations of a pod.
struct PodConditionsWrite {
  uint64_t token = 0;
  PodKey pod;
  std::vector<PodCondition> conditions;
  std::vector<PodMetaChange> meta{};
};

// The status of a job that another controller manages, as JSON; of a job of ours the list of the
// conditions that are not ours. Made for the object and the JSON that were seen: of others a
// conflict.
struct StatusWrite {
  uint64_t token = 0;
  std::string json;
  bool conditions = false;  // of a job of ours
  JobObjectPtr seen{};      // none: whatever is there
  std::string seen_json{};  // with `seen`
  JobObjectPtr object{};    // with `seen`: the metadata that was written along
};

using Event = std::variant<SlotsGranted, PodsReported, NodeLost, NodeRegistered, NodeReady,
                           TimePassed, JobDeletion, OwnerUpdate, PodsDeletion, Preempted, Tainted,
                           PodConditionsWrite, StatusWrite, NodeHeard>;

}  // namespace muster::core
