// History: one row per job that has ended or is deleted, which outlives the job.
//
// The row is written with each append to a job that has ended or is being deleted, the last time in
// the batch that removes the job. So a job has its own rows or this one, or both while it exists,
// whatever crashes, and never two. Rows are read from the disk, a page at a time, and bounded by
// age and count (outdated_history()).
#pragma once

#include "core/history/entry.hpp"
#include "storage/journal/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace muster::storage {

Row history_row(const core::HistoryEntry& entry);
// `conflict`: another version wrote it; `invalid`: it can't be read.
Result<core::HistoryEntry> decode_history(JobId job, std::string_view bytes);

// not_found: the job has no row.
Result<core::HistoryEntry> read_history(Rows& rows, JobId job);
// Visits the entries of the jobs after this one, by id, until `visit` returns false. A row that
// can't be read is skipped.
Status scan_history(Rows& rows, JobId after,
                    const std::function<bool(const core::HistoryEntry&)>& visit);

// Removals of rows of jobs that are gone: those that ended before `before_ms`, and the oldest
// beyond the newest `keep`. With `keep` 0, of all rows. At most `rows_max`.
std::vector<Row> outdated_history(Rows& rows, Millis before_ms, uint64_t keep, size_t rows_max);

}  // namespace muster::storage
