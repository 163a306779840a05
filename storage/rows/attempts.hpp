// Attempts: the history of each job, as one list of closed attempts per append.
//
// A list is written with the append that closed its attempts and never changes. Reads go straight
// to the disk, a page at a time, so a long history costs no memory. It lives as long as its job or
// the job's row in the history (history.hpp), and is bounded by age and count: outdated_attempts()
// returns the rows to remove.
#pragma once

#include "core/job/shown/attempt_page.hpp"
#include "storage/journal/journal.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace muster::storage {

Row attempts_row(JobId job, uint64_t sequence, Millis at_ms, const std::vector<core::Pod>& closed);

using core::AttemptCursor;
using core::AttemptPage;

// Returns at most `limit` attempts that `wanted` accepts and reads no more than a few thousand: a
// page may be empty without being the last.
Result<AttemptPage> read_attempts(Rows& rows, JobId job, AttemptCursor from, size_t limit,
                                  const std::function<bool(const core::Pod&)>& wanted);

// Removals of rows older than `before_ms`, beyond the newest `keep` attempts, or of jobs of which
// nothing is left; at most `rows_max`.
std::vector<Row> outdated_attempts(Rows& rows, Millis before_ms, uint64_t keep, size_t rows_max);

}  // namespace muster::storage
