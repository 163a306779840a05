// Defaults: what a Job gets that its owner did not write (job-semantics 1.2 and 1.3).
//
// They come before validation, so a defaulted value is never reported as missing.
#pragma once

#include "core/spec/job_spec.hpp"

namespace muster::core {

void apply_defaults(JobMeta& meta, JobSpec& spec);

// The generated labels and selector of a new job, unless it has a selector of its own
// (manualSelector). The job has its uid and name; values that are there already stay, and
// validation judges them.
void generate_selector(const JobMeta& meta, JobSpec& spec);

}  // namespace muster::core
