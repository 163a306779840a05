#include "actors/registry_actor.hpp"

#include "actors/supervise.hpp"
#include "base/log.hpp"
#include "core/job/rules/held.hpp"
#include "core/registry/registry.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/rules/begin.hpp"
#include "storage/rows/history.hpp"
#include "storage/rows/rows.hpp"

#include <caf/actor_addr.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace muster::actors {

namespace {

namespace registry = core::registry;

class RegistryActor : public GatedActor<registry_actor> {
 public:
  RegistryActor(caf::actor_config& config, journal_actor journal, cluster_actor cluster,
                SealedLink link, RegistryStart start, RegistryOptions options)
      : GatedActor(config, journal, link),
        around_{std::move(journal),
                std::move(cluster),
                registry_actor{},
                link,
                options.clock,
                options.elapsed,
                options.knobs,
                options.tail_bytes_min,
                options.history,
                std::move(options.synced),
                std::move(options.waiting)},
        load_job_(std::move(options.load_job)),
        start_(std::move(start)),
        next_job_(std::move(options.next_job)),
        registry_(start_.next_job, options.finished_jobs_max) {
    *next_job_ = registry_.next_id();
  }

  behavior_type make_behavior() override {
    around_.registry = registry_actor{this};
    set_down_handler([this](caf::down_msg& down) { left(down.source); });
    adopt(std::exchange(start_, {}));
    return {
        [this](const CreateJob& m) { create(m, false); },
        [this](const DeleteJob& m) { remove(m); },
        [this](const AskJob& m) { ask(m); },
        [this](const Report& m) { report(m); },
        [this](const Reconcile& m) { reconcile(m); },
        [this](const NodeReadyNow& m) { tell_all(m); },
        [this](const NodeIsLost& m) { tell_all(m); },
        [this](const JobHears& m) {
          if (auto it = actors_.find(m.job); it != actors_.end()) send(it->second, m);
        },
        [this](const JobIsOver& m) { over(m); },
        [this](const JobIsHidden& m) { registry_.free_name(m.job); },
        [this](const JobHasAdvanced& m) { carry_out(registry_.advanced(m.job, m.progress)); },
        [this](const JobIsResized& m) { registry_.set_completions(m.job, m.completions); },
        [this](const DependentKnows& m) {
          carry_out(registry_.dependent_knows(m.dependent, m.of));
        },
        [this](const durable_atom&, uint64_t number, uint64_t commit) {
          gate_.open(number, commit);
        },
        [this](const sync_atom&, uint64_t number) {
          create(looks_.extract(number).mapped(), true);
        },
        [this](const wake_atom&, uint64_t round) {
          if (round != wake_round_) return;
          // Its first decision acts on the current time.
          for (JobId id : registry_.take_due(around_.elapsed())) with_actor(id, {});
          arm();
        },
        [this](const stop_atom&) {
          for (auto& [id, actor] : actors_) send_exit(actor, caf::exit_reason::user_shutdown);
          // These wait for a commit that the journal may never make.
          for (const auto& [address, leaving] : leaving_)
            send_exit(leaving.second, caf::exit_reason::user_shutdown);
          quit();
        },
    };
  }

  void on_exit() override {
    actors_.clear();
    asks_.clear();
    leaving_.clear();
    looks_.clear();
    gate_.close();
    destroy(around_.journal);
    destroy(around_.cluster);
    destroy(around_.registry);
  }

 private:
  // A request to a job that has no actor yet.
  struct Ask {
    std::function<void(const job_actor&)> pass_on = [](const job_actor&) {};
    // Called instead if nothing is left of the job, or with an error if it is quarantined.
    std::function<void(const Status&)> otherwise = [](const Status&) {};
  };

  registry::Now now() const { return {around_.clock(), around_.elapsed()}; }

  void adopt(RegistryStart start) {
    for (core::JobSummary& r : start.unloaded) registry_.adopt(std::move(r), now());
    for (const storage::RecoveredJob& r : start.jobs) {
      if (r.job.state().forgotten)
        forget(r);
      else
        registry_.adopt(r.job, now());
    }
    for (const storage::DamagedJob& d : start.damaged)
      registry_.adopt_damaged(d.id, d.object, d.why);
    for (storage::RecoveredJob& r : start.jobs) {
      const registry::Entry* entry = registry_.job(r.job.id());
      if (entry && entry->place == registry::Place::running) spawn_job(std::move(r));
    }
    for (NodeId node : start.lost) tell_all(NodeIsLost{node, core::EndCause::node_lost});
    carry_out(registry_.settle());
    arm();
  }

