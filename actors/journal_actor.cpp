#include "actors/journal_actor.hpp"

#include "actors/supervise.hpp"
#include "storage/rows/rows.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <utility>

namespace muster::actors {

namespace {

constexpr size_t kLargeBytes = 4096;  // of an append's rows: those of some seventy pods
constexpr int kPatience = 4;          // large appends wait at most this many gathering times

class Journaling : public journal_actor::base {
 public:
  Journaling(caf::actor_config& config, storage::Journal& journal, JournalOptions options)
      : journal_actor::base(config),
        journal_(journal),
        show_(std::move(options.show)),
        failed_(std::move(options.failed)),
        written_(std::move(options.written)),
        gather_(options.gather),
        held_(options.held) {
    end_on_exceptions(*this);
  }

  behavior_type make_behavior() override {
    return {[this](const Append& a) { take(a); }, [this](const commit_atom&) { gather(); },
            [this](const begin_atom&) {
              held_ = false;
              if (!waiting_.empty()) send(this, commit_atom_v);
            },
            [this](const stop_atom&) {
              if (!held_) commit();
              quit();
            }};
  }

 private:
  // The first append after a commit sends the marker, which queues behind all appends already in
  // the mailbox. So does an append that may not wait, while others do.
  void take(const Append& append) {
    if (dead_) return;
    const bool first = waiting_.empty() || (deferred_ && !append.may_wait);
    if (first && !held_) send(this, commit_atom_v);
    waiting_.push_back(append);
  }

  // What may wait does so until no commit has begun for a while, since more is likely to come: the
  // marker is sent again later. What may not wait takes it along, except large appends: they would
  // hold it up, and whatever rests on it will hurry too. These wait longer, but not for long.
  void gather() {
    if (waiting_.empty()) return;  // an earlier marker committed everything
    const auto now = clock().now();
    const bool hurries =
        std::any_of(waiting_.begin(), waiting_.end(), [](const Append& a) { return !a.may_wait; });
    const auto large = std::stable_partition(waiting_.begin(), waiting_.end(),
                                             [](const Append& a) { return !is_large(a); });
    if (!deferred_) latest_ = now + kPatience * gather_;
    const auto due = std::min(begun_ + gather_, latest_);
    if (now >= due || (hurries && large == waiting_.end())) {
      begun_ = now;
      deferred_ = false;
      return commit();
    }
    if (!hurries || !deferred_) delayed_send(this, due - now, commit_atom_v);
    deferred_ = true;
    if (!hurries) return;
    std::vector<Append> later(std::make_move_iterator(large),
                              std::make_move_iterator(waiting_.end()));
    waiting_.erase(large, waiting_.end());
    begun_ = now;
    commit();
    if (!dead_) waiting_ = std::move(later);
  }

  static bool is_large(const Append& append) {
    if (!append.may_wait) return false;
    return size_of(append.rows) >= kLargeBytes;
  }

  static size_t size_of(const std::vector<storage::Row>& rows) {
    size_t bytes = 0;
    for (const storage::Row& row : rows)
      bytes += row.key.size() + (row.value ? row.value->size() : 0);
    return bytes;
  }

  void commit() {
    if (waiting_.empty()) return;
    std::vector<storage::Row> rows;
    core::Committed batch;
    for (Append& append : waiting_) {
      std::move(append.rows.begin(), append.rows.end(), std::back_inserter(rows));
      if (append.records) batch.jobs.push_back(std::move(append.records));
      std::move(append.nodes.begin(), append.nodes.end(), std::back_inserter(batch.nodes));
      for (core::KeptChange& change : append.kept) {
        if (!change.removed) {
          auto written = std::make_shared<core::Kept>(*change.now);
          written->version = journal_.last_commit() + 1;
          rows.push_back(storage::kept_row(*written));
          change.now = std::move(written);
        } else {
          rows.push_back(storage::forget_kept_row(change.now->id));
        }
        batch.kept.push_back(std::move(change));
      }
    }
    const auto begun = std::chrono::steady_clock::now();
    if (Status written = journal_.commit(rows); !written) {
      failed_(written.error().message);
      dead_ = true;  // reached only in the simulation, which then drops the whole system
      waiting_.clear();
      return;
    }
    written_(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(),
             size_of(rows));
    batch.commit = journal_.last_commit();
    show_(batch);
    for (const Append& append : waiting_)
      if (append.done) append.done(batch.commit);
    waiting_.clear();
  }

  storage::Journal& journal_;
  std::function<void(core::Committed)> show_;
  std::function<void(const std::string&)> failed_;
  std::function<void(double seconds, uint64_t bytes)> written_;
  std::vector<Append> waiting_;
  bool dead_ = false;
  std::chrono::microseconds gather_;
  bool held_;
  caf::actor_clock::time_point begun_{};   // start of the last commit
  bool deferred_ = false;                  // a delayed marker is pending
  caf::actor_clock::time_point latest_{};  // then those that wait are committed
};

}  // namespace

journal_actor spawn_journal(caf::actor_system& system, storage::Journal& journal,
                            JournalOptions options) {
  return options.detached
             ? vital(system.spawn<Journaling, caf::detached>(journal, std::move(options)))
             : vital(system.spawn<Journaling>(journal, std::move(options)));
}

}  // namespace muster::actors
