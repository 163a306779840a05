// How a pod ended: one set of types from the agent that saw it to the record that counts it.
//
// Only the representation of times differs: boot-clock instants on a node, ages on the wire (clocks
// are never compared across machines), instants since the epoch in a job. `Time` says which.
#pragma once

#include "base/clock.hpp"
#include "core/usage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace muster::core {

// Why a pod ended. Same order as EndCause in schema/types.capnp.
enum class EndCause : uint8_t {
  exited,         // its processes exited, or someone other than muster killed them
  killed,         // after a kill that the coordinator ordered
  never_started,  // killed before it started
  start_failed,   // exit code 126 or 127; from a node also kExitNotHere
  keeper_lost,    // exit code unknown: 137, DisruptionTarget/TerminationByKubelet
  agent_stopped,  // the agent drained: DisruptionTarget/TerminationByKubelet
  fenced,         // its node must not run it: it was not open there at registration, or the node
                  // had lost contact (fence-after): DisruptionTarget/DeletionByTaintManager
  deadline,       // activeDeadlineSeconds of the pod
  out_of_memory,  // OOMKilled
  node_lost,      // its node was declared lost: DisruptionTarget/DeletionByTaintManager
  node_deleted,   // its Node object was deleted: DisruptionTarget/DeletionByPodGC
  evicted,        // the node was short of memory: DisruptionTarget/TerminationByKubelet
  returned,       // given up by its node before it started; counts nowhere and is replaced
  worker_unreachable,  // an MPI leader whose worker cannot be reached, see message:
                       // DisruptionTarget/WorkerUnreachable
};
inline constexpr int kEndCauses = 1 + static_cast<int>(EndCause::worker_unreachable);

// Exit code of a process that could not be started for a reason of its node: another node may be
// able to. Only on nodes and in their reports: a record has 126. There, a `returned` pod with 126
// or 127 could not be started.
inline constexpr int32_t kExitNotHere = 125;
// Likewise, for a reason of its index: its input is too long. Only from the executor to the node,
// which reports what a shell that had tried would end with: `exited`, 126.
inline constexpr int32_t kExitOfIndex = 124;

// State of a started pod. Only `ready` counts as ready. Same order as Readiness in
// schema/types.capnp.
enum class Readiness : uint8_t {
  ready,         // every container is running
  initializing,  // init containers are running: the phase is still Pending
  not_ready,     // a container has ended or waits to be restarted
};

// How the newest instance of a pod's container ended.
template <class Time>
struct ContainerEndOf {
  EndCause cause = EndCause::exited;
  int32_t exit_code = 0;
  int32_t signal = 0;
  int32_t restarts = 0;
  std::optional<Time> started_at{};  // nullopt: it never ran
  Time ended_at{};
  bool operator==(const ContainerEndOf&) const = default;
  // It ran, could not be started, or may have run when its keeper died.
  bool has_exit_code() const {
    return started_at || cause == EndCause::start_failed || cause == EndCause::keeper_lost;
  }
};

// How a process of a container ended that was restarted in place since. `end.restarts` is the
// number of that run, counted from 0.
template <class Time>
struct RunEndOf {
  uint16_t container = 0;  // init containers first, in the order of the template
  ContainerEndOf<Time> end;
  Usage used{};
  bool operator==(const RunEndOf&) const = default;
};

// Of each pod, the newest are kept, so that a container which crashes without end stays cheap.
inline constexpr size_t kRunsMax = 10;

// Adds a run to those of its pod, which are in the order of their ends. Of one that is known, at
// most the usage is new.
template <class Time>
void add_run(std::vector<RunEndOf<Time>>& runs, RunEndOf<Time> run) {
  const auto known = std::ranges::find_if(runs, [&run](const RunEndOf<Time>& one) {
    return one.container == run.container && one.end.restarts == run.end.restarts;
  });
  if (known != runs.end()) {
    if (!known->used.known()) known->used = run.used;
    return;
  }
  const auto order = [](const RunEndOf<Time>& one) {
    return std::tuple(one.end.ended_at, one.container, one.end.restarts);
  };
  const auto next = std::ranges::upper_bound(runs, order(run), {}, order);
  runs.insert(next, std::move(run));
  if (runs.size() > kRunsMax) runs.erase(runs.begin());
}

