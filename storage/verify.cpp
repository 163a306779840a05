#include "storage/verify.hpp"

#include "core/job/rules/invariants.hpp"
#include "storage/backup.hpp"
#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/journal/text_number.hpp"
#include "storage/rows/attempts.hpp"
#include "storage/rows/history.hpp"
#include "storage/rows/summary_row.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <unistd.h>

namespace muster::storage {
namespace {

constexpr size_t kPage = 1'000;

// A read-only view of the rows at one instant, for recovery while the journal keeps writing.
class Still final : public Journal {
 public:
  explicit Still(Journal& journal) : rows_(journal.frozen()) {}
  Status commit(const std::vector<Row>&) override { return read_only(); }
  Status go_on_at(uint64_t) override { return read_only(); }
  uint64_t last_commit() const override {
    auto row = rows_->get(keys::kCommit);
    return row.ok() && *row ? parse_number(**row).value_or(0) : 0;
  }
  std::unique_ptr<Rows> frozen() override { return nullptr; }
  Result<std::optional<std::string>> get(std::string_view key) override { return rows_->get(key); }
  Status walk(std::string_view prefix, std::string_view from, const Walk& visit) override {
    return rows_->walk(prefix, from, visit);
  }

 private:
  static Status read_only() { return Error{Errc::unavailable, "this view is read-only", {}}; }
  std::unique_ptr<Rows> rows_;
};

class Verifier {
 public:
  Verifier(Rows& rows, const LoadObject& load_object, Verified& to)
      : rows_(rows), load_object_(load_object), to_(to) {}

  void jobs(const Recovered& recovered) {
    std::set<JobId> ids;
    Status read = rows_.scan(keys::kOwners, [&ids](std::string_view key, std::string_view) {
      if (auto id = keys::parse_job(keys::kOwners, key)) ids.insert(ids.end(), *id);
      return true;
    });
    if (!read.ok()) say("journal: owners' rows: " + read.error().message);
    for (const DamagedJob& damaged : recovered.damaged)
      if (!ids.contains(damaged.id)) say(damaged.why);
    for (JobId id : ids) job(id);
    gone(ids);
  }

  // The entries of jobs that are gone say so.
  void gone(const std::set<JobId>& ids) {
    Status read = rows_.scan(keys::kHistory, [&](std::string_view key, std::string_view value) {
      const JobId id = keys::parse_job(keys::kHistory, key).value_or(0);
      if (ids.contains(id)) return true;
      const auto entry = decode_history(id, value);
      const std::string title = "history of job j" + std::to_string(id) + ": ";
      if (!entry.ok())
        say(title + entry.error().message);
      else if (!entry->over())
        say(title + "it has not ended, and it is gone");
      return true;
    });
    if (!read.ok()) say("journal: history: " + read.error().message);
  }

  void say(std::string mismatch) {
    if (to_.mismatches.size() < kMismatchesMax) to_.mismatches.push_back(std::move(mismatch));
  }

 private:
  void job(JobId id) {
    ++to_.jobs;
    auto recovered = recover_job(rows_, id, load_object_);
    if (!recovered.ok()) return say(recovered.error().message);
    const core::Job& job = recovered->job;
    std::vector<core::Pod> attempts;
    AttemptCursor from;
    for (bool more = true; more;) {
      auto page = read_attempts(rows_, id, from, kPage, [](const core::Pod&) { return true; });
      if (!page.ok()) return say(page.error().message);
      for (core::Pod& pod : page->attempts) attempts.push_back(std::move(pod));
      more = page->next.has_value();
      if (more) from = *page->next;
    }
    to_.attempts += attempts.size();
    bool whole = false;
    const core::JobMeta& meta = job.object().meta;
    for (std::string& why : recount(job, attempts, whole))
      say("job j" + std::to_string(id) + " " + meta.ns + "/" + meta.name + ": " + why);
    if (whole) ++to_.counted;
    entry_of(job);
    if (!job.can_unload()) return;
    auto row = rows_.get(keys::summary(id));
    if (!row.ok()) return say(row.error().message);
    if (!*row) return;  // an older version's: the next start writes the row
    auto summary = decode_summary(id, **row);
    if (!summary.ok()) return say("job j" + std::to_string(id) + ": " + summary.error().message);
    const core::JobSummary is = core::summary_of(job);
    if (summary->ns != is.ns || summary->name != is.name || summary->uid != is.uid ||
        summary->complete != is.complete || summary->finished_ms != is.finished_ms)
      say("job j" + std::to_string(id) + " " + meta.ns + "/" + meta.name +
          ": its summary row and its records disagree about its end");
  }

