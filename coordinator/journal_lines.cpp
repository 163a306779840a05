#include "coordinator/journal_lines.hpp"

#include "base/hex.hpp"
#include "base/text/json.hpp"
#include "core/job/fold/text.hpp"
#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/rows/history.hpp"
#include "storage/rows/summary_row.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

namespace muster::coordinator {
namespace {

namespace keys = storage::keys;
using Line = OrderedJson;

constexpr size_t kProblemsMax = 20;

template <class T>
void put(Line& to, const char* name, const std::optional<T>& value) {
  if (value) to[name] = *value;
}
void put_text(Line& to, const char* name, std::string_view text) {
  if (!text.empty()) to[name] = text;
}

Line pod_of(PodKey key) {
  return {{"index", key.index}, {"attempt", key.attempt}};
}
template <class List, class F>
Line list_of(const List& list, F item) {
  Line out = Line::array();
  for (const auto& one : list) out.push_back(item(one));
  return out;
}
Line changes_of(const std::vector<core::PodMetaChange>& changes) {
  return list_of(changes, [](const core::PodMetaChange& change) {
    Line out = {{"label", change.label}, {"key", change.key}};
    put(out, "value", change.value);
    return out;
  });
}

Line dependencies_of(const std::vector<core::Dependency>& dependencies) {
  return list_of(dependencies, [](const core::Dependency& one) {
    return Line{
        {"job", one.job}, {"name", one.after.job}, {"needed", core::name(one.after.needed)}};
  });
}

void put_overrides(Line& to, const core::Overrides& overrides) {
  const auto& [priority, queue, time_limit_s] = overrides;
  put(to, "priority", priority);
  put(to, "queue", queue);
  put(to, "timeLimitSeconds", time_limit_s);
}

template <class End>
void put_end(Line& to, const End& end) {
  to["cause"] = core::name(end.cause);
  to["exitCode"] = end.exit_code;
  to["signal"] = end.signal;
  to["endedMs"] = end.ended_at;
}
void put_used(Line& to, const core::Usage& used) {
  if (used.known())
    to["used"] = {
        {"userUs", used.user_us}, {"systemUs", used.system_us}, {"peakBytes", used.peak_bytes}};
}

void put_pod_end(Line& to, const core::PodEnd& end) {
  put_end(to, end);
  put_text(to, "message", end.message);
  put_used(to, end.used);
  if (end.containers.empty()) return;
  to["containers"] = list_of(end.containers, [](const core::ContainerEnd& one) {
    Line out;
    put_end(out, one);
    out["restarts"] = one.restarts;
    put(out, "startedMs", one.started_at);
    return out;
  });
}

void put_runs(Line& to, const std::vector<core::RunEnd>& runs) {
  if (runs.empty()) return;
  to["runs"] = list_of(runs, [](const core::RunEnd& one) {
    Line out = {{"container", one.container}, {"run", one.end.restarts}};
    put_end(out, one.end);
    put(out, "startedMs", one.end.started_at);
    put_used(out, one.used);
    return out;
  });
}

Line container_now(const core::ContainerNow& one) {
  Line out = {{"phase", core::name(one.phase)}, {"restarts", one.restarts}};
  put(out, "sinceMs", one.since);
  if (!one.last) return out;
  Line last;
  put_end(last, *one.last);
  put(last, "startedMs", one.last->started_at);
  out["last"] = std::move(last);
  return out;
}

// Writes the members of a record except its instant.
struct RecordLine {
  Line& to;

