#include "storage/recovery.hpp"

#include "base/last_words.hpp"
#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/text_number.hpp"
#include "storage/rows/history.hpp"
#include "storage/rows/rows.hpp"
#include "storage/rows/summary_row.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace muster::storage {
namespace {

Error broken(const std::string& what, const std::string& why) {
  return {Errc::invalid, "journal: " + what + ": " + why, {}};
}
Error broken(const std::string& what, const Error& why) {
  return {why.code, "journal: " + what + ": " + why.message, {}};
}

// For rows that all jobs depend on: without them the coordinator can't serve.
Error beyond_use(const std::string& what, const Error& why) {
  return broken(what, why.message + ". Use `muster restore` to go back to an earlier copy");
}

std::string job_name(JobId job) {
  return "job j" + std::to_string(job);
}

Status recover_meta(Journal& journal, Recovered& to) {
  to.commit = journal.last_commit();
  auto cluster = journal.get(keys::kCluster);
  if (!cluster) return beyond_use("cluster id", cluster.error());
  to.cluster_id = cluster->value_or("");
  auto key = journal.get(keys::kClusterKey);
  if (!key) return beyond_use("cluster key", key.error());
  to.cluster_key = key->value_or("");
  auto permit_key = journal.get(keys::kPermitKey);
  if (!permit_key) return beyond_use("permit key", permit_key.error());
  to.permit_key = permit_key->value_or("");
  auto seal_key = journal.get(keys::kSealKey);
  if (!seal_key) return beyond_use("seal key", seal_key.error());
  to.seal_key = seal_key->value_or("");
  auto authority = journal.get(keys::kAuthority);
  if (!authority) return beyond_use("authority", authority.error());
  to.authority = authority->value_or("");
  auto epoch_row = journal.get(keys::kEpoch);
  if (!epoch_row) return beyond_use("epoch", epoch_row.error());
  if (const auto& row = *epoch_row) {
    std::string_view text = *row;
    size_t space = text.find(' ');
    auto epoch = parse_number(text.substr(0, space));
    auto nonce = space == text.npos ? std::nullopt : parse_number(text.substr(space + 1));
    if (!epoch || !nonce) return broken("epoch", "the row is \"" + *row + "\"");
    to.epoch = *epoch;
    to.nonce = *nonce;
  }
  auto next_job = journal.get(keys::kNextJob);
  if (!next_job) return beyond_use("next job id", next_job.error());
  if (const auto& row = *next_job) {
    auto next = parse_number(*row);
    if (!next) return broken("next job id", "the row is \"" + *row + "\"");
    to.next_job_id = *next;
  }
  auto uses = journal.get(keys::kUses);
  if (!uses) return beyond_use("recent use", uses.error());
  if (const auto& row = *uses) {
    auto noted = read_uses(*row);
    if (!noted) return broken("recent use", "the row is \"" + *row + "\"");
    to.uses = std::move(*noted);
  }
  return Nothing{};
}

// Calls visit(key, value) for each row with this prefix until it returns an error.
template <class Visit>
Status scan(Rows& rows, std::string_view prefix, Visit visit) {
  Status status = Nothing{};
  Status read = rows.scan(prefix, [&status, &visit](std::string_view key, std::string_view value) {
    status = visit(key, value);
    return status.ok();
  });
  return read.ok() ? status : read;
}

// Calls visit(job, value) for the rows of this kind. visit returns the key to continue at ("": the
// next one), or nullopt to stop. Rows that can't be read are skipped, job by job, up to job `end`;
// `lost` is called for each job that may have had a row there.
void walk_jobs(Rows& rows, std::string_view kind, JobId end,
               const std::function<std::optional<std::string>(JobId, std::string_view)>& visit,
               const std::function<void(JobId, const Error&)>& lost) {
  JobId next = 1;  // all jobs below it are done
  for (bool first = true;; first = false) {
    const JobId before = next;
    bool enough = false;
    Status read = rows.walk(kind, first ? std::string(kind) : keys::numbered(kind, next),
                            [&](std::string_view key, std::string_view value) {
                              key.remove_prefix(kind.size());
                              JobId job = keys::take_number<JobId>(key).value_or(0);
                              next = std::max(next, job + 1);
                              auto go_on = visit(job, value);
                              enough = !go_on;
                              return go_on;
                            });
    if (read.ok() || enough) return;
    if (next >= end) return;  // the damage is beyond the last job
    if (next == before) lost(next++, read.error());
  }
}

std::optional<core::EpochEntry> parse_entry(uint64_t epoch, std::string_view text) {
  constexpr std::string_view kRestored = " restored";
  core::EpochEntry entry{.epoch = epoch};
  if (text.ends_with(kRestored)) {
    entry.restored = true;
    text.remove_suffix(kRestored.size());
  }
  size_t space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  auto nonce = parse_number(text.substr(0, space)), first = parse_number(text.substr(space + 1));
  if (!nonce || !first) return std::nullopt;
  entry.nonce = *nonce;
  entry.first_commit = *first;
  return entry;
}

// The line ends with the current epoch. If it does not, a version without a line wrote that epoch,
// and the line starts over with it.
Status recover_line(Journal& journal, Recovered& to) {
  std::vector<core::EpochEntry> entries;
  auto status =
      scan(journal, keys::kEpochs, [&](std::string_view key, std::string_view value) -> Status {
        key.remove_prefix(keys::kEpochs.size());
        auto epoch = keys::take_number<uint64_t>(key);
        auto entry = epoch && key.empty() ? parse_entry(*epoch, value) : std::nullopt;
        if (!entry) return broken("line of epochs", "a row is \"" + std::string(value) + "\"");
        entries.push_back(*entry);
        return Nothing{};
      });
  if (!status.ok()) return status;
  if (to.epoch == 0 && entries.empty()) return Nothing{};
  if (entries.empty() || entries.back().epoch != to.epoch || entries.back().nonce != to.nonce) {
    for (const core::EpochEntry& entry : entries) to.outdated_line.push_back(entry.epoch);
    entries = {{to.epoch, to.nonce, 0}};
  }
  to.line = core::EpochLine(std::move(entries));
  return Nothing{};
}

Status recover_trust(Journal& journal, Recovered& to) {
  auto status =
      scan(journal, keys::kTokens, [&](std::string_view key, std::string_view value) -> Status {
        auto token = decode_token(value);
        if (!token) return beyond_use("token " + std::string(key), token.error());
        to.trust.tokens[token->id] = *token;
        return Nothing{};
      });
  if (status.ok())
    status =
        scan(journal, keys::kClaims, [&](std::string_view key, std::string_view value) -> Status {
          key.remove_prefix(keys::kClaims.size());
          auto claims = decode_claims(value);
          if (!claims) return beyond_use("claims of node " + std::string(key), claims.error());
          to.trust.claims[std::string(key)] = *claims;
          return Nothing{};
        });
  if (!status.ok()) return status;
  return scan(journal, keys::kRevoked, [&](std::string_view key, std::string_view value) -> Status {
    key.remove_prefix(keys::kRevoked.size());
    const auto generation = parse_number(value);
    if (!generation) return broken("revoked node", "the row is \"" + std::string(value) + "\"");
    to.trust.generations[std::string(key)] = *generation;
    return Nothing{};
  });
}

Status recover_nodes(Journal& journal, Recovered& to) {
  Status status =
      scan(journal, keys::kNodes, [&to](std::string_view key, std::string_view value) -> Status {
        auto id = keys::parse_node(key);
        if (!id) return broken("node", "malformed key (" + std::to_string(key.size()) + " bytes)");
        auto node = decode_node(value);
        if (!node.ok()) return broken("node n" + std::to_string(*id), node.error());
        if (node->id != *id)
          return broken("node n" + std::to_string(*id),
                        "the row is n" + std::to_string(node->id) + "'s");
        to.nodes.push_back(std::move(*node));
        return Nothing{};
      });
  if (status.ok() || status.error().message.starts_with("journal: ")) return status;
  return beyond_use("nodes", status.error());
}

Status recover_kept(Journal& journal, Recovered& to) {
  Status status =
      scan(journal, keys::kKept, [&to](std::string_view key, std::string_view value) -> Status {
        key.remove_prefix(keys::kKept.size());
        const auto id = keys::take_number<uint64_t>(key);
        auto kept = decode_kept(value);
        if (!kept.ok()) return broken("kept object", kept.error());
        if (id != kept->id || !key.empty())
          return broken("kept object", "its key belongs to another object");
        to.kept.push_back(std::move(*kept));
        return Nothing{};
      });
  if (status.ok() || status.error().message.starts_with("journal: ")) return status;
  return beyond_use("kept objects", status.error());
}

Result<RecoveredJob> of_snapshot(JobId id, const core::JobObjectPtr& object,
                                 std::string_view value) {
  auto snapshot = decode_state(value);
  if (!snapshot.ok()) return broken(job_name(id), snapshot.error());
  return RecoveredJob{.job = core::Job(id, object, std::move(snapshot->state)),
                      .next_seq = snapshot->sequence + 1};
}

// The object as admitted, as far as the fold reads it. If the fold started with the newest object,
// a later scale-down would find nothing to remove.
core::JobObjectPtr as_admitted(const core::JobObjectPtr& newest, const core::JobObject& then) {
  auto object = std::make_shared<core::JobObject>(*newest);
  object->meta.generation = then.meta.generation;
  object->spec.parallelism = then.spec.parallelism;
  object->spec.completions = then.spec.completions;
  bool same = newest->meta.generation == then.meta.generation &&
              newest->spec.parallelism.value_or(1) == then.spec.parallelism &&
              newest->spec.completions == then.spec.completions;
  return same ? newest : object;
}

void apply_record(core::Job& job, core::Record& record, const core::JobObjectPtr& newest) {
  if (auto* admitted = std::get_if<core::JobAdmitted>(&record)) {
    admitted->object = as_admitted(newest, *admitted->object);
    job = core::Job(job.id(), admitted->object);
  } else if (auto* changed = std::get_if<core::JobSpecChanged>(&record)) {
    changed->object = newest;
  }
  job.apply(record);
}

Status apply_append(RecoveredJob& to, uint64_t sequence, std::string_view value,
                    const core::JobObjectPtr& newest) {
  const std::string what = job_name(to.job.id()) + ", append " + std::to_string(sequence);
  if (sequence != to.next_seq)
    return broken(what, "append " + std::to_string(to.next_seq) + " is missing");
  auto records = decode_records(value);
  if (!records.ok()) return broken(what, records.error());
  if (sequence == 1 &&
      (records->empty() || !std::holds_alternative<core::JobAdmitted>(records->front()))) {
    return broken(what, "the first record is not JobAdmitted");
  }
  for (core::Record& record : *records) apply_record(to.job, record, newest);
  ++to.next_seq;
  ++to.tail_rows;
  to.tail_records += records->size();
  to.tail_bytes += value.size();
  return Nothing{};
}

constexpr char kSetAside[] =
    "set aside because the coordinator crashed on it in three consecutive starts; to retry it, run "
    "another version of muster, or remove the file `crashes` from the data-dir";

// Folds the job of this owner's row: its snapshot and the appends after it.
Result<RecoveredJob> fold(Rows& rows, JobId id, std::string_view owner,
                          const LoadObject& load_object) {
  const WorksOn works(id);
  core::JobObjectPtr object = load_object(owner);
  if (object == nullptr) return broken(job_name(id), "the owner's row can't be read");
  RecoveredJob job{.job = core::Job(id, object)};
  auto row = rows.get(keys::snapshot(id));
  if (!row) return broken(job_name(id) + ", snapshot", row.error());
  if (*row) {
    auto from = of_snapshot(id, object, **row);
    if (!from.ok()) return from.error();
    job = std::move(*from);
  }
  Status status = Nothing{};
  // Start at the first append: seeking a key between two jobs may read the block before it.
  auto visit = [&](std::string_view key, std::string_view value) {
    auto at = keys::parse_records(key);
    status = at ? apply_append(job, at->sequence, value, object)
                : broken("records", "malformed key (" + std::to_string(key.size()) + " bytes)");
    return status.ok();
  };
  Status read = rows.scan_from(keys::records_of(id), keys::records(id, 1), visit);
  if (!status.ok()) return status.error();
  if (!read.ok()) return broken(job_name(id) + ", records", read.error());
  if (job.next_seq == 1) return broken(job_name(id), "an owner's row without records");
  return job;
}

// Whether a job whose owner's row can't be read may exist: if it does, it has records or a
// snapshot.
bool may_exist(Rows& rows, JobId id) {
  auto snapshot = rows.get(keys::snapshot(id));
  if (!snapshot || *snapshot) return true;
  bool found = false;
  Status read = rows.scan(keys::records_of(id), [&found](auto, auto) {
    found = true;
    return false;
  });
  return found || !read;
}

// The result of walking the owners' rows: the jobs that exist, the damaged ones, and why the
// journal is refused, if it is.
struct Owners {
  std::set<JobId> jobs;
  std::map<JobId, DamagedJob> damaged;
  Status refused = Nothing{};
};

// Reads the summary rows. A job whose row can't be read is folded as if it had none.
std::map<JobId, core::JobSummary> read_summaries(Rows& rows, JobId end) {
  std::map<JobId, core::JobSummary> found;
  auto visit = [&found](JobId job, std::string_view value) -> std::optional<std::string> {
    auto unloaded = decode_summary(job, value);
    if (unloaded && unloaded->owner_known)
      found.emplace_hint(found.end(), job, std::move(*unloaded));
    return "";
  };
  walk_jobs(rows, keys::kSummary, end, visit, [](JobId, const Error&) {});
  return found;
}

// The jobs that have rows of this kind, up to the first one at or beyond `end`.
std::vector<JobId> jobs_with(Rows& rows, std::string_view kind, JobId end) {
  std::vector<JobId> jobs;
  auto visit = [&](JobId job, std::string_view) -> std::optional<std::string> {
    jobs.push_back(job);
    return job >= end ? std::nullopt : std::optional(keys::numbered(kind, job + 1));
  };
  // If a job with an owner's row has unreadable rows, folding it reports them.
  walk_jobs(rows, kind, end, visit, [](JobId, const Error&) {});
  return jobs;
}

// Marks each of `jobs` that has no owner's row as damaged: its object is lost.
void find_orphans(const std::vector<JobId>& jobs, JobId end, Owners& owners) {
  for (const JobId job : jobs) {
    if (job >= end) {
      owners.refused = broken(job_name(job), "its id was never reserved");
      return;
    }
    if (owners.jobs.contains(job)) continue;
    std::string why = broken(job_name(job), "it has rows but no owner's row").message;
    owners.damaged.try_emplace(job, DamagedJob{job, nullptr, std::move(why)});
  }
}

}  // namespace

