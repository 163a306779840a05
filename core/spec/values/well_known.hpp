// Well-known names on the objects of a Job (job-semantics 0).
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::core {

constexpr std::string_view kTrackingFinalizer = "batch.kubernetes.io/job-tracking";
constexpr std::string_view kCompletionIndexKey = "batch.kubernetes.io/job-completion-index";
constexpr std::string_view kIndexFailureCountKey = "batch.kubernetes.io/job-index-failure-count";
constexpr std::string_view kIndexIgnoredFailureCountKey =
    "batch.kubernetes.io/job-index-ignored-failure-count";
constexpr std::string_view kJobNameLabel = "batch.kubernetes.io/job-name";
constexpr std::string_view kLegacyJobNameLabel = "job-name";
constexpr std::string_view kControllerUidLabel = "batch.kubernetes.io/controller-uid";
constexpr std::string_view kLegacyControllerUidLabel = "controller-uid";
// Label and taint of a hollow node (core/cluster/nodes/hollow.hpp).
constexpr std::string_view kHollowKey = "muster.dev/hollow";
constexpr std::string_view kLastAppliedKey = "kubectl.kubernetes.io/last-applied-configuration";
// Finalizers of a deletion itself: the object stays until its dependents are gone, or released.
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";
constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kReservedManager = "kubernetes.io/job-controller";

}  // namespace muster::core