  void operator()(const core::JobAdmitted& r) {
    to["generation"] = r.object->meta.generation;
    put(to, "parallelism", r.object->spec.parallelism);
    put(to, "completions", r.object->spec.completions);
    if (!r.after.empty()) to["after"] = dependencies_of(r.after);
  }
  void operator()(const core::JobSpecChanged& r) {
    to["generation"] = r.generation;
    to["parallelism"] = r.parallelism;
    put(to, "completions", r.completions);
  }
  void operator()(const core::JobStarted&) {}
  void operator()(const core::DependencyEnded& r) {
    to["of"] = r.job;
    to["how"] = core::name(r.how);
  }
  void operator()(const core::DependencyAdvanced& r) {
    to["of"] = r.job;
    to["passed"] = r.more.passed.text();
    to["failed"] = r.more.failed.text();
  }
  void operator()(const core::IndexesFailed& r) { to["indexes"] = r.indexes.text(); }
  void operator()(const core::PodsCreated& r) {
    to["runs"] = list_of(r.runs, [](const core::PodsCreated::Run& run) {
      return Line{{"first", run.first},     {"count", run.count},
                  {"attempt", run.attempt}, {"failures", run.failures},
                  {"ignored", run.ignored}, {"deferredCounted", core::name(run.deferred_counted)}};
    });
  }
  void operator()(const core::PodsBound& r) {
    to["pods"] = list_of(r.bindings, [](const core::PodsBound::Binding& one) {
      Line out = pod_of(one.pod);
      out["node"] = one.node;
      return out;
    });
  }
  void operator()(const core::PodsStarted& r) {
    to["pods"] = list_of(r.starts, [](const core::PodsStarted::Start& one) {
      Line out = pod_of(one.pod);
      put(out, "pid", one.pid);
      out["restarts"] = one.restarts;
      out["startedMs"] = one.started_ms;
      out["readiness"] = core::name(one.readiness);
      if (!one.cpus.empty()) out["cpus"] = one.cpus;
      if (!one.containers.empty()) out["containers"] = list_of(one.containers, container_now);
      return out;
    });
  }
  void operator()(const core::PodsEnded& r) {
    to["pods"] = list_of(r.ends, [](const core::PodsEnded::One& one) {
      Line out = pod_of(one.pod);
      put_pod_end(out, one.end);
      if (one.start) {
        out["pid"] = one.start->pid;
        out["startedMs"] = one.start->at;
      }
      out["restarts"] = one.restarts;
      put_runs(out, one.runs);
      out["counted"] = core::name(one.counted);
      out["failsIndex"] = one.fails_index;
      put_text(out, "action", core::name(one.action));
      if (one.raised.any())
        out["raised"] = Line{{"memory", one.raised.memory}, {"time", one.raised.time}};
      return out;
    });
    to["backoffFailures"] = r.backoff_failures;
    to["backoffLastMs"] = r.backoff_last_ms;
  }
  void operator()(const core::PodsStopping& r) {
    to["pods"] = list_of(r.pods, [](const core::PodsStopping::One& one) {
      Line out = pod_of(one.pod);
      out["counted"] = core::name(one.counted);
      out["failsIndex"] = one.fails_index;
      put(out, "graceMs", one.grace_ms);
      return out;
    });
    to["byJob"] = r.by_job;
    to["backoffFailures"] = r.backoff_failures;
    to["backoffLastMs"] = r.backoff_last_ms;
  }
  void operator()(const core::PodConditionSet& r) {
    to["pod"] = pod_of(r.pod);
    to["type"] = r.condition.type;
    to["status"] = r.condition.status;
    put_text(to, "reason", r.condition.reason);
    put_text(to, "message", r.condition.message);
  }
  void operator()(const core::PodsRemoved& r) { to["pods"] = list_of(r.pods, pod_of); }
  void operator()(const core::JobSuspended& r) { to["suspended"] = r.suspended; }
  void operator()(const core::StatusWritten& r) { to["status"] = parse_ordered(r.json); }
  void operator()(const core::FinishDecided& r) {
    to["success"] = r.success;
    to["reason"] = core::name(r.reason);
    put_text(to, "message", r.message);
  }
  void operator()(const core::JobFinished&) {}
  void operator()(const core::JobDeleted& r) {
    to["background"] = r.background;
    to["orphan"] = r.orphan;
    to["waits"] = r.waits;
  }
  void operator()(const core::JobForgotten&) {}
  void operator()(const core::IndexLimitsSet& r) { to["on"] = r.on; }
  void operator()(const core::PodMetaSet& r) {
    to["pod"] = pod_of(r.pod);
    to["changes"] = changes_of(r.changes);
  }
  void operator()(const core::ConditionsWritten& r) { to["conditions"] = parse_ordered(r.json); }
  void operator()(const core::GangBroken& r) {
    to["by"] = pod_of(r.how.by);
    to["whole"] = r.how.whole;
    to["leaderPays"] = r.how.leader_pays;
    put_text(to, "why", r.how.why);
  }
  void operator()(const core::JobHeld& r) {
    to["by"] = r.by;
    to["byOperator"] = r.by_operator;
    put_text(to, "reason", r.reason);
  }
  void operator()(const core::JobReleased& r) { to["by"] = r.by; }
  void operator()(const core::OverridesSet& r) {
    to["by"] = r.by;
    put_overrides(to, r.overrides);
  }
  void operator()(const core::JobCancelled& r) { to["by"] = r.by; }
  void operator()(const core::IndexesCancelled& r) {
    to["by"] = r.by;
    to["indexes"] = r.indexes.text();
  }
};

Line record_line(JobId job, uint64_t sequence, const core::Record& record) {
  Line members;
  std::visit(RecordLine{members}, record);
  Line line = {{"kind", "record"},
               {"job", job},
               {"sequence", sequence},
               {"record", core::record_name(record)},
               {"atMs", core::at(record)}};
  for (auto& [member, value] : members.items()) line[member] = std::move(value);
  return line;
}

Line snapshot_line(JobId job, const storage::Snapshot& snapshot) {
  const core::JobState& s = snapshot.state;
  Line line = {{"kind", "snapshot"},
               {"job", job},
               {"sequence", snapshot.sequence},
               {"generation", s.generation},
               {"parallelism", s.parallelism}};
  put(line, "completions", s.completions);
  put(line, "startedMs", s.started_at);
  put(line, "completedMs", s.completed_at);
  put(line, "deletedMs", s.deleted_at);
  line["succeeded"] = s.succeeded;
  line["failed"] = s.failed;
  line["completedIndexes"] = s.completed.text();
  line["failedIndexes"] = s.failed_indexes.text();
  line["podsCreated"] = s.pods_created;
  if (!s.dependencies.empty()) line["after"] = dependencies_of(s.dependencies);
  if (!s.followed.empty())
    line["followed"] = list_of(s.followed, [](const core::Followed& one) {
      return Line{{"job", one.job},
                  {"name", one.name},
                  {"passed", one.known.passed.text()},
                  {"failed", one.known.failed.text()},
                  {"ended", one.ended}};
    });
  if (s.hold)
    line["hold"] = {{"by", s.hold->by},
                    {"byOperator", s.hold->by_operator},
                    {"reason", s.hold->reason},
                    {"atMs", s.hold->at_ms}};
  if (s.overrides) put_overrides(line, s.overrides->overrides);
  if (s.cancelled) line["cancelled"] = {{"by", s.cancelled->by}, {"atMs", s.cancelled->at_ms}};
  if (!s.cancelled_indexes.empty()) line["cancelledIndexes"] = s.cancelled_indexes.text();
  line["open"] = list_of(s.open, [](const auto& one) { return pod_of(one.first); });
  line["conditions"] = list_of(s.conditions, [](const core::Condition& one) {
    return Line{{"type", core::name(one.type)},
                {"status", one.status},
                {"reason", core::name(one.reason)},
                {"atMs", one.at_ms}};
  });
  return line;
}

Line attempt_line(JobId job, uint64_t sequence, Millis at_ms, const core::Pod& pod) {
  Line line = {{"kind", "attempt"}, {"job", job}, {"sequence", sequence}, {"atMs", at_ms}};
  line["index"] = pod.key.index;
  line["attempt"] = pod.key.attempt;
  line["createdMs"] = pod.created_ms;
  if (pod.bound()) line["node"] = pod.node;
  put(line, "startedMs", pod.started_at);
  put(line, "pid", pod.pid);
  if (!pod.cpus.empty()) line["cpus"] = pod.cpus;
  line["restarts"] = pod.restarts;
  put_pod_end(line, pod.end);
  put_runs(line, pod.runs);
  line["counted"] = core::name(pod.counted);
  return line;
}

Line node_line(const core::NodeInfo& node) {
  Line line = {{"kind", "node"},
               {"node", node.id},
               {"name", node.name},
               {"workDirId", node.work_dir_id},
               {"bootId", node.boot_id},
               {"slots", node.slots},
               {"cpuMillis", node.cpu_millis},
               {"memoryBytes", node.memory_bytes},
               {"address", node.address},
               {"ip", node.ip},
               {"createdMs", node.created_ms},
               {"leftMs", node.left_ms},
               {"unschedulable", node.spec.unschedulable},
               {"gone", node.gone},
               {"deleted", node.deleted}};
  line["resources"] = node.resources;
  line["withheld"] = {"secret"};
  return line;
}

void put_claims(Line& line, const core::NodeClaims& claims) {
  line["labels"] = claims.labels;
  line["slotsMax"] = claims.slots_max;
  line["resources"] = claims.resources_max;
  if (!claims.pool.empty()) line["pool"] = claims.pool;
}

Line token_line(const core::Token& token) {
  Line line = {{"kind", "token"},
               {"id", token.id},
               {"of", core::kind_name(token.kind)},
               {"subject", token.subject},
               {"by", token.by},
               {"madeMs", token.made_ms},
               {"untilMs", token.until_ms},
               {"used", !token.used_keys.empty()}};
  const bool of_pool = token.kind == core::TokenKind::pool;
  if (of_pool) {
    line["uses"] = token.used_keys.size();
    line["usesMax"] = token.uses_max;
  }
  if (of_pool || token.kind == core::TokenKind::node) put_claims(line, token.claims);
  line["withheld"] = {"hash", "usedKeys"};
  return line;
}

const char* name_of(core::KeptKind kind) {
  switch (kind) {
    case core::KeptKind::lease:
      return "lease";
    case core::KeptKind::event:
      return "event";
    case core::KeptKind::config_map:
      return "configmap";
    case core::KeptKind::name_space:
      return "namespace";
    case core::KeptKind::cron_job:
      return "cronjob";
    case core::KeptKind::queue:
      return "queue";
    case core::KeptKind::priority_class:
      return "priorityclass";
  }
  return "";
}

Line kept_line(const core::Kept& kept) {
  Line line = {{"kind", name_of(kept.kind)},
               {"id", kept.id},
               {"namespace", kept.ns},
               {"name", kept.name},
               {"writtenMs", kept.written_ms},
               {"commit", kept.version},
               {"object", parse_ordered(kept.json)}};
  put(line, "owner", kept.owner);
  return line;
}

Line summary_line(const core::JobSummary& job) {
  Line line = {{"kind", "summary"},        {"job", job.id},
               {"namespace", job.ns},      {"name", job.name},
               {"complete", job.complete}, {"finishedMs", job.finished_ms}};
  put(line, "wakeMs", job.wake_ms);
  return line;
}

Line history_line(const core::HistoryEntry& entry) {
  Line line = {{"kind", "history"},
               {"job", entry.id},
               {"namespace", entry.ns},
               {"name", entry.name},
               {"uid", entry.uid},
               {"user", entry.user},
               {"queue", entry.queue},
               {"state", core::name(entry.state)},
               {"removal", core::name(entry.removal)},
               {"createdMs", entry.created_ms}};
  put(line, "owner", entry.owner);
  put(line, "startedMs", entry.started);
  put(line, "endedMs", entry.ended);
  put(line, "removedMs", entry.removed);
  if (!entry.tasks.empty()) line["tasks"] = entry.tasks;
  line["indexes"] = entry.indexes;
  line["succeeded"] = entry.succeeded;
  line["failedIndexes"] = entry.failed_indexes;
  line["cancelledIndexes"] = entry.cancelled_indexes;
  line["attempts"] = entry.attempts;
  line["failedAttempts"] = entry.failed_attempts;
  line["userUs"] = entry.used.user_us;
  line["systemUs"] = entry.used.system_us;
  line["peakBytes"] = entry.used.peak_bytes;
  line["ranMs"] = entry.ran_ms;
  return line;
}

// Reads all rows in order and hands out their lines.
class Lines {
 public:
  Lines(storage::Rows& rows, const std::function<bool(const Line&)>& take)
      : rows_(rows), take_(take) {}

