// Job values: converts the fields of a Job that muster acts on between JSON and core's plain
// values.
#pragma once

#include "core/spec/fields/job_spec.hpp"

#include <nlohmann/json.hpp>

namespace muster::api {

// `document` must conform to "Job" (fields.hpp).
void read_values(const nlohmann::json& document, core::JobMeta& meta, core::JobSpec& spec);

// Writes what defaults and the server set; fields that are only kept stay unchanged.
void write_values(const core::JobMeta& meta, const core::JobSpec& spec, nlohmann::json& document);

}  // namespace muster::api
