// Who may write a job's status, and what it has to keep (job-semantics 1.5, 4.7).
#pragma once

#include "base/result.hpp"
#include "core/spec/gates.hpp"
#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster::api {

// Brings a written status into its shape: drops unknown fields and returns their paths, writes
// times as UTC. A wrong type and an unreadable time are errors.
Result<std::vector<std::string>> conform_status(nlohmann::json& status);

// Whether another controller manages the job: then that one writes its status.
bool managed_elsewhere(const core::JobSpec& spec, const core::Gates& gates);

// Each field and condition of a job of ours that is ours and that somebody wants to change.
// Conditions of other types are theirs.
core::Violations kept_by_us(const nlohmann::json& old_status, const nlohmann::json& status);
// Those others, as JSON text of a list; empty: none.
std::string own_conditions(const nlohmann::json& status);

// The invariants of a status that another controller writes. As in Kubernetes only what the write
// changes is judged: a job that was scaled down can still be written.
core::Violations status_violations(const core::JobSpec& spec, const nlohmann::json& old_status,
                                   const nlohmann::json& status);

}  // namespace muster::api
