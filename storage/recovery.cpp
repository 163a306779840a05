#include "storage/recovery.hpp"

#include "storage/codec.hpp"
#include "storage/keys.hpp"
#include "storage/text_number.hpp"

#include <optional>
#include <set>
#include <variant>

namespace muster::storage {
namespace {

Error broken(const std::string& what, const std::string& why) {
  return {Errc::invalid, "journal: " + what + ": " + why};
}

std::string job_name(JobId job) {
  return "job j" + std::to_string(job);
}

Status recover_meta(Journal& journal, Recovered& to) {
  to.commit = journal.last_commit();
  to.cluster_id = journal.get(keys::kCluster).value_or("");
  to.cluster_key = journal.get(keys::kClusterKey).value_or("");
  if (auto row = journal.get(keys::kEpoch)) {
    std::string_view text = *row;
    size_t space = text.find(' ');
    auto epoch = parse_number(text.substr(0, space));
    auto nonce = space == text.npos ? std::nullopt : parse_number(text.substr(space + 1));
    if (!epoch || !nonce) return broken("epoch", "the row is \"" + *row + "\"");
    to.epoch = *epoch;
    to.nonce = *nonce;
  }
  if (auto row = journal.get(keys::kNextJob)) {
    auto next = parse_number(*row);
    if (!next) return broken("next job id", "the row is \"" + *row + "\"");
    to.next_job_id = *next;
  }
  return Nothing{};
}

// Calls visit(key, value) for each row with this prefix until it returns an error.
template <class Visit>
Status scan(Rows& rows, std::string_view prefix, Visit visit) {
  Status status = Nothing{};
  rows.scan(prefix, [&status, &visit](std::string_view key, std::string_view value) {
    status = visit(key, value);
    return status.ok();
  });
  return status;
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

// The line ends with the present epoch. Where it does not, a version that knows no line has written
// that, and the line begins anew with it.
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

Status recover_nodes(Journal& journal, Recovered& to) {
  return scan(journal, keys::kNodes, [&to](std::string_view key, std::string_view value) -> Status {
    auto id = keys::parse_node(key);
    if (!id) return broken("node", "a key of " + std::to_string(key.size()) + " bytes");
    auto node = decode_node(value);
    if (!node.ok()) return broken("node n" + std::to_string(*id), node.error().message);
    if (node->id != *id)
      return broken("node n" + std::to_string(*id),
                    "the row is n" + std::to_string(node->id) + "'s");
    to.nodes.push_back(std::move(*node));
    return Nothing{};
  });
}

Result<RecoveredJob> of_snapshot(JobId id, const core::JobObjectPtr& object,
                                 std::string_view value) {
  auto snapshot = decode_state(value);
  if (!snapshot.ok()) return broken(job_name(id), snapshot.error().message);
  return RecoveredJob{.job = core::Job(id, object, std::move(snapshot->state)),
                      .next_seq = snapshot->sequence + 1};
}

// The object as it was when the job was admitted, as far as the fold looks at it. Were the newest
// one used from the start, a later scale-down would find nothing to scale away.
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
  if (!records.ok()) return broken(what, records.error().message);
  if (sequence == 1 &&
      (records->empty() || !std::holds_alternative<core::JobAdmitted>(records->front()))) {
    return broken(what, "a job that does not begin with JobAdmitted");
  }
  for (core::Record& record : *records) apply_record(to.job, record, newest);
  ++to.next_seq;
  ++to.tail_rows;
  to.tail_records += records->size();
  to.tail_bytes += value.size();
  return Nothing{};
}

// The job of this owner's row: its snapshot and what came after.
Result<RecoveredJob> fold(Rows& rows, JobId id, std::string_view owner,
                          const LoadObject& load_object) {
  core::JobObjectPtr object = load_object(owner);
  if (object == nullptr) return broken(job_name(id), "the owner's row can't be read");
  RecoveredJob job{.job = core::Job(id, object)};
  if (auto row = rows.get(keys::snapshot(id))) {
    auto from = of_snapshot(id, object, *row);
    if (!from.ok()) return from.error();
    job = std::move(*from);
  }
  auto status =
      scan(rows, keys::records_of(id),
           [&job, &object](std::string_view key, std::string_view value) -> Status {
             auto at = keys::parse_records(key);
             if (!at) return broken("records", "a key of " + std::to_string(key.size()) + " bytes");
             return apply_append(job, at->sequence, value, object);
           });
  if (!status.ok()) return status.error();
  if (job.next_seq == 1) return broken(job_name(id), "an owner's row without records");
  return job;
}

// Rows of this kind that belong to no job would be a fold that somebody lost.
Status check_owners(Rows& rows, std::string_view kind, const std::set<JobId>& jobs) {
  std::string from(kind);
  for (bool more = true; more;) {
    more = false;
    std::optional<JobId> job;
    rows.scan_from(kind, from, [&](std::string_view key, std::string_view) {
      key.remove_prefix(kind.size());
      job = keys::take_number<JobId>(key);
      more = true;
      return false;
    });
    if (!more) return Nothing{};
    if (!job || !jobs.contains(*job))
      return broken(job_name(job.value_or(0)), "its rows are there without an owner's row");
    if (*job == UINT64_MAX) return Nothing{};
    from = std::string(kind);
    keys::append_number(from, *job + 1);
  }
  return Nothing{};
}

}  // namespace

Result<Recovered> recover_head(Journal& journal) {
  Recovered to;
  if (auto status = recover_meta(journal, to); !status.ok()) return status.error();
  if (auto status = recover_line(journal, to); !status.ok()) return status.error();
  if (auto status = recover_nodes(journal, to); !status.ok()) return status.error();
  return to;
}

Result<Recovered> recover(Journal& journal, const LoadObject& load_object,
                          const std::function<void(const RecoveredJob&)>& at_rest) {
  auto head = recover_head(journal);
  if (!head.ok()) return head.error();
  Recovered to = std::move(*head);
  std::set<JobId> jobs;
  auto status =
      scan(journal, keys::kOwners, [&](std::string_view key, std::string_view value) -> Status {
        auto id = keys::parse_job(keys::kOwners, key);
        if (!id) return broken("owner's row", "a key of " + std::to_string(key.size()) + " bytes");
        if (*id >= to.next_job_id) return broken(job_name(*id), "its id was never reserved");
        jobs.insert(jobs.end(), *id);
        auto job = fold(journal, *id, value, load_object);
        if (!job.ok()) return job.error();
        if (at_rest && job->job.at_rest())
          at_rest(*job);
        else
          to.jobs.push_back(std::move(*job));
        return Nothing{};
      });
  if (!status.ok()) return status.error();
  for (std::string_view kind : {keys::kSnapshots, keys::kRecords})
    if (Status owned = check_owners(journal, kind, jobs); !owned.ok()) return owned.error();
  return to;
}

Result<RecoveredJob> recover_job(Journal& journal, JobId id, const LoadObject& load_object) {
  return recover_job(*journal.frozen(), id, load_object);
}

Result<RecoveredJob> recover_job(Rows& rows, JobId id, const LoadObject& load_object) {
  auto owner = rows.get(keys::owner(id));
  if (!owner) return Error{Errc::not_found, "journal: there is no " + job_name(id), {}};
  return fold(rows, id, *owner, load_object);
}

}  // namespace muster::storage
