// Attempts: the history of what ran, a list of closed attempts an append of their job.
//
// Written with the append that closed them and never changed. Reading goes straight to the disk, a
// page at a time, so that the history costs no memory however long it is. It lives as long as its
// job, and is bounded by age and count: outdated_attempts() says which rows are to go.
#pragma once

#include "core/job/pod.hpp"
#include "storage/journal.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace muster::storage {

Row attempts_row(JobId job, uint64_t sequence, Millis at_ms, const std::vector<core::Pod>& closed);

// Where a page begins: at an append, after so many of its attempts.
struct AttemptCursor {
  uint64_t sequence = 0;
  uint32_t skip = 0;
};

struct AttemptPage {
  std::vector<core::Pod> attempts;    // in the order in which they were closed
  std::optional<AttemptCursor> next;  // more may follow
  AttemptCursor end;                  // after all that was looked at: what is closed later
};

// At most `limit` attempts that `wanted` names, and no more than a few thousand looked at: a page
// may be empty and not the last.
Result<AttemptPage> read_attempts(Rows& rows, JobId job, AttemptCursor from, size_t limit,
                                  const std::function<bool(const core::Pod&)>& wanted);

// Removals of what is older than `before_ms`, of what is beyond the newest `keep` attempts, and of
// what belonged to jobs that are gone; at most `rows_max` of them.
std::vector<Row> outdated_attempts(Rows& rows, Millis before_ms, uint64_t keep, size_t rows_max);

}  // namespace muster::storage
