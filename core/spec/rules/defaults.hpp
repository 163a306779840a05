// Defaults for fields that the owner of a Job did not set (job-semantics 1.2 and 1.3).
//
// Applied before validation, so a field with a default is never reported as missing.
#pragma once

#include "core/spec/fields/job_spec.hpp"

namespace muster::core {

void apply_defaults(JobMeta& meta, JobSpec& spec);

// Adds the generated labels and selector to a new job, unless it has its own selector
// (manualSelector). Its uid and name must be set; existing values stay, and validation checks them.
void generate_selector(const JobMeta& meta, JobSpec& spec);

}  // namespace muster::core
