// Privileges: what in a job only operators and admins may ask for, where a coordinator serves
// several users, because it would act on other users' jobs. Pure.
//
// A priority above the users' maximum is refused at admission. Tolerations are kept as written, as
// manifests often have them for other clusters, but do not overrule an operator
// (core/cluster/slots/demand.hpp).
#pragma once

#include "core/spec/fields/job_spec.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::core {

// Why a user may not create such a job; absent: they may. `priority_max`: --user-priority-max.
std::optional<std::string> needs_privilege(const JobSpec& spec, int32_t priority_max);

}  // namespace muster::core
