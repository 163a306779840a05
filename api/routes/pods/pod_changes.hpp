// PodChanges: what a write to a pod changes. Clients may change labels and annotations, and
// conditions through the status, except those that muster sets; everything else is refused.
//
// The managers of a pod's fields are stored with its annotations, under a name that clients neither
// see nor set (kManagersKey).
#pragma once

#include "api/view/model/shown.hpp"
#include "base/result.hpp"
#include "base/text/json.hpp"
#include "core/job/facts/event.hpp"

#include <string>

namespace muster::api {

// `sub`: "status", or empty. `before` and `after`: the pod as clients see it.
Result<core::PodConditionsWrite> pod_changes(const Shown& shown, const Json& before,
                                             const Json& after, const std::string& sub);
// Gives the pod the managers of `part`.
void put_managers(Json& pod, const Json& part);

}  // namespace muster::api