Result<Recovered> recover_head(Journal& journal) {
  Recovered to;
  if (auto status = recover_meta(journal, to); !status.ok()) return status.error();
  if (auto status = recover_line(journal, to); !status.ok()) return status.error();
  if (auto status = recover_trust(journal, to); !status.ok()) return status.error();
  if (auto status = recover_nodes(journal, to); !status.ok()) return status.error();
  if (auto status = recover_kept(journal, to); !status.ok()) return status.error();
  return to;
}

Result<Recovered> recover(Journal& journal, const LoadObject& load_object,
                          const std::function<void(core::JobSummary)>& on_unloaded,
                          const std::set<JobId>& aside) {
  auto head = recover_head(journal);
  if (!head.ok()) return head.error();
  Recovered to = std::move(*head);
  // Runs concurrently, on another core.
  auto others = std::async(std::launch::async, [&journal, end = to.next_job_id] {
    return std::pair(jobs_with(journal, keys::kSnapshots, end),
                     jobs_with(journal, keys::kRecords, end));
  });
  std::map<JobId, core::JobSummary> unloaded;
  if (on_unloaded) unloaded = read_summaries(journal, to.next_job_id);
  Owners owners;
  auto owner = [&](JobId id, std::string_view value) -> std::optional<std::string> {
    if (id >= to.next_job_id) {
      owners.refused = broken(job_name(id), "its id was never reserved");
      return std::nullopt;
    }
    owners.jobs.insert(owners.jobs.end(), id);
    if (aside.contains(id)) {
      unloaded.erase(id);
      owners.damaged.emplace(id, DamagedJob{id, load_object(value), kSetAside});
      return "";
    }
    if (unloaded.contains(id)) return "";
    auto job = fold(journal, id, value, load_object);
    if (!job.ok() && job.error().code == Errc::conflict) {
      owners.refused = job.error();
      return std::nullopt;
    }
    if (!job.ok())
      owners.damaged.emplace(id, DamagedJob{id, load_object(value), job.error().message});
    else if (on_unloaded && job->job.can_unload()) {
      unloaded.emplace(id, core::summary_of(job->job));
      to.summary_rows.push_back(summary_row(job->job));
    } else
      to.jobs.push_back(std::move(*job));
    return "";
  };
  auto lost = [&](JobId id, const Error& why) {
    if (!may_exist(journal, id)) return;
    owners.jobs.insert(owners.jobs.end(), id);
    if (unloaded.contains(id)) return;
    owners.damaged.emplace(
        id, DamagedJob{id, nullptr, broken(job_name(id) + ", owner's row", why).message});
  };
  walk_jobs(journal, keys::kOwners, to.next_job_id, owner, lost);
  const auto [with_snapshot, with_records] = others.get();
  for (const auto* jobs : {&with_snapshot, &with_records})
    if (owners.refused.ok()) find_orphans(*jobs, to.next_job_id, owners);
  if (!owners.refused.ok()) return owners.refused.error();
  for (auto& [id, entry] : unloaded) {
    if (owners.jobs.contains(id))
      on_unloaded(std::move(entry));
    else
      to.summary_rows.push_back(forget_summary_row(id));  // of a job that an older muster removed
  }
  for (auto& [id, job] : owners.damaged) to.damaged.push_back(std::move(job));
  return to;
}

