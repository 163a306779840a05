// Recovery: everything that the journal holds, folded. Done once, before anyone is let in.
#pragma once

#include "base/result.hpp"
#include "core/cluster/epoch_line.hpp"
#include "core/cluster/node_info.hpp"
#include "core/job/job.hpp"
#include "storage/journal.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::storage {

// A job is its snapshot (or nothing) and the appends after it, in order. One that was forgotten but
// whose rows are still there is among them: job.state().forgotten says so, and forget_rows()
// finishes the work.
struct RecoveredJob {
  core::Job job;
  uint64_t next_seq = 1;   // of the job's next append
  uint64_t tail_rows = 0;  // appends since the snapshot: next_seq - tail_rows is the first of them
  uint64_t tail_records = 0;  // records in them
  uint64_t tail_bytes = 0;    // bytes of their values
};

struct Recovered {
  std::string cluster_id;   // empty: a new journal
  std::string cluster_key;  // empty: a new journal, or an earlier version's
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  core::EpochLine line;  // ends with the epoch above
  // Line rows to remove: a version that knows no line has served since.
  std::vector<uint64_t> outdated_line;
  JobId next_job_id = 0;  // end of the reserved block: no id at or above it was ever given
  std::vector<core::NodeInfo> nodes;  // by id
  std::vector<RecoveredJob> jobs;     // by id
  uint64_t commit = 0;
};

// The object of an owner's row; nullptr: the text can't be read.
using LoadObject = std::function<core::JobObjectPtr(std::string_view json)>;

// `invalid`, with the row and the reason, when a row can't be understood: nothing is guessed,
// skipped or repaired. `at_rest` is given each job that is (Job::at_rest), one after another, and
// these are not among `jobs` then: so they never are in memory together.
Result<Recovered> recover(Journal& journal, const LoadObject& load_object,
                          const std::function<void(const RecoveredJob&)>& at_rest = nullptr);

// The same without the jobs.
Result<Recovered> recover_head(Journal& journal);

// One job alone, as it is on disk now; from any thread.
// `invalid` as above; not_found: there is no such job.
Result<RecoveredJob> recover_job(Journal& journal, JobId id, const LoadObject& load_object);
// The same, as these rows have it.
Result<RecoveredJob> recover_job(Rows& rows, JobId id, const LoadObject& load_object);

}  // namespace muster::storage