  // A job that has not ended has no entry, nor has one that ended while there was no history.
  void entry_of(const core::Job& job) {
    const auto entry = read_history(rows_, job.id());
    if (!entry.ok() && entry.error().code == Errc::not_found) return;
    const core::JobMeta& meta = job.object().meta;
    const std::string title =
        "job j" + std::to_string(job.id()) + " " + meta.ns + "/" + meta.name + ": ";
    if (!entry.ok()) return say(title + entry.error().message);
    if (job.state().deleted_at) return;  // an older version may be removing it
    const core::HistoryEntry is = core::history_entry(job);
    if (!is.over() || entry->uid != is.uid || entry->state != is.state ||
        entry->ended != is.ended || entry->succeeded != is.succeeded || entry->used != is.used ||
        entry->ran_ms != is.ran_ms)
      say(title + "its entry in the history and its records disagree");
  }

  Rows& rows_;
  const LoadObject& load_object_;
  Verified& to_;
};

}  // namespace

std::vector<std::string> recount(const core::Job& job, const std::vector<core::Pod>& attempts,
                                 bool& whole) {
  std::vector<std::string> out;
  if (std::string rule = core::broken_rule(job); !rule.empty()) out.push_back(rule);
  const core::JobState& s = job.state();
  uint64_t failed = 0, succeeded = 0, later = 0;
  std::set<PodKey> seen;
  std::set<uint32_t> indexes;
  for (const core::Pod& pod : attempts) {
    if (!seen.insert(pod.key).second)
      out.push_back("attempt " + to_string(pod.key) + " appears twice in its history");
    if (s.open.contains(pod.key))
      out.push_back("attempt " + to_string(pod.key) +
                    " has ended in its history and is open in its state");
    if (pod.counted == core::Counted::failed) ++failed;
    if (pod.counted != core::Counted::succeeded) continue;
    ++succeeded;
    if (!job.indexed()) continue;
    indexes.insert(pod.key.index);
    // Succeeded but not completed: only a scale-down causes that.
    if (!s.completed.contains(pod.key.index)) ++later;
  }
  // A pod that is being deleted may count before it has ended.
  const auto counted_early =
      static_cast<uint64_t>(std::count_if(s.open.begin(), s.open.end(), [](const auto& one) {
        return one.second.counted == core::Counted::failed;
      }));
  const uint64_t not_over = s.open.size() + s.deferred.size();
  whole = attempts.size() + not_over == s.pods_created && !s.deleted_at;
  if (failed > s.failed)
    out.push_back("its history has " + std::to_string(failed) +
                  " failed attempts, its status counts " + std::to_string(s.failed));
  else if (whole && failed + counted_early != s.failed)
    out.push_back("its status counts " + std::to_string(s.failed) +
                  " failed pods, its complete history has " + std::to_string(failed));
  if (s.generation != 1) return out;  // scaling changes the completions
  if (job.indexed()) {
    if (later > 0)
      out.push_back(std::to_string(later) +
                    " succeeded attempts belong to indexes that are not completed");
    if (whole && indexes.size() != s.completed.size())
      out.push_back("its status has " + std::to_string(s.completed.size()) +
                    " completed indexes, its complete history has " +
                    std::to_string(indexes.size()));
  } else if (succeeded > s.succeeded || (whole && succeeded != s.succeeded)) {
    out.push_back("its status counts " + std::to_string(s.succeeded) +
                  " succeeded pods, its history has " + std::to_string(succeeded));
  }
  return out;
}

Verified verify(Journal& journal, const LoadObject& load_object) {
  Verified to;
  Still still(journal);
  to.commit = still.last_commit();
  Verifier verifier(still, load_object, to);
  if (Status sound = journal.check(); !sound.ok()) verifier.say(sound.error().message);
  // Finished jobs are folded one at a time, below.
  auto recovered = recover(still, load_object, [](const core::JobSummary&) {});
  if (!recovered.ok()) {
    verifier.say(recovered.error().message);
    return to;
  }
  if (std::string broken = recovered->line.broken(); !broken.empty())
    verifier.say("line of epochs: " + broken);
  verifier.jobs(*recovered);
  return to;
}

Result<Verified> verify_dir(const std::string& dir, const LoadObject& load_object) {
  if (access((dir + "/db/CURRENT").c_str(), F_OK) != 0)
    return Error{Errc::not_found, dir + " is neither a data-dir nor a backup: it has no database"};
  std::optional<Error> manifest;
  if (auto checked = check_backup(dir); !checked.ok() && checked.error().code != Errc::not_found)
    manifest = checked.error();
  Result<Verified> verified = Verified{};
  {
    auto journal = RocksdbJournal::open_to_read(dir);  // checks it against the watermark
    if (!journal.ok() && journal.error().code != Errc::invalid) return journal.error();
    if (journal.ok())
      verified = verify(**journal, load_object);
    else
      verified->mismatches.push_back(journal.error().message);
  }
  if (manifest) verified->mismatches.insert(verified->mismatches.begin(), manifest->message);
  return verified;
}

}  // namespace muster::storage
