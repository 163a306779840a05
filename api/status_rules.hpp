// Who may write a job's status, and what it has to keep (job-semantics 1.5, 4.7).
#pragma once

#include "core/spec/gates.hpp"
#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <nlohmann/json.hpp>

namespace muster::api {

// Whether another controller manages the job: then that one writes its status.
bool managed_elsewhere(const core::JobSpec& spec, const core::Gates& gates);

// Each field of a status of muster's own that somebody wants to change.
core::Violations kept_by_us(const nlohmann::json& old_status, const nlohmann::json& status);

// The invariants of a status that another controller writes.
core::Violations status_violations(const core::JobSpec& spec, const nlohmann::json& old_status,
                                   const nlohmann::json& status);

}  // namespace muster::api
