// Validation: every rule for a new Job (job-semantics 1.6 and 1.7), in the order of the reference.
//
// Expects a Job that has its defaults, uid and generated labels. Reports all violations together.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <string>

namespace muster::core {

constexpr size_t kFinalizersMax = 256;  // every write of the job iterates over all of them

Violations validate_create(const JobMeta& meta, const JobSpec& spec);

// Rows 5 to 56, which a changed spec must satisfy as well.
void validate_spec(const JobSpec& spec, Violations& found);

// The groups of rules in validate_spec, one per file.
void validate_failure_policy(const JobSpec& spec, Violations& found);  // rows 25 to 40
void validate_success_policy(const JobSpec& spec, Violations& found);  // rows 41 to 49
void validate_template(const PodTemplate& pod, Violations& found);     // row 51, as in 1.7
// The pod's volumes and mounts; `path`: of the pod's spec.
void validate_volumes(const std::string& path, const PodTemplate& pod, Violations& found);

}  // namespace muster::core
