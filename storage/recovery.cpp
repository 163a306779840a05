#include "storage/recovery.hpp"

#include "storage/codec.hpp"
#include "storage/keys.hpp"
#include "storage/text_number.hpp"

#include <map>
#include <optional>
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
Status scan(Journal& journal, std::string_view prefix, Visit visit) {
  Status status = Nothing{};
  journal.scan(prefix, [&status, &visit](std::string_view key, std::string_view value) {
    status = visit(key, value);
    return status.ok();
  });
  return status;
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

// The owner's rows: which jobs there are.
Result<std::map<JobId, core::JobObjectPtr>> owners(Journal& journal,
                                                   const LoadObject& load_object) {
  std::map<JobId, core::JobObjectPtr> objects;
  auto status =
      scan(journal, keys::kOwners, [&](std::string_view key, std::string_view value) -> Status {
        auto id = keys::parse_job(keys::kOwners, key);
        if (!id) return broken("owner's row", "a key of " + std::to_string(key.size()) + " bytes");
        core::JobObjectPtr object = load_object(value);
        if (object == nullptr) return broken(job_name(*id), "the owner's row can't be read");
        objects.emplace_hint(objects.end(), *id, std::move(object));
        return Nothing{};
      });
  if (!status.ok()) return status.error();
  return objects;
}

Result<RecoveredJob> of_snapshot(JobId id, const core::JobObjectPtr& object,
                                 std::string_view value) {
  auto snapshot = decode_state(value);
  if (!snapshot.ok()) return broken(job_name(id), snapshot.error().message);
  return RecoveredJob{.job = core::Job(id, object, std::move(snapshot->state)),
                      .next_seq = snapshot->sequence + 1};
}

Result<std::map<JobId, RecoveredJob>> snapshots(
    Journal& journal, const std::map<JobId, core::JobObjectPtr>& objects) {
  std::map<JobId, RecoveredJob> jobs;
  auto status =
      scan(journal, keys::kSnapshots, [&](std::string_view key, std::string_view value) -> Status {
        auto id = keys::parse_job(keys::kSnapshots, key);
        if (!id) return broken("snapshot", "a key of " + std::to_string(key.size()) + " bytes");
        auto object = objects.find(*id);
        if (object == objects.end())
          return broken(job_name(*id), "a snapshot without an owner's row");
        auto job = of_snapshot(*id, object->second, value);
        if (!job.ok()) return job.error();
        jobs.emplace(*id, std::move(*job));
        return Nothing{};
      });
  if (!status.ok()) return status.error();
  return jobs;
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

}  // namespace

Result<Recovered> recover(Journal& journal, const LoadObject& load_object) {
  Recovered to;
  if (auto status = recover_meta(journal, to); !status.ok()) return status.error();
  if (auto status = recover_nodes(journal, to); !status.ok()) return status.error();
  auto objects = owners(journal, load_object);
  if (!objects.ok()) return objects.error();
  auto jobs = snapshots(journal, *objects);
  if (!jobs.ok()) return jobs.error();
  for (const auto& [id, object] : *objects) {
    jobs->try_emplace(id, RecoveredJob{.job = core::Job(id, object)});
  }
  auto status =
      scan(journal, keys::kRecords,
           [&jobs, &objects](std::string_view key, std::string_view value) -> Status {
             auto at = keys::parse_records(key);
             if (!at) return broken("records", "a key of " + std::to_string(key.size()) + " bytes");
             auto job = jobs->find(at->job);
             if (job == jobs->end())
               return broken(job_name(at->job), "records without an owner's row");
             return apply_append(job->second, at->sequence, value, objects->at(at->job));
           });
  if (!status.ok()) return status.error();
  to.jobs.reserve(jobs->size());
  for (auto& [id, job] : *jobs) {
    if (job.next_seq == 1) return broken(job_name(id), "an owner's row without records");
    if (id >= to.next_job_id) return broken(job_name(id), "its id was never reserved");
    to.jobs.push_back(std::move(job));
  }
  return to;
}

Result<RecoveredJob> recover_job(Journal& journal, JobId id, const LoadObject& load_object) {
  auto owner = journal.get(keys::owner(id));
  if (!owner) return Error{Errc::not_found, "journal: there is no " + job_name(id), {}};
  core::JobObjectPtr object = load_object(*owner);
  if (object == nullptr) return broken(job_name(id), "the owner's row can't be read");
  RecoveredJob job{.job = core::Job(id, object)};
  if (auto row = journal.get(keys::snapshot(id))) {
    auto from = of_snapshot(id, object, *row);
    if (!from.ok()) return from.error();
    job = std::move(*from);
  }
  auto status =
      scan(journal, keys::records_of(id),
           [&job, &object](std::string_view key, std::string_view value) -> Status {
             auto at = keys::parse_records(key);
             if (!at) return broken("records", "a key of " + std::to_string(key.size()) + " bytes");
             return apply_append(job, at->sequence, value, object);
           });
  if (!status.ok()) return status.error();
  return job;
}

}  // namespace muster::storage
