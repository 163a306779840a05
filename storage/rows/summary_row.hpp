// Summary rows: what startup and lists need to know about an unloaded job, so neither folds it.
//
// Invariant: an unloaded job has a summary row, written with its last append, and no other job has
// one. Recovery adds the rows that an older muster did not write (recovery.hpp).
#pragma once

#include "base/result.hpp"
#include "core/job/shown/summary.hpp"
#include "storage/journal/journal.hpp"

#include <string_view>

namespace muster::storage {

Row summary_row(const core::Job& job);
Row forget_summary_row(JobId job);
// `conflict`: another version wrote it; `invalid`: it can't be read.
Result<core::JobSummary> decode_summary(JobId job, std::string_view bytes);

// An unloaded job as lists show it (core::brief). not_found: there is no such row, or its state was
// too large for it; `invalid`: it can't be read.
Result<core::Job> brief_job(Rows& rows, JobId job);

}  // namespace muster::storage
