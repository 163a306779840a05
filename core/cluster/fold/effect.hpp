// Effects: what the cluster wants done, at once or once its records are durable.
#pragma once

#include "core/cluster/fold/hello.hpp"
#include "core/cluster/fold/record.hpp"
#include "core/cluster/slots/slots.hpp"
#include "core/pod_end.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::core::cluster {

// ---- once the records are durable

struct AnswerHello {
  uint64_t token = 0;
  HelloAnswer answer;
};
struct AnswerRequest {
  enum class Outcome : uint8_t { done, conflict, not_found };
  uint64_t token = 0;
  Outcome outcome = Outcome::done;
};
// To all jobs: a node registers with the pods it has. They answer with those that it must end
// (JobsAnswered). `known`: what the jobs are to know of; the rest are strangers.
struct AskJobs {
  uint64_t token = 0;
  NodeId node = kNoNode;
  uint64_t link = 0;
  std::vector<PodId> known;
  bool restored = false;        // its pods are from before a restore
  std::vector<PodId> spared{};  // those that a restored state does not contain; not in `known`
};
// To all jobs: their pods there are lost.
struct NodeIsLost {
  NodeId node = kNoNode;
  EndCause cause = EndCause::node_lost;
  Millis silent_ms = 0;  // for at least this long, no message of the node has been answered
};
// Close the node's session: its agent must register again.
struct DropLink {
  NodeId node = kNoNode;
};

// ---- at once

// The agent holds ends of pods of the incarnation `node`, which a reboot has ended: report them,
// then let it register again without them.
struct TakeEnds {
  uint64_t token = 0;
  NodeId node = kNoNode;
};
// The data-dir lacks what this cluster has already done: the coordinator must stop.
struct StopOutdated {
  uint64_t token = 0;  // of the registration, which gets no answer
  std::string why;
};
// Every node on record has registered without contradicting the data-dir.
struct AllRegistered {};
// To all jobs: launches and kills may be sent (again) to the node.
struct NodeReadyNow {
  NodeId node = kNoNode;
  uint64_t link = 0;
};
// To the read model.
struct ShowHealth {
  NodeHealth health;
};
// To the read model: how users stand, what is kept for whom, and who waits because of a queue.
struct ShowShares {
  std::vector<Slots::Standing> standings;
  std::optional<JobId> kept_for;
  Millis expected_ms = 0;  // wall-clock time at which all of it is likely to be free
  std::map<JobId, Slots::QueueWait> queue_waits{};
  std::map<JobId, Expectation> line{};  // with wall-clock times
};
// To the job: from now on, slots that its pods free go back to the cluster.
struct TakeKept {
  JobId job = 0;
};
// To the job. `links`: each node's session. `keep`: its next pods may reuse slots freed there,
// until TakeKept.
struct Grant {
  JobId job = 0;
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint64_t> links;
  bool keep = false;
};
// To the job: preempt this many of its pods on each node.
struct TakeBack {
  JobId job = 0;
  std::map<NodeId, uint32_t> slots;
};
// To the job: its pods must leave these nodes (taint NoExecute).
struct TellLeave {
  JobId job = 0;
  std::vector<NodeId> nodes;
};
// To the job: every node that could take its pods is one that could not start them.
struct TellNowhere {
  JobId job = 0;
};
// Send PlaceNow: behind what is already in the mailbox, or after this time.
struct PlaceSoon {};
struct PlaceAfter {
  Millis ms = 0;
};
struct Log {
  enum class Level : uint8_t { info, warn, error };
  Level level = Level::info;
  std::string text;
  bool seldom = false;  // anyone can cause it: at most one every ten seconds
};

// What rests on the durable records of the decision, and what does not.
using Effect = std::variant<AnswerHello, AnswerRequest, AskJobs, NodeIsLost, DropLink, PlaceSoon>;
using AtOnce =
    std::variant<TakeEnds, StopOutdated, AllRegistered, NodeReadyNow, ShowHealth, ShowShares,
                 TakeKept, Grant, TakeBack, TellLeave, TellNowhere, PlaceSoon, PlaceAfter, Log>;

}  // namespace muster::core::cluster
