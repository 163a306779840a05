// Recovery: everything that the journal holds, folded. Done once, before anyone is let in.
#pragma once

#include "base/result.hpp"
#include "core/cluster/epoch_line.hpp"
#include "core/cluster/node_info.hpp"
#include "core/job/job.hpp"
#include "core/job/summary.hpp"
#include "core/kept.hpp"
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

// A job whose state can't be read, or makes no sense. Nothing is decided about it, and nobody is
// told that it is gone.
struct DamagedJob {
  JobId id = 0;
  core::JobObjectPtr object;  // nullptr: what its owner wrote can't be read either
  std::string why;
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
  std::vector<core::Kept> kept;       // by id
  std::vector<RecoveredJob> jobs;     // by id
  std::vector<DamagedJob> damaged;    // by id
  std::vector<Row> summary_rows;      // to be written: what an older muster did not write
  uint64_t commit = 0;
};

// The object of an owner's row; nullptr: the text can't be read.
using LoadObject = std::function<core::JobObjectPtr(std::string_view json)>;

// A row of a job that can't be read or understood sets that job aside, with the row and the reason:
// nothing is guessed or repaired, and the others are not concerned. `invalid` when such a row is of
// a node or of the cluster itself, or when another version wrote it. `on_unloaded` is
// given each job that is (Job::can_unload), by id, and these are not among `jobs` then. One with an
// summary row is not looked at further: its damage is met when somebody asks for it.
Result<Recovered> recover(Journal& journal, const LoadObject& load_object,
                          const std::function<void(core::JobSummary)>& on_unloaded = nullptr);

// The same without the jobs.
Result<Recovered> recover_head(Journal& journal);

// One job alone, as it is on disk now; from any thread.
// `invalid`: its rows can't be read or understood; not_found: there is no such job.
Result<RecoveredJob> recover_job(Journal& journal, JobId id, const LoadObject& load_object);
// The same, as these rows have it.
Result<RecoveredJob> recover_job(Rows& rows, JobId id, const LoadObject& load_object);

}  // namespace muster::storage