  void all() {
    each("m", [this](std::string_view key, std::string_view value) { meta(key, value); });
    each(keys::kEpochs, [this](std::string_view key, std::string_view value) {
      std::string_view number = key.substr(1);
      const size_t space = value.find(' ');
      const std::string text(space == value.npos ? "" : value.substr(space + 1));
      say({{"kind", "epoch"},
           {"epoch", keys::take_number<uint64_t>(number).value_or(0)},
           {"firstCommit", std::strtoull(text.c_str(), nullptr, 10)},
           {"restored", text.ends_with(" restored")},
           {"withheld", {"nonce"}}});
    });
    each(keys::kNodes, decoded(storage::decode_node, node_line));
    each(keys::kTokens, decoded(storage::decode_token, token_line));
    each(keys::kRevoked, [this](std::string_view key, std::string_view value) {
      say({{"kind", "revoked"}, {"node", key.substr(1)}, {"generation", value}});
    });
    each(keys::kClaims, [this](std::string_view key, std::string_view value) {
      const auto claims = storage::decode_claims(value);
      if (!claims) return damage(key, claims.error().message);
      Line line = {{"kind", "claims"}, {"node", key.substr(1)}};
      put_claims(line, *claims);
      say(line);
    });
    each(keys::kKept, decoded(storage::decode_kept, kept_line));
    for (const JobId id : jobs()) job(id);
  }
  uint64_t damaged() const { return damaged_; }