// Same order as ContainerPhase in schema/types.capnp.
enum class ContainerPhase : uint8_t {
  unborn,   // it has not run yet
  waiting,  // to be restarted
  running,
  ended,  // for good
};

// A container of a pod that runs.
template <class Time>
struct ContainerNowOf {
  ContainerPhase phase = ContainerPhase::unborn;
  std::optional<Time> since{};  // running: when its process started
  int32_t restarts = 0;
  std::optional<ContainerEndOf<Time>> last{};  // how its newest process that has ended did
  bool operator==(const ContainerNowOf&) const = default;
};

template <class Time>
struct PodEndOf {
  EndCause cause = EndCause::exited;
  int32_t exit_code = 0;  // 128+S when signal S ended it
  int32_t signal = 0;
  Time ended_at{};
  std::string message{};  // for example why it could not start; usually empty
  // Init containers first, in the order of the template. Empty: the pod has one container, which
  // ended as the pod did, or no container ever ran.
  std::vector<ContainerEndOf<Time>> containers{};
  Usage used{};  // of all its processes: containers, init containers and restarts in place
  bool operator==(const PodEndOf&) const = default;
  bool succeeded() const {
    return exit_code == 0 && (cause == EndCause::exited || cause == EndCause::killed ||
                              cause == EndCause::agent_stopped || cause == EndCause::fenced);
  }
};

// The start of a process or of a pod. For a pod, `pid` is the first container's newest process.
template <class Time>
struct StartOf {
  int32_t pid = 0;
  Time at{};
  bool operator==(const StartOf&) const = default;
};

// The end of `pod`, with its start as reported.
template <class Id, class Time>
struct PodEndReport : PodEndOf<Time> {
  Id pod{};
  std::optional<StartOf<Time>> start{};  // absent: it never started
  int32_t restarts = 0;
  std::vector<RunEndOf<Time>> runs{};  // those before the ends in `containers`, oldest first
};

using ContainerEnd = ContainerEndOf<Millis>;  // instants since the epoch
using ContainerNow = ContainerNowOf<Millis>;
using RunEnd = RunEndOf<Millis>;
using PodEnd = PodEndOf<Millis>;

template <class To, class From, class F>
ContainerEndOf<To> with_times(const ContainerEndOf<From>& end, F time_of) {
  ContainerEndOf<To> out{end.cause, end.exit_code, end.signal, end.restarts, {}, {}};
  if (end.started_at) out.started_at = time_of(*end.started_at);
  out.ended_at = time_of(end.ended_at);
  return out;
}

template <class To, class From, class F>
ContainerNowOf<To> with_times(const ContainerNowOf<From>& now, F time_of) {
  ContainerNowOf<To> out{.phase = now.phase, .restarts = now.restarts};
  if (now.since) out.since = time_of(*now.since);
  if (now.last) out.last = with_times<To>(*now.last, time_of);
  return out;
}

template <class To, class From, class F>
RunEndOf<To> with_times(const RunEndOf<From>& run, F time_of) {
  return {run.container, with_times<To>(run.end, time_of), run.used};
}

// The same end with its times converted by `time_of`.
template <class To, class From, class F>
PodEndOf<To> with_times(const PodEndOf<From>& end, F time_of) {
  PodEndOf<To> out{end.cause, end.exit_code, end.signal, {}, end.message, {}};
  out.containers.reserve(end.containers.size());
  for (const ContainerEndOf<From>& one : end.containers)
    out.containers.push_back(with_times<To>(one, time_of));
  out.ended_at = time_of(end.ended_at);
  out.used = end.used;
  return out;
}

}  // namespace muster::core
