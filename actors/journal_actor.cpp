#include "actors/journal_actor.hpp"

#include "actors/supervise.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <utility>

namespace muster::actors {

namespace {

class Journaling : public journal_actor::base {
 public:
  Journaling(caf::actor_config& config, storage::Journal& journal,
             std::function<void(core::Committed)> show,
             std::function<void(const std::string&)> failed)
      : journal_actor::base(config),
        journal_(journal),
        show_(std::move(show)),
        failed_(std::move(failed)) {}

  behavior_type make_behavior() override {
    return {[this](const Append& a) { take(a); }, [this](const commit_atom&) { commit(); },
            [this](const stop_atom&) {
              commit();
              quit();
            }};
  }

 private:
  // The first append after a commit sends the marker, which lands behind all appends that wait
  // already.
  void take(const Append& append) {
    if (dead_) return;
    if (waiting_.empty()) send(this, commit_atom_v);
    waiting_.push_back(append);
  }

  void commit() {
    if (waiting_.empty()) return;
    std::vector<storage::Row> rows;
    core::Committed batch;
    for (Append& append : waiting_) {
      std::move(append.rows.begin(), append.rows.end(), std::back_inserter(rows));
      if (append.records) batch.jobs.push_back(std::move(append.records));
      std::move(append.nodes.begin(), append.nodes.end(), std::back_inserter(batch.nodes));
    }
    if (Status written = journal_.commit(rows); !written) {
      failed_(written.error().message);
      dead_ = true;  // only a simulation comes here: it lets the whole system go
      waiting_.clear();
      return;
    }
    batch.commit = journal_.last_commit();
    show_(batch);
    for (const Append& append : waiting_)
      if (append.done) append.done(batch.commit);
    waiting_.clear();
  }

  storage::Journal& journal_;
  std::function<void(core::Committed)> show_;
  std::function<void(const std::string&)> failed_;
  std::vector<Append> waiting_;
  bool dead_ = false;
};

}  // namespace

journal_actor spawn_journal(caf::actor_system& system, storage::Journal& journal,
                            std::function<void(core::Committed)> show,
                            std::function<void(const std::string&)> failed, bool detached) {
  return detached ? vital(system.spawn<Journaling, caf::detached>(journal, std::move(show),
                                                                  std::move(failed)))
                  : vital(system.spawn<Journaling>(journal, std::move(show), std::move(failed)));
}

}  // namespace muster::actors
