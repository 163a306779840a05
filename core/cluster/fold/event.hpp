// Events: what the cluster reacts to. One with a token leads to an effect with that token.
#pragma once

#include "core/cluster/fold/hello.hpp"
#include "core/queue/queue.hpp"
#include "core/quick_ends.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/steps.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::core::cluster {

// ---- nodes

// Answered by AnswerHello, sooner or later: TakeEnds and AskJobs come first where they are needed.
// StopOutdated takes its place.
struct AgentRegisters {
  uint64_t token = 0;
  Hello hello;
  bool has_earlier_ends = false;  // ends of pods that an earlier agent left
};
// All jobs have answered AskJobs; their answers are durable.
struct JobsAnswered {
  uint64_t token = 0;
  NodeId node = kNoNode;
  bool restored = false;        // as in AskJobs
  std::vector<PodId> running;   // as the agent said
  std::vector<PodId> end;       // pods that the agent must end
  std::vector<PodId> spared{};  // as in AskJobs
};
// The agent was welcomed; its session can be used now.
struct LinkUp {
  NodeId node = kNoNode;
  uint64_t link = 0;
};
struct LinkDown {
  NodeId node = kNoNode;
  uint64_t link = 0;
};
struct Heartbeat {
  NodeId node = kNoNode;
  uint64_t link = 0;
  NodeTrouble trouble{};
  // How many processes of pods its agent has seen start, the ones of pods it took over included;
  // absent: the agent does not say.
  std::optional<uint64_t> started{};
  HealthCheck check{};
};
struct AgentLeaves {
  NodeId node = kNoNode;
  uint64_t link = 0;
};
// A sixteenth of --node-grace has passed (lease.hpp).
struct Tick {};

// ---- requests about nodes, answered by AnswerRequest

// A conflict if the node's spec is no longer `seen`. Without a change, it only lets a node whose
// starts have failed get pods again, as uncordoning does.
struct SpecRequest {
  uint64_t token = 0;
  std::string name;
  NodeSpec seen, spec;
};
struct DeleteRequest {
  uint64_t token = 0;
  std::string name;
};
// The pods that a restored state does not contain are no longer spared: the node has to register
// again, and ends them then.
struct EndStrangersRequest {
  uint64_t token = 0;
  std::string name;
};

// ---- slots

// `pending`: the number of a job's waiting pods. `received`: how many of the slots ever granted to
// the job have arrived; those in flight count against `pending`. The id is that of in_steps(), as
// in Freed.
struct Want {
  JobId job = 0;
  uint32_t pending = 0;
  uint64_t received = 0;
  JobObjectPtr object;  // what its pods request: resources, selector, tolerations, priority
};
struct Freed {
  JobId job = 0;
  std::map<NodeId, uint32_t> slots;
  QuickEndsOfNodes quick{};                        // of these, the ones freed by short pods
  std::vector<NodeId> avoid{};                     // nodes that could not start a pod of the job
  std::map<NodeId, FailedStarts> failed_starts{};  // on each of those
  std::optional<uint32_t> user{};                  // the job's owner, where there are several
  RunTimes ran{};  // of the job's pods that have exited since the last one
};
// Nothing is left of the job's pods.
struct JobLeft {
  JobId job = 0;
};
// All queues and priority classes that there are now.
struct QueuesChanged {
  std::vector<Queue> queues;
  PriorityClasses classes{};
};
// Time for another round of placement.
struct PlaceNow {};

using Event = std::variant<AgentRegisters, JobsAnswered, LinkUp, LinkDown, Heartbeat, AgentLeaves,
                           Tick, SpecRequest, DeleteRequest, EndStrangersRequest, Want, Freed,
                           JobLeft, PlaceNow, QueuesChanged>;

}  // namespace muster::core::cluster
