// Recovery: folds everything in the journal, once, before anything is served.
#pragma once

#include "base/result.hpp"
#include "core/cluster/nodes/epoch_line.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/cluster/slots/recent_use.hpp"
#include "core/job/fold/job.hpp"
#include "core/job/shown/summary.hpp"
#include "core/kept.hpp"
#include "core/trust.hpp"
#include "storage/journal/journal.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::storage {

// A job is its snapshot, if any, and the appends after it, in order. A forgotten job whose rows
// still exist is included: job.state().forgotten is set, and forget_rows() removes them.
struct RecoveredJob {
  core::Job job;
  uint64_t next_seq = 1;   // of the job's next append
  uint64_t tail_rows = 0;  // appends since the snapshot: next_seq - tail_rows is the first of them
  uint64_t tail_records = 0;  // records in them
  uint64_t tail_bytes = 0;    // bytes of their values
};

// A job whose state can't be read or is inconsistent. It is quarantined: nothing is decided about
// it, and it is not reported as gone.
struct DamagedJob {
  JobId id = 0;
  core::JobObjectPtr object;  // nullptr: the owner's row can't be read either
  std::string why;
};

struct Recovered {
  std::string cluster_id;   // empty: a new journal
  std::string cluster_key;  // empty: a new journal, or an earlier version's
  std::string permit_key;   // likewise, or users never had roles
  std::string seal_key;     // empty: a new journal, or an earlier version's
  std::string authority;    // key and certificate, PEM; empty: no links were ever encrypted
  core::Trust trust;
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  core::EpochLine line;  // ends with the epoch above
  // Line rows to remove, because a version without a line has served since they were written.
  std::vector<uint64_t> outdated_line;
  core::NotedUses uses;               // what users had of the cluster lately
  JobId next_job_id = 0;              // end of the reserved block: no id at or above it was issued
  std::vector<core::NodeInfo> nodes;  // by id
  std::vector<core::Kept> kept;       // by id
  std::vector<RecoveredJob> jobs;     // by id
  std::vector<DamagedJob> damaged;    // by id
  std::vector<Row> summary_rows;      // to write or remove: what an older muster left undone
  uint64_t commit = 0;
};

// Parses the object of an owner's row; nullptr if it can't be read.
using LoadObject = std::function<core::JobObjectPtr(std::string_view json)>;

// A job row that can't be read or is inconsistent quarantines its job, with the reason: nothing is
// guessed or repaired, and other jobs are unaffected. Fails if such a row belongs to a node or to
// the cluster itself, or if another version wrote it (`conflict` for a job's row).
//
// If set, `on_unloaded` gets each unloaded job (Job::can_unload), by id; `jobs` then has only the
// others. A job with a summary row is not read further: damage to it shows when it is loaded.
//
// Jobs in `aside` are quarantined without being read.
Result<Recovered> recover(Journal& journal, const LoadObject& load_object,
                          const std::function<void(core::JobSummary)>& on_unloaded = nullptr,
                          const std::set<JobId>& aside = {});

// Likewise, without the jobs.
Result<Recovered> recover_head(Journal& journal);

// One job as it is on disk now; from any thread. `invalid`: its rows are damaged or inconsistent;
// not_found: there is no such job.
Result<RecoveredJob> recover_job(Journal& journal, JobId id, const LoadObject& load_object);
// Likewise, from these rows.
Result<RecoveredJob> recover_job(Rows& rows, JobId id, const LoadObject& load_object);

// What a start in this epoch writes: that it keeps the history, and the rows of ended jobs that
// have none, because the epoch before, `last`, did not keep it. Without `keeps`, that it does not.
std::vector<Row> begin_history(Journal& journal, bool keeps, uint64_t last, uint64_t epoch,
                               const std::vector<JobId>& ended, const LoadObject& load_object);

}  // namespace muster::storage
