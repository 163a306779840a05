// Validation: every rule that a new Job has to keep (job-semantics 1.6 and 1.7), in the order of
// the reference.
//
// Judges a Job with its defaults, uid and generated labels. All violations are reported together.
#pragma once

#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <string>

namespace muster::core {

constexpr size_t kFinalizersMax = 256;  // each is looked through at every write of the job

Violations validate_create(const JobMeta& meta, const JobSpec& spec);

// Rows 5 to 56: what a changed spec has to keep as well.
void validate_spec(const JobSpec& spec, Violations& found);

// The groups of rules that validate_spec is made of, one a file.
void validate_failure_policy(const JobSpec& spec, Violations& found);  // rows 25 to 40
void validate_success_policy(const JobSpec& spec, Violations& found);  // rows 41 to 49
void validate_template(const PodTemplate& pod, Violations& found);     // row 51, as in 1.7

}  // namespace muster::core
