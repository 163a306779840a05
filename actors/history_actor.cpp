#include "actors/history_actor.hpp"

#include "actors/supervise.hpp"
#include "storage/rows/attempts.hpp"
#include "storage/rows/history.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <utility>

namespace muster::actors {

namespace {

constexpr std::chrono::minutes kFirst{1};  // not during start-up
constexpr std::chrono::minutes kEvery{10};
constexpr size_t kRowsMax = 10'000;  // removed in one batch

class History : public history_actor::base {
 public:
  History(caf::actor_config& config, journal_actor journal, storage::Rows& rows, WallClock clock,
          HistoryBounds bounds)
      : history_actor::base(config),
        journal_(std::move(journal)),
        rows_(rows),
        clock_(std::move(clock)),
        bounds_(bounds) {
    end_on_exceptions(*this);
  }

  behavior_type make_behavior() override {
    delayed_send(this, kFirst, wake_atom_v);
    return {[this](const wake_atom&) { look(); },
            [this](const durable_atom&, uint64_t) { send(this, wake_atom_v); },
            [this](const stop_atom&) { quit(); }};
  }

  void on_exit() override { destroy(journal_); }

 private:
  void look() {
    Append append;
    const Millis now = clock_();
    append.rows =
        storage::outdated_history(rows_, now - bounds_.jobs_keep_ms, bounds_.jobs_max, kRowsMax);
    // Those of the jobs above follow at the next look, which is the next thing.
    if (append.rows.empty())
      append.rows = storage::outdated_attempts(rows_, now - bounds_.keep_ms, bounds_.max, kRowsMax);
    // There may be more: look again as soon as these are removed.
    if (append.rows.empty()) return delayed_send(this, kEvery, wake_atom_v);
    append.may_wait = true;
    append.done = [me = history_actor{this}](uint64_t commit) {
      caf::anon_send(me, durable_atom_v, commit);
    };
    send(journal_, std::move(append));
  }

  journal_actor journal_;
  storage::Rows& rows_;
  WallClock clock_;
  HistoryBounds bounds_;
};

}  // namespace

history_actor spawn_history(caf::actor_system& system, journal_actor journal, storage::Rows& rows,
                            WallClock clock, HistoryBounds bounds) {
  return vital(history_actor{
      system.spawn<History>(std::move(journal), std::ref(rows), std::move(clock), bounds)});
}

}  // namespace muster::actors