Result<RecoveredJob> recover_job(Journal& journal, JobId id, const LoadObject& load_object) {
  return recover_job(*journal.frozen(), id, load_object);
}

Result<RecoveredJob> recover_job(Rows& rows, JobId id, const LoadObject& load_object) {
  auto owner = rows.get(keys::owner(id));
  if (!owner) return broken(job_name(id) + ", owner's row", owner.error());
  if (!*owner) return Error{Errc::not_found, "journal: there is no " + job_name(id), {}};
  return fold(rows, id, **owner, load_object);
}

std::vector<Row> begin_history(Journal& journal, bool keeps, uint64_t last, uint64_t epoch,
                               const std::vector<JobId>& ended, const LoadObject& load_object) {
  std::vector<Row> rows;
  const std::string key(keys::kHistoryOf);
  const auto noted = journal.get(key);
  const bool kept = noted && *noted && **noted == std::to_string(last);
  if (!keeps) {
    rows.push_back({key, std::nullopt});
    return rows;
  }
  rows.push_back({key, std::to_string(epoch)});
  if (kept) return rows;
  for (const JobId id : ended) {
    const auto row = journal.get(keys::history(id));
    if (!row || *row) continue;
    // One that can't be read now is written with its removal, if it can then.
    if (const auto job = recover_job(journal, id, load_object); job.ok())
      rows.push_back(history_row(core::history_entry(job->job)));
  }
  return rows;
}

}  // namespace muster::storage
