// Summary rows: a finished job that is unloaded, so that neither a start nor a list reads it back.
//
// Always holds: an unloaded job has a summary row that was written with its last append, and no
// other job has one; save for what an older muster wrote, whose rows recovery makes (recovery.hpp).
#pragma once

#include "base/result.hpp"
#include "core/job/summary.hpp"
#include "storage/journal.hpp"

#include <string_view>

namespace muster::storage {

Row summary_row(const core::Job& job);
Row forget_summary_row(JobId job);
// `invalid`: it can't be read.
Result<core::JobSummary> decode_summary(JobId job, std::string_view bytes);

// One that is unloaded, as lists tell it (core::brief). not_found: there is no such row, or it does
// not say enough; `invalid`: it can't be read.
Result<core::Job> brief_job(Rows& rows, JobId job);

}  // namespace muster::storage
