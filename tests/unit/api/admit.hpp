// A new job as a write makes it: complete_job, then seal_job.
#pragma once

#include "api/kube/objects/manifest.hpp"

#include <utility>

namespace muster::api {

inline Result<core::JobObjectPtr> admit_job(ParsedJob job, const Admission& admission) {
  auto complete = complete_job(std::move(job), admission);
  if (!complete.ok()) return complete.error();
  return seal_job(std::move(*complete));
}

}  // namespace muster::api
