// Warnings: what Kubernetes accepts but warns about, in its words (the API's Warning header).
#pragma once

#include "core/spec/fields/job_spec.hpp"

#include <string>
#include <vector>

namespace muster::core {

// For a new job.
std::vector<std::string> creation_warnings(const JobMeta& meta, const JobSpec& spec);

// For an update; none if it leaves the spec unchanged.
std::vector<std::string> update_warnings(const JobMeta& old_meta, const JobMeta& meta,
                                         const JobSpec& spec);

}  // namespace muster::core