  // Removes what a crash left of a job.
  void forget(const storage::RecoveredJob& r) {
    Append append;
    append.rows = storage::forget_rows(r.job.id(), r.next_seq - 1, r.next_seq - r.tail_rows);
    if (around_.history) append.rows.push_back(storage::history_row(core::history_entry(r.job)));
    gate_.after(std::move(append), [](const Durable&) {});
  }

  static std::string title(JobId id, const registry::Entry& entry) {
    return "j" + std::to_string(id) + " " + entry.ns + "/" + entry.name;
  }

  static std::string by_owner(const core::StringMap& annotations) {
    const auto name = annotations.find(std::string(core::kOwnerKey));
    return name == annotations.end() ? "" : " by " + name->second;
  }

  Error damage_of(JobId id) const { return {Errc::unavailable, registry_.job(id)->damage, {}}; }

  // Then passes on the requests that waited for it.
  void spawn_job(storage::RecoveredJob r) {
    const uint64_t first_tail = r.next_seq - r.tail_rows;
    const JobId id = r.job.id();
    job_actor actor{system().spawn<JobActor>(around_, registry_.job(id)->clock, std::move(r.job),
                                             r.next_seq, first_tail, r.tail_bytes,
                                             registry_.dependents_of(id))};
    monitor(actor);
    actors_.emplace(id, vital(actor));
    registry_.set_running(id);
    for (const Ask& ask : take_asks(id)) ask.pass_on(actor);
  }

  std::vector<Ask> take_asks(JobId id) {
    auto asks = asks_.extract(id);
    return asks.empty() ? std::vector<Ask>{} : std::move(asks.mapped());
  }

  template <class Message>
  auto sends(Message m) {
    return [this, m = std::move(m)](const job_actor& actor) { send(actor, m); };
  }

  // Passes a request to the job's actor; an unloaded job is loaded first.
  void with_actor(JobId id, Ask ask) {
    if (auto it = actors_.find(id); it != actors_.end()) return ask.pass_on(it->second);
    const registry::Place place = registry_.job(id)->place;
    if (place == registry::Place::quarantined) return ask.otherwise(damage_of(id));
    asks_[id].push_back(std::move(ask));
    if (place == registry::Place::unloaded) load(id);
  }

  void load(JobId id) {
    auto loaded = load_job_(id);
    if (loaded) return spawn_job(std::move(*loaded));
    log::error("{} is quarantined: {}", title(id, *registry_.job(id)), loaded.error().message);
    registry_.quarantine(id, loaded.error().message);
    for (const Ask& ask : take_asks(id)) ask.otherwise(damage_of(id));
  }

  // Sets the only timer, for the unloaded job that is due next.
  void arm() {
    const std::optional<Millis> due = registry_.next_due();
    if (!due) return;
    const Millis wait_ms = std::max<Millis>(0, *due - around_.elapsed());
    delayed_send(this, std::chrono::milliseconds(wait_ms), wake_atom_v, ++wake_round_);
  }

  // `asked`: the job that holds the name is not about to release it.
  void create(const CreateJob& m, bool asked) {
    registry::Admission admission = registry_.admit(m.object, asked, now());
    while (auto* unknown = std::get_if<registry::ReadJob>(&admission)) {
      const auto loaded = load_job_(unknown->job);
      if (!loaded) return gate_.reply<Status>(m.done, loaded.error());
      registry_.set_read(unknown->job, &loaded->job.object());
      admission = registry_.admit(m.object, asked, now());
    }
    if (auto* holder = std::get_if<registry::AskHolder>(&admission))
      return create_after(holder->job, m);
    if (auto* error = std::get_if<Error>(&admission)) return gate_.reply<Status>(m.done, *error);
    const auto& admitted = std::get<registry::Admitted>(admission);
    const JobId id = admitted.id;
    *next_job_ = registry_.next_id();
    log::info("{} created{}", title(id, *registry_.job(id)), by_owner(m.object->meta.annotations));
    storage::RecoveredJob fresh{.job = core::Job(id, m.object), .next_seq = 2, .tail_rows = 1};
    std::vector<core::Record> records{admitted.record};
    if (core::created_on_hold(m.object->meta.annotations))
      records.emplace_back(core::held_by_owner(m.object->meta, core::at(admitted.record)));
    for (const core::Record& record : records) fresh.job.apply(record);
    Append append;
    append.records =
        std::make_shared<core::JobRecords>(core::JobRecords{id, std::move(records), nullptr});
    append.rows = storage::job_rows(id, 1, append.records->records);
    append.rows.push_back(storage::next_job_row(registry_.next_id()));
    gate_.after(std::move(append),
                [this, fresh = std::move(fresh), done = m.done](const Durable& durable) {
                  done(durable, Nothing{});
                  spawn_job(fresh);
                });
    carry_out(admitted.effects);
  }

