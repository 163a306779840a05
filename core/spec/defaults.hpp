// Defaults for what the owner of a Job did not write (job-semantics 1.2 and 1.3).
//
// They are applied before validation, so a defaulted value is never reported as missing.
#pragma once

#include "core/spec/job_spec.hpp"

namespace muster::core {

void apply_defaults(JobMeta& meta, JobSpec& spec);

// Adds the generated labels and selector of a new job, unless it brings its own selector
// (manualSelector). The job has its uid and name; existing values stay, and validation checks them.
void generate_selector(const JobMeta& meta, JobSpec& spec);

}  // namespace muster::core
