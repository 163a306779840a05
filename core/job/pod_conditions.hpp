// The conditions of a pod, which its Pod object shows and the pod failure policy matches.
#pragma once

#include "core/job/pod.hpp"

#include <vector>

namespace muster::core {

// In the order of a Pod (job-semantics 6.2): Initialized, Ready, ContainersReady and PodScheduled,
// derived from the pod's state; those set from outside; DisruptionTarget if the platform ended it
// (6.5). An instant of 0 is unknown. `gated`: it has scheduling gates.
std::vector<PodCondition> pod_conditions(const Pod& pod, bool gated = false);

// Whether this type is derived from the pod's state and cannot be set from outside.
bool derived_condition(const std::string& type);

}  // namespace muster::core