 private:
  using Visit = std::function<void(std::string_view key, std::string_view value)>;

  void say(const Line& line) {
    if (!stopped_) stopped_ = !take_(line);
  }
  void damage(std::string_view key, const std::string& why) {
    ++damaged_;
    say({{"kind", "damaged"}, {"key", to_hex(key)}, {"why", why}});
  }
  void each(std::string_view prefix, const Visit& visit) {
    const Status read = rows_.scan(prefix, [&](std::string_view key, std::string_view value) {
      visit(key, value);
      return !stopped_;
    });
    if (!read.ok()) damage(prefix, read.error().message);
  }
  // The visitor of rows that `decode` reads and `line` prints.
  template <class Decode, class Print>
  Visit decoded(Decode decode, Print print) {
    return [this, decode, print](std::string_view key, std::string_view value) {
      auto row = decode(value);
      if (row.ok())
        say(print(*row));
      else
        damage(key, row.error().message);
    };
  }

  void meta(std::string_view key, std::string_view value) {
    static const std::set<std::string_view> secret = {keys::kClusterKey, keys::kPermitKey,
                                                      keys::kSealKey, keys::kAuthority};
    Line line = {{"kind", "meta"}, {"name", key.substr(1)}};
    if (secret.contains(key)) {
      line["withheld"] = {"value"};
    } else if (key == keys::kEpoch) {
      line["value"] = value.substr(0, value.find(' '));
      line["withheld"] = {"nonce"};
    } else {
      line["value"] = value;
    }
    say(line);
  }

