#include "core/job/facts/condition.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace muster::core {
namespace {

// In the order of the enums.
constexpr std::array<std::string_view, 6> kTypes = {
    "Suspended", "SuccessCriteriaMet", "FailureTarget", "Complete", "Failed", "muster.dev/Damaged"};
constexpr std::array<std::string_view, 13> kReasons = {"JobSuspended",
                                                       "JobResumed",
                                                       "SuccessPolicy",
                                                       "CompletionsReached",
                                                       "PodFailurePolicy",
                                                       "StartFailure",
                                                       "BackoffLimitExceeded",
                                                       "DeadlineExceeded",
                                                       "MaxFailedIndexesExceeded",
                                                       "FailedIndexes",
                                                       "Unreadable",
                                                       "DependencyNeverSatisfied",
                                                       "Cancelled"};
constexpr std::array<std::string_view, 8> kDisruptions = {
    "TerminationByKubelet",  "DeletionByTaintManager", "DeletionByPodGC", "EvictionByEvictionAPI",
    "PreemptionByScheduler", "WorkerUnreachable",      "WorkerFailed",    "GangMemberFailed"};

static_assert(kTypes.size() == static_cast<size_t>(ConditionType::damaged) + 1);
static_assert(kReasons.size() == static_cast<size_t>(ConditionReason::cancelled) + 1);
static_assert(kDisruptions.size() == static_cast<size_t>(DisruptionReason::gang_member_failed) + 1);

template <class E, size_t N>
std::optional<E> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<E>(it - names.begin());
}

}  // namespace

std::string_view name(ConditionType type) {
  return kTypes.at(static_cast<size_t>(type));
}
std::string_view name(ConditionReason reason) {
  return kReasons.at(static_cast<size_t>(reason));
}
std::string_view name(DisruptionReason reason) {
  return kDisruptions.at(static_cast<size_t>(reason));
}

std::optional<ConditionType> condition_type(std::string_view name) {
  return find_name<ConditionType>(kTypes, name);
}
std::optional<ConditionReason> condition_reason(std::string_view name) {
  return find_name<ConditionReason>(kReasons, name);
}

}  // namespace muster::core
