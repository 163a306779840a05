// Rows: builds each kind of row for Journal::commit(); recovery.hpp reads them back.
//
// Rows that belong together go into one commit: a new job's owner row with its first records, a
// changed owner row with JobSpecChanged, a snapshot with the removal of the appends it replaces.
#pragma once

#include "core/cluster/nodes/epoch_line.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/cluster/slots/recent_use.hpp"
#include "core/job/facts/record.hpp"
#include "core/job/fold/job.hpp"
#include "core/kept.hpp"
#include "core/trust.hpp"
#include "storage/journal/journal.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::storage {

// One append of a job. `sequence` is 1 for its first append and grows by one per append. If records
// carry an object (JobAdmitted, JobSpecChanged), the owner's row is written too, from the last of
// them.
std::vector<Row> job_rows(JobId job, uint64_t sequence, const std::vector<core::Record>& records);

// A snapshot that replaces all appends up to `sequence`, and the removal of the rows
// first_tail…sequence (first_tail: the sequence after the previous snapshot; 1 if there was none).
std::vector<Row> snapshot_rows(JobId job, const core::JobState& state, uint64_t sequence,
                               uint64_t first_tail);

// Removes a job's owner row, snapshot, summary row and its remaining appends first_tail…sequence.
// HistoryActor removes its attempts later, together with its row in the history.
std::vector<Row> forget_rows(JobId job, uint64_t sequence, uint64_t first_tail);

Row node_row(const core::NodeInfo& node);

Row kept_row(const core::Kept& kept);
Row forget_kept_row(uint64_t id);

Row cluster_row(const std::string& cluster_id);
Row cluster_key_row(const std::string& key);
Row permit_key_row(const std::string& key);
Row seal_key_row(const std::string& key);
Row authority_row(const std::string& pems);  // key, then certificate
Row token_row(const core::Token& token);
Row forget_token_row(const std::string& id);
Row revoked_row(const std::string& node, uint64_t generation);
Row claims_row(const std::string& node, const core::NodeClaims& claims);
Row epoch_row(uint64_t epoch, uint64_t nonce);
Row line_row(const core::EpochEntry& entry);
Row forget_line_row(uint64_t epoch);
// Job ids below `end` may have been issued.
Row next_job_row(JobId end);
Row uses_row(const core::NotedUses& noted);
// nullopt: it is malformed.
std::optional<core::NotedUses> read_uses(std::string_view row);

}  // namespace muster::storage