  // All jobs that have any row.
  std::set<JobId> jobs() {
    std::set<JobId> ids;
    for (std::string_view kind : {keys::kOwners, keys::kSummary, keys::kSnapshots, keys::kRecords,
                                  keys::kAttempts, keys::kHistory}) {
      const Status read = rows_.walk(
          kind, kind, [&](std::string_view key, std::string_view) -> std::optional<std::string> {
            key.remove_prefix(kind.size());
            const JobId id = keys::take_number<JobId>(key).value_or(0);
            ids.insert(id);
            return keys::numbered(kind, id + 1);
          });
      if (!read.ok()) damage(kind, read.error().message);
    }
    return ids;
  }

  void job(JobId id) {
    one(keys::owner(id), [this, id](std::string_view key, std::string_view value) {
      Line object = parse_ordered(value);
      if (object.is_discarded()) return damage(key, "the job's object is not JSON");
      say({{"kind", "job"}, {"job", id}, {"object", std::move(object)}});
    });
    one(keys::summary(id),
        decoded([id](std::string_view v) { return storage::decode_summary(id, v); }, summary_line));
    one(keys::history(id),
        decoded([id](std::string_view v) { return storage::decode_history(id, v); }, history_line));
    one(keys::snapshot(id), decoded(storage::decode_state, [id](const storage::Snapshot& snapshot) {
          return snapshot_line(id, snapshot);
        }));
    each(keys::records_of(id), [this, id](std::string_view key, std::string_view value) {
      const auto at = keys::parse_records(key);
      auto records = storage::decode_records(value);
      if (!at || !records.ok())
        return damage(key, records.ok() ? "not a key of records" : records.error().message);
      for (const core::Record& record : *records) say(record_line(id, at->sequence, record));
    });
    each(keys::attempts_of(id), [this, id](std::string_view key, std::string_view value) {
      const auto at = keys::parse_records(key, keys::kAttempts);
      auto closed = storage::decode_attempts(value);
      if (!at || !closed.ok())
        return damage(key, closed.ok() ? "not a key of attempts" : closed.error().message);
      for (const core::Pod& pod : closed->pods)
        say(attempt_line(id, at->sequence, closed->at_ms, pod));
    });
  }
  void one(const std::string& key, const Visit& visit) {
    auto row = rows_.get(key);
    if (!row.ok()) return damage(key, row.error().message);
    if (*row) visit(key, **row);
  }

