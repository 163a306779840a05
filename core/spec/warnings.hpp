// Warnings: what Kubernetes accepts and yet warns of, in its words (the Warning header of the API).
#pragma once

#include "core/spec/job_spec.hpp"

#include <string>
#include <vector>

namespace muster::core {

// Of a new job.
std::vector<std::string> creation_warnings(const JobMeta& meta, const JobSpec& spec);

// Of an update; none when it leaves the spec as it is.
std::vector<std::string> update_warnings(const JobMeta& old_meta, const JobMeta& meta,
                                         const JobSpec& spec);

}  // namespace muster::core
