// The conditions of a pod, shown in its Pod object and matched by the pod failure policy.
#pragma once

#include "core/job/facts/pod.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <span>
#include <vector>

namespace muster::core {

// In the order of a Pod (job-semantics 6.2): Initialized, Ready, ContainersReady and PodScheduled,
// derived from the pod's state; those set from outside; DisruptionTarget if the platform ended the
// pod (6.5). An instant of 0 is unknown. `gated`: the pod has scheduling gates. `inits`: its
// init containers.
std::vector<PodCondition> pod_conditions(const Pod& pod, bool gated = false,
                                         std::span<const Container> inits = {});

// Whether the platform ended the pod, or is ending it: it has the condition DisruptionTarget.
bool is_disrupted(const Pod& pod);

// Whether this type is derived from the pod's state and cannot be set from outside.
bool derived_condition(const std::string& type);

}  // namespace muster::core
