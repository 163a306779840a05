// Index rows: a finished job at rest, so that neither a start nor a list reads it back.
//
// Always holds: a job at rest has an index row that was written with its last append, and no other
// job has one; save for what an older muster wrote, whose rows recovery makes (recovery.hpp).
#pragma once

#include "base/result.hpp"
#include "core/job/resting.hpp"
#include "storage/journal.hpp"

#include <string_view>

namespace muster::storage {

Row resting_row(const core::Job& job);
Row forget_resting_row(JobId job);
// `invalid`: it can't be read.
Result<core::Resting> decode_resting(JobId job, std::string_view bytes);

// One that is at rest, as lists tell it (core::brief). not_found: there is no such row, or it does
// not say enough; `invalid`: it can't be read.
Result<core::Job> brief_job(Rows& rows, JobId job);

}  // namespace muster::storage