  storage::Rows& rows_;
  const std::function<bool(const Line&)>& take_;
  bool stopped_ = false;
  uint64_t damaged_ = 0;
};

}  // namespace

Result<JournalSummary> summarize_journal(const std::string& dir) {
  auto seen = storage::RocksdbJournal::glance(dir);
  if (!seen.ok()) return seen.error();
  JournalSummary to;
  to.cluster_id = storage::RocksdbJournal::noted_cluster(dir);
  to.format = seen->format;
  to.commit = seen->commit;
  to.acknowledged = seen->acknowledged;
  to.pid = seen->pid;
  to.files = seen->files;
  to.bytes = seen->bytes;
  std::function<bool(const Line&)> count = [&to](const Line& line) {
    const std::string kind = line.at("kind");
    ++to.rows[kind];
    if (kind == "record") ++to.records[line.at("record")];
    if (kind == "damaged" && to.problems.size() < kProblemsMax)
      to.problems.push_back("row " + line.at("key").get<std::string>() + ": " +
                            line.at("why").get<std::string>());
    if (kind == "meta" && line.at("name") == "cluster") to.cluster_id = line.at("value");
    if (kind == "meta" && line.at("name") == "epoch")
      to.epoch = std::strtoull(line.at("value").get<std::string>().c_str(), nullptr, 10);
    return true;
  };
  Lines(*seen->rows, count).all();
  to.finished = to.rows["summary"];
  to.unfinished = to.rows["job"] - std::min(to.rows["job"], to.finished);
  std::erase_if(to.rows, [](const auto& one) { return one.second == 0; });
  if (to.acknowledged.value_or(0) > to.commit)
    to.problems.insert(to.problems.begin(),
                       "acknowledged data is missing: commit " + std::to_string(*to.acknowledged) +
                           " was acknowledged, only " + std::to_string(to.commit) + " is there");
  return to;
}

Result<uint64_t> export_journal(const std::string& dir,
                                const std::function<bool(const std::string&)>& line) {
  auto seen = storage::RocksdbJournal::glance(dir);
  if (!seen.ok()) return seen.error();
  const std::function<bool(const Line&)> take = [&line](const Line& one) {
    return line(dumped(one));
  };
  Lines lines(*seen->rows, take);
  lines.all();
  return lines.damaged();
}

}  // namespace muster::coordinator
