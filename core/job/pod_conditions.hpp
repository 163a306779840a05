// The conditions of a pod: what its Pod object shows and what the pod failure policy looks at.
#pragma once

#include "core/job/pod.hpp"

#include <vector>

namespace muster::core {

// In pod order (job-semantics 6.2): Initialized, Ready, ContainersReady and PodScheduled as they
// follow from the pod's life, those set from outside, DisruptionTarget when the platform ended it
// (6.5). An instant of 0 is unknown. `gated`: by scheduling gates.
std::vector<PodCondition> pod_conditions(const Pod& pod, bool gated = false);

// Types that follow from the pod's life: nobody sets them from outside.
bool derived_condition(const std::string& type);

}  // namespace muster::core
