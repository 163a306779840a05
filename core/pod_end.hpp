// How a pod ends, from the agent that saw it to the record that counts it: one set of types.
//
// They differ in what their times are: on a node instants of its boot clock, on the way ages (no
// clock is compared across machines), in a job instants since the epoch. `Time` says which.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

// Why a pod's processes are no more. In the order of EndCause in schema/types.capnp.
enum class EndCause : uint8_t {
  exited,         // by themselves, or killed behind our back
  killed,         // after a kill that the coordinator ordered
  never_started,  // killed while it waited
  start_failed,   // exit code 126 or 127
  keeper_lost,    // exit code unknown: 137, DisruptionTarget/TerminationByKubelet
  agent_stopped,  // the agent drained: DisruptionTarget/TerminationByKubelet
  fenced,         // ended at registration because it was not open for that node
  deadline,       // activeDeadlineSeconds of the pod
  out_of_memory,  // OOMKilled
  node_lost,      // its node was declared lost: DisruptionTarget/DeletionByTaintManager
  node_deleted,   // its Node object was deleted: DisruptionTarget/DeletionByPodGC
  evicted,        // the node was short of memory: DisruptionTarget/TerminationByKubelet
  returned,       // its node had no slot for it: it never ran, and another pod takes its place
};

// How far a started pod is. Only `ready` counts as ready. In the order of Readiness in
// schema/types.capnp.
enum class Readiness : uint8_t {
  ready,         // every container of it runs
  initializing,  // init containers run: the phase is still Pending
  not_ready,     // a container has ended or waits to be started again
};

// How one container of a pod ended, its newest instance.
template <class Time>
struct ContainerEndOf {
  EndCause cause = EndCause::exited;
  int32_t exit_code = 0;
  int32_t signal = 0;
  int32_t restarts = 0;
  std::optional<Time> started_at{};  // nothing: it never ran
  Time ended_at{};
  bool operator==(const ContainerEndOf&) const = default;
};

template <class Time>
struct PodEndOf {
  EndCause cause = EndCause::exited;
  int32_t exit_code = 0;  // 128+S when signal S ended it
  int32_t signal = 0;
  Time ended_at{};
  std::string message{};  // why it could not be started, and the like; usually empty
  // Init containers first, in the order of the template. Empty: the pod has one container, which
  // ended as the pod did, or none of it ever ran.
  std::vector<ContainerEndOf<Time>> containers{};
  bool operator==(const PodEndOf&) const = default;
  bool succeeded() const {
    return exit_code == 0 && (cause == EndCause::exited || cause == EndCause::killed ||
                              cause == EndCause::agent_stopped || cause == EndCause::fenced);
  }
};

// The end of the pod named `pod`, with what is told of its start.
template <class Id, class Time>
struct PodEndReport : PodEndOf<Time> {
  Id pod{};
  int32_t pid = 0;  // of the first container's newest process; 0: it never started
  int32_t restarts = 0;
  Time started_at{};  // meaningless when pid is 0
};

using ContainerEnd = ContainerEndOf<Millis>;  // instants since the epoch
using PodEnd = PodEndOf<Millis>;

// The same end with times of another kind, which `time_of` makes.
template <class To, class From, class F>
PodEndOf<To> with_times(const PodEndOf<From>& end, F time_of) {
  PodEndOf<To> out{end.cause, end.exit_code, end.signal, {}, end.message, {}};
  out.containers.reserve(end.containers.size());
  for (const ContainerEndOf<From>& one : end.containers) {
    auto& to = out.containers.emplace_back(
        ContainerEndOf<To>{one.cause, one.exit_code, one.signal, one.restarts, {}, {}});
    if (one.started_at) to.started_at = time_of(*one.started_at);
    to.ended_at = time_of(one.ended_at);
  }
  out.ended_at = time_of(end.ended_at);
  return out;
}

}  // namespace muster::core
