#include "core/job/facts/pod_conditions.hpp"

#include "core/job/facts/condition.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::core {

namespace {

struct Disruption {
  DisruptionReason reason;
  std::string message;
};

std::optional<Disruption> disruption(const PodEnd& end) {
  const DisruptionReason kubelet = DisruptionReason::termination_by_kubelet;
  switch (end.cause) {
    case EndCause::keeper_lost:
      return Disruption{kubelet, "the node's keeper was lost, and the exit code with it"};
    case EndCause::agent_stopped:
      return Disruption{kubelet, "the node's agent was shut down"};
    case EndCause::node_lost:
      return Disruption{DisruptionReason::deletion_by_taint_manager, "the node was declared lost"};
    case EndCause::node_deleted:
      return Disruption{DisruptionReason::deletion_by_pod_gc, "the node was deleted"};
    case EndCause::evicted:
      return Disruption{kubelet, "The node was low on resource: memory."};
    case EndCause::worker_unreachable:
      return Disruption{DisruptionReason::worker_unreachable, end.message};
    case EndCause::fenced:
      return Disruption{DisruptionReason::deletion_by_taint_manager, end.message};
    case EndCause::exited:
    case EndCause::killed:
    case EndCause::never_started:
    case EndCause::start_failed:
    case EndCause::deadline:
    case EndCause::out_of_memory:
    case EndCause::returned:
      break;
  }
  return std::nullopt;
}

PodCondition condition(const char* type, bool status, Millis at_ms, std::string_view reason = "",
                       std::string message = "") {
  return {type, status ? "True" : "False", at_ms, std::string(reason), std::move(message)};
}

}  // namespace

namespace {

// When the last init container ended with success or, a sidecar, started; nothing: it has not.
std::optional<Millis> initialized_at(const Pod& pod, std::span<const Container> inits) {
  if (inits.empty()) return pod.bound_ms;
  const bool reported =
      pod.ended ? pod.end.containers.size() > inits.size() : !pod.containers.empty();
  if (!reported) {
    const bool done = pod.started_at && pod.readiness != Readiness::initializing &&
                      (!pod.ended || pod.end.succeeded() || pod.end.containers.empty());
    return done ? std::optional(pod.bound_ms) : std::nullopt;
  }
  Millis at = pod.bound_ms;
  for (size_t i = 0; i < inits.size(); ++i) {
    if (inits[i].sidecar) {
      if (pod.ended && !pod.end.containers[i].started_at) return std::nullopt;
      if (pod.ended) continue;
      const ContainerNow* now = i < pod.containers.size() ? &pod.containers[i] : nullptr;
      const bool ran = now && (now->since || (now->last && now->last->started_at));
      if (!ran && pod.readiness == Readiness::initializing) return std::nullopt;
      if (now && now->since && now->restarts == 0) at = std::max(at, *now->since);
      continue;
    }
    std::optional<ContainerEnd> end;
    if (pod.ended)
      end = pod.end.containers[i];
    else if (i < pod.containers.size() && pod.containers[i].phase == ContainerPhase::ended)
      end = pod.containers[i].last;
    if (!end || !end->has_exit_code() || end->exit_code != 0) return std::nullopt;
    at = std::max(at, end->ended_at);
  }
  return at;
}

}  // namespace

std::vector<PodCondition> pod_conditions(const Pod& pod, bool gated,
                                         std::span<const Container> inits) {
  std::vector<PodCondition> all;
  if (pod.bound()) {
    bool started = pod.started_at.has_value();
    bool initialized = started && pod.readiness != Readiness::initializing;
    bool ready = initialized && !pod.ended && pod.readiness == Readiness::ready;
    Millis ready_ms = pod.ended ? pod.end.ended_at : started ? *pod.started_at : pod.bound_ms;
    const char* why = ready                 ? ""
                      : !pod.ended          ? "ContainersNotReady"
                      : pod.end.succeeded() ? "PodCompleted"
                                            : "PodFailed";
    const auto init_done = initialized_at(pod, inits);
    all.push_back(condition("Initialized", init_done.has_value(), init_done.value_or(pod.bound_ms),
                            init_done ? "" : "ContainersNotInitialized"));
    all.push_back(condition("Ready", ready, ready_ms, why));
    all.push_back(condition("ContainersReady", ready, ready_ms, why));
    all.push_back(condition("PodScheduled", true, pod.bound_ms));
  } else if (gated) {
    all.push_back(condition("PodScheduled", false, pod.created_ms, "SchedulingGated",
                            "Scheduling is blocked due to non-empty scheduling gates"));
  } else {
    all.push_back(condition("PodScheduled", false, pod.created_ms, "Unschedulable",
                            "waiting for a free slot"));
  }
  all.insert(all.end(), pod.conditions.begin(), pod.conditions.end());
  const auto d = pod.ended ? disruption(pod.end) : std::nullopt;
  if (d && std::none_of(all.begin(), all.end(),
                        [](const PodCondition& c) { return c.type == kDisruptionTarget; }))
    all.push_back(
        condition(kDisruptionTarget, true, pod.end.ended_at, name(d->reason), d->message));
  return all;
}

bool is_disrupted(const Pod& pod) {
  return (pod.ended && disruption(pod.end)) ||
         std::any_of(pod.conditions.begin(), pod.conditions.end(), [](const PodCondition& c) {
           return c.type == kDisruptionTarget && c.status == "True";
         });
}

bool derived_condition(const std::string& type) {
  constexpr std::array kDerived = {"Initialized", "Ready", "ContainersReady", "PodScheduled"};
  return std::find(kDerived.begin(), kDerived.end(), type) != kDerived.end();
}

}  // namespace muster::core
