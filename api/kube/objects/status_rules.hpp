// Status rules: who may write a job's status, and its invariants (job-semantics 1.5, 4.7).
#pragma once

#include "api/kube/schema/fields.hpp"
#include "base/result.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/gates.hpp"
#include "core/spec/values/violations.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster::api {

// Normalizes a written status: drops unknown fields and returns them, and converts times to UTC.
// Wrong types and unreadable times are errors.
Result<std::vector<UnknownField>> conform_status(nlohmann::json& status);

// Whether another controller manages the job and so writes its status.
bool managed_elsewhere(const core::JobSpec& spec, const core::Gates& gates);

// Checks a write to the status of a job that muster manages: muster's own fields and conditions may
// not change; clients may set conditions of other types.
core::Violations kept_by_us(const nlohmann::json& old_status, const nlohmann::json& status);
// The conditions of those other types, as the text of a JSON list; empty if none.
std::string own_conditions(const nlohmann::json& status);

// Checks the invariants of a status that another controller writes. As in Kubernetes, only what the
// write changes is checked, so the status of a job that was scaled down can still be written.
core::Violations status_violations(const core::JobSpec& spec, const nlohmann::json& old_status,
                                   const nlohmann::json& status);

}  // namespace muster::api
