// The conditions of a job and their reasons (job-semantics 3).
//
// Enums in memory, Kubernetes' names everywhere else: in the journal, in JSON and in metrics.
// name() is the only place that spells them.
#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

enum class ConditionType : uint8_t {
  suspended,
  success_criteria_met,  // decided: becomes `complete` when all pods have ended
  failure_target,        // decided: becomes `failed`
  complete,
  failed,
  damaged,  // "muster.dev/Damaged": the job's rows cannot be read (docs/api.md)
};

enum class ConditionReason : uint8_t {
  job_suspended,
  job_resumed,
  success_policy,
  completions_reached,
  pod_failure_policy,
  start_failure,
  backoff_limit_exceeded,
  deadline_exceeded,
  max_failed_indexes_exceeded,
  failed_indexes,
  unreadable,
  dependency_never_satisfied,  // a job that it depends on did not end as required
  cancelled,                   // by a user (muster cancel)
};

std::string_view name(ConditionType type);
std::string_view name(ConditionReason reason);
// Nothing for any other text.
std::optional<ConditionType> condition_type(std::string_view name);
std::optional<ConditionReason> condition_reason(std::string_view name);

struct Condition {
  ConditionType type = ConditionType::suspended;
  bool status = true;
  Millis at_ms = 0;
  ConditionReason reason = ConditionReason::job_suspended;
  std::string message;
  bool operator==(const Condition&) const = default;
};

// Why a pod is a DisruptionTarget (job-semantics 6.5). The last three are muster's own.
enum class DisruptionReason : uint8_t {
  termination_by_kubelet,
  deletion_by_taint_manager,
  deletion_by_pod_gc,
  eviction_by_eviction_api,
  preemption_by_scheduler,
  worker_unreachable,  // of an MPI leader: its agent could not reach a worker
  worker_failed,       // of an MPI leader: a worker ended without success
  gang_member_failed,  // of any other member of a gang that broke (GangBroken)
};
std::string_view name(DisruptionReason reason);

// The type of the pod condition that has one of these reasons.
constexpr const char* kDisruptionTarget = "DisruptionTarget";

}  // namespace muster::core