  // Retries when the job that holds the name has handled everything sent to it so far.
  void create_after(JobId id, const CreateJob& m) {
    const uint64_t number = ++last_look_;
    looks_.emplace(number, m);
    auto again = [me = registry_actor{this}, number](const Status&) {
      caf::anon_send(me, sync_atom_v, number);
    };
    // An empty request, answered after everything sent before it.
    with_actor(id, {sends(JobAsk{core::PodsDeletion{}, again}), again});
  }

  // The id of the job; 0 if the request was answered with an error.
  JobId find(const std::string& ns, const std::string& name, const std::string& uid,
             const Reply<Status>& done) {
    const Result<JobId> found = registry_.find(ns, name, uid);
    if (found) return *found;
    gate_.reply<Status>(done, found.error());
    return 0;
  }

  void remove(const DeleteJob& m) {
    JobId id = find(m.ns, m.name, m.uid, m.done);
    if (id == 0) return;
    log::info("{} deleted", title(id, *registry_.job(id)));
    auto ack = std::make_shared<Countdown>(
        1, [done = m.done](const Durable& durable) { done(durable, Nothing{}); });
    with_actor(id, {sends(JobDelete{m.background, m.orphan, ack}),
                    [this, done = m.done](const Status& why) { gate_.reply(done, why); }});
  }

  void ask(const AskJob& m) {
    JobId id = m.name.empty() ? m.id : find(m.ns, m.name, m.uid, m.done);
    if (id == 0) return;
    if (!registry_.job(id)) return gate_.reply<Status>(m.done, job_is_gone());
    with_actor(id, {sends(JobAsk{m.event, m.done}), [this, done = m.done](const Status& why) {
                      gate_.reply(done, why ? Status(job_is_gone()) : why);
                    }});
  }

  static Error job_is_gone() { return {Errc::not_found, "the job is gone", {}}; }

  void report(const Report& m) {
    auto done = [keep = registry_.ends_to_keep(m.jobs), answer = m.done](const Durable& durable) {
      answer(durable, keep);
    };
    std::vector<std::pair<job_actor, const core::PodsReported*>> parts;
    for (const auto& [id, part] : m.jobs)
      if (auto it = actors_.find(id); it != actors_.end()) parts.emplace_back(it->second, &part);
    if (parts.empty()) return gate_.after(std::move(done));
    auto ack = std::make_shared<Countdown>(parts.size(), std::move(done));
    for (const auto& [actor, part] : parts) send(actor, JobReport{*part, ack});
  }

  void reconcile(const Reconcile& m) {
    // Collects the answers of all jobs; the mutex guards the vector.
    struct Answers {
      std::mutex mutex;
      std::vector<PodId> end;
    };
    auto answers = std::make_shared<Answers>();
    answers->end = registry_.strangers(m.known);
    auto ack = std::make_shared<Countdown>(
        actors_.size() + 1, [answers, answered = m.answered](const Durable& durable) {
          answered(durable, std::move(answers->end));
        });
    for (const auto& [id, actor] : actors_) {
      auto known = m.known.find(id);
      send(actor,
           JobReconcile{m.node, m.link, known == m.known.end() ? std::set<PodKey>{} : known->second,
                        m.restored,
                        [answers, ack, id = id](const Durable& durable, std::vector<PodKey> end) {
                          {
                            std::lock_guard lock(answers->mutex);
                            for (PodKey pod : end)
                              answers->end.push_back({id, pod.index, pod.attempt});
                          }
                          ack->part_done(durable);
                        }});
    }
    gate_.after([ack](const Durable& durable) { ack->part_done(durable); });
  }

