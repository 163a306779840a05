// The fields of a Job that muster acts on, between the JSON document and core's plain values.
#pragma once

#include "core/spec/job_spec.hpp"

#include <nlohmann/json.hpp>

namespace muster::api {

// `document` conforms to "Job" (fields.hpp).
void read_values(const nlohmann::json& document, core::JobMeta& meta, core::JobSpec& spec);

// Writes what defaults and the server gave; fields that are only kept stay as they are.
void write_values(const core::JobMeta& meta, const core::JobSpec& spec, nlohmann::json& document);

}  // namespace muster::api