  template <class Message>
  void tell_all(const Message& m) {
    for (const auto& [id, actor] : actors_) send(actor, m);
  }

  void over(const JobIsOver& m) {
    if (actors_.contains(m.job))
      log::info("{} {}: {}", title(m.job, *registry_.job(m.job)),
                m.how.forgotten ? "is gone" : "is over", m.outcome);
    carry_out(registry_.over(m.job, m.how, m.progress, now()));
    if (m.how.wake_ms) arm();
    if (registry_.job(m.job)) return;
    for (const Ask& ask : take_asks(m.job)) ask.otherwise(Nothing{});
  }

  void left(const caf::actor_addr& actor) {
    auto gone = leaving_.extract(actor);
    if (gone.empty()) return;
    const JobId job = gone.mapped().first;
    send(around_.cluster, JobLeft{job});
    registry_.actor_left(job);
    if (asks_.contains(job)) load(job);
  }

  void carry_out(const registry::Effects& effects) {
    for (const registry::Effect& effect : effects)
      std::visit([this](const auto& one) { carry_out(one); }, effect);
  }
  void carry_out(const registry::TellEnd& e) {
    auto knows = [me = registry_actor{this}, e](const Status&) {
      caf::anon_send(me, DependentKnows{e.dependent, e.of});
    };
    with_actor(e.dependent,
               {sends(JobAsk{core::DependencyHasEnded{0, e.of, e.how, e.progress}, knows}), knows});
  }
  void carry_out(const registry::TellProgress& e) {
    auto done = [](const Status&) {};
    with_actor(e.dependent,
               {sends(JobAsk{core::DependencyHasAdvanced{0, e.of, e.progress}, done})});
  }
  void carry_out(const registry::TellDependents& e) {
    with_actor(e.job, {sends(HasDependents{e.dependents})});
  }
  void carry_out(const registry::StopActor& e) {
    const job_actor actor = actors_.extract(e.job).mapped();
    send(actor, stop_atom_v);
    leaving_.emplace(actor.address(), std::pair(e.job, actor));
  }
  void carry_out(const registry::DeleteFinished& e) {
    log::info("j{} is deleted: {} finished jobs are kept", e.job, registry_.finished_max());
    auto ack = std::make_shared<Countdown>(1, [](const Durable&) {});
    with_actor(e.job, {sends(JobDelete{true, false, ack})});
  }

  JobSurroundings around_;
  LoadJob load_job_;
  RegistryStart start_;
  std::shared_ptr<std::atomic<JobId>> next_job_;
  registry::Registry registry_;
  std::map<JobId, job_actor> actors_;       // of running jobs
  std::map<JobId, std::vector<Ask>> asks_;  // of jobs that have no actor yet
  // Actors that were asked to stop, with their jobs. Nothing else refers to one that waits for its
  // last commit.
  std::map<caf::actor_addr, std::pair<JobId, job_actor>> leaving_;
  uint64_t wake_round_ = 0;
  uint64_t last_look_ = 0;
  std::map<uint64_t, CreateJob> looks_;  // creates that wait for a job's answer
};

}  // namespace

HeldAtStart held_slots(const storage::Recovered& recovered) {
  HeldAtStart held;
  std::set<NodeId> gone;
  for (const core::NodeInfo& node : recovered.nodes)
    if (node.gone) gone.insert(node.id);
  std::set<NodeId> lost;
  for (const storage::RecoveredJob& r : recovered.jobs)
    for (const auto& [key, pod] : r.job.state().open) {
      if (!pod.bound()) continue;
      if (gone.contains(pod.node)) {
        lost.insert(pod.node);
        continue;
      }
      HeldSlots& slots = held.slots[core::in_steps(r.job.id(), pod.steps)];
      if (!slots.object) slots.object = core::placed_object(r.job, pod.steps);
      ++slots.slots[pod.node];
    }
  held.lost.assign(lost.begin(), lost.end());
  return held;
}

registry_actor spawn_registry(caf::actor_system& system, journal_actor journal,
                              cluster_actor cluster, SealedLink link, RegistryStart start,
                              RegistryOptions options) {
  return vital(registry_actor{system.spawn<RegistryActor>(
      std::move(journal), std::move(cluster), link, std::move(start), std::move(options))});
}

}  // namespace muster::actors
