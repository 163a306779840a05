#include "actors/registry_actor.hpp"

#include "actors/supervise.hpp"
#include "base/log.hpp"
#include "core/spec/fields/after.hpp"
#include "core/spec/fields/owner.hpp"
#include "storage/rows/rows.hpp"

#include <caf/actor_addr.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <mutex>
#include <set>
#include <utility>

namespace muster::actors {

namespace {

class Registry : public GatedActor<registry_actor> {
 public:
  Registry(caf::actor_config& config, journal_actor journal, cluster_actor cluster, SealedLink link,
           RegistryStart start, RegistryOptions options)
      : GatedActor(config, journal, link),
        around_{std::move(journal),
                std::move(cluster),
                registry_actor{},
                link,
                options.clock,
                options.elapsed,
                options.knobs,
                options.tail_bytes_min,
                std::move(options.synced),
                std::move(options.waiting)},
        load_job_(std::move(options.load_job)),
        start_(std::move(start)),
        next_job_(start_.next_job),
        shared_next_job_(std::move(options.next_job)),
        finished_jobs_max_(options.finished_jobs_max) {
    tell_next_job();
  }

  behavior_type make_behavior() override {
    around_.registry = registry_actor{this};
    set_down_handler([this](caf::down_msg& down) { left(down.source); });
    for (const storage::RecoveredJob& r : start_.jobs) note_dependencies(r.job);
    for (core::JobSummary& r : start_.unloaded) adopt(std::move(r));
    for (storage::RecoveredJob& r : start_.jobs) adopt(std::move(r));
    for (const storage::DamagedJob& d : start_.damaged) quarantine(d);
    for (NodeId node : start_.lost) tell_all(NodeIsLost{node, core::EndCause::node_lost});
    start_ = {};
    notify_dependents();
    bound_finished();
    return {
        [this](const CreateJob& m) { create(m, false); },
        [this](const DeleteJob& m) { remove(m); },
        [this](const AskJob& m) { ask(m); },
        [this](const Report& m) { report(m); },
        [this](const Reconcile& m) { reconcile(m); },
        [this](const NodeReadyNow& m) { tell_all(m); },
        [this](const NodeIsLost& m) { tell_all(m); },
        [this](const JobHears& m) {
          if (job_actor actor = actor_of(m.job)) send(actor, m);
        },
        [this](const JobIsOver& m) { over(m); },
        [this](const JobIsHidden& m) { hidden(m); },
        [this](const DependentKnows& m) { forget_dependent(m.of, m.dependent); },
        [this](const durable_atom&, uint64_t number, uint64_t commit) {
          gate_.open(number, commit);
        },
        [this](const sync_atom&, uint64_t number) {
          auto looks = looks_.extract(number);
          looks.mapped()();
        },
        [this](const wake_atom&, uint64_t round) {
          if (round == wake_round_) expire();
        },
        [this](const stop_atom&) {
          for (auto& [id, entry] : jobs_)
            if (entry.actor) send_exit(entry.actor, caf::exit_reason::user_shutdown);
          // These wait for a commit that the journal may never make.
          for (const auto& [address, leaving] : leaving_)
            send_exit(leaving.actor, caf::exit_reason::user_shutdown);
          quit();
        },
    };
  }

  void on_exit() override {
    jobs_.clear();
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
    std::function<void(const job_actor&)> pass_on;
    // Called instead if nothing is left of the job, or with an error if it is quarantined.
    std::function<void(const Status&)> otherwise = [](const Status&) {};
  };
  // A job is being created, has an actor, is leaving (its actor was asked to stop and may still
  // write), is unloaded, or is quarantined. Requests to a job without an actor wait for the next
  // one, unless it is quarantined.
  struct Entry {
    std::string ns, name, uid;
    job_actor actor;
    caf::actor_addr leaving;
    bool durable = true;  // false: being created
    std::vector<Ask> asks;
    std::optional<Millis> wake_at{};           // when to load an unloaded job again (elapsed)
    std::optional<Millis> finished_ms{};       // its place in finished_
    core::JobClock clock{};                    // shared by all actors that it gets in this run
    std::string damage{};                      // why it is quarantined; empty: it is not
    std::optional<core::DependencyEnd> end{};  // how it ended; absent: it has not
    std::vector<JobId> depends_on{};           // jobs whose dependents_ include it
    bool owner_known = true;                   // false: not read from disk in this run
    std::optional<uint32_t> owner_uid{};
    bool unloaded() const { return !actor && !leaving && durable; }
  };
  using FullName = std::pair<std::string, std::string>;

  void adopt(storage::RecoveredJob r) {
    const core::JobMeta& meta = r.job.object().meta;
    JobId id = r.job.id();
    uint64_t first_tail = r.next_seq - r.tail_rows;
    if (r.job.state().forgotten) {
      Append append;
      append.rows = storage::forget_rows(id, r.next_seq - 1, first_tail);
      return gate_.after(std::move(append), [](const Durable&) {});
    }
    Entry entry{meta.ns, meta.name, meta.uid};
    entry.clock = clock_from(r.job.state().last_record_ms);
    entry.depends_on = awaited_by(r.job);
    entry.owner_uid = core::owner_uid(meta.annotations);
    if (r.job.finished())
      entry.end = end_of(r.job.condition(core::ConditionType::complete) != nullptr);
    if (!r.job.hidden()) names_[{meta.ns, meta.name}] = id;
    const core::JobState& state = r.job.state();
    bool over = state.open.empty() && (r.job.finished() || state.orphaned) &&
                (!state.deleted_at || state.orphaned);
    if (over) {
      add_finished(id, entry, core::summary_of(r.job).finished_ms);
      unload(id, entry, core::expires_at(r.job));
    } else {
      entry.actor = spawn_job(std::move(r), entry.clock);
    }
    jobs_.emplace(id, std::move(entry));
  }

  void adopt(core::JobSummary r) {
    names_[{r.ns, r.name}] = r.id;
    Entry entry{std::move(r.ns), std::move(r.name), std::move(r.uid)};
    entry.end = end_of(r.complete);
    entry.owner_known = false;
    entry.clock = clock_from(r.finished_ms);
    add_finished(r.id, entry, r.finished_ms);
    unload(r.id, entry, r.wake_ms);
    jobs_.emplace(r.id, std::move(entry));
  }

  core::JobClock clock_from(Millis last_record_ms) const {
    return {around_.clock(), around_.elapsed(), last_record_ms};
  }

  // Quarantines a job that could not be recovered. Whether it has pods is unknown.
  void quarantine(const storage::DamagedJob& d) {
    quarantined_.insert(d.id);
    if (!d.object) return;
    const core::JobMeta& meta = d.object->meta;
    names_[{meta.ns, meta.name}] = d.id;
    Entry entry{meta.ns, meta.name, meta.uid};
    entry.damage = d.why;
    entry.owner_uid = core::owner_uid(meta.annotations);
    jobs_.emplace(d.id, std::move(entry));
  }

  static Error damage_of(const Entry& entry) {
    return {Errc::unavailable,
            "job " + entry.ns + "/" + entry.name + " is damaged: " + entry.damage,
            {}};
  }

  job_actor spawn_job(storage::RecoveredJob r, core::JobClock clock) {
    uint64_t first_tail = r.next_seq - r.tail_rows;
    const JobId id = r.job.id();
    job_actor actor{system().spawn<JobActor>(around_, clock, std::move(r.job), r.next_seq,
                                             first_tail, r.tail_bytes, dependents_.contains(id))};
    monitor(actor);
    return vital(actor);
  }

  // Passes a request to the job's actor; an unloaded job is loaded first.
  void with_actor(JobId id, Ask ask) {
    Entry& entry = jobs_.at(id);
    if (entry.actor) return ask.pass_on(entry.actor);
    if (!entry.damage.empty()) return ask.otherwise(damage_of(entry));
    entry.asks.push_back(std::move(ask));
    if (entry.unloaded()) load(id, entry);
  }

  void load(JobId id, Entry& entry) {
    forget_wake(id, entry);
    auto loaded = load_job_(id);
    if (!loaded) {
      log::error("j{} {}/{} is quarantined: {}", id, entry.ns, entry.name, loaded.error().message);
      entry.damage = loaded.error().message;
      for (const Ask& ask : std::exchange(entry.asks, {})) ask.otherwise(damage_of(entry));
      return;
    }
    entry.actor = spawn_job(std::move(*loaded), entry.clock);
    for (const Ask& ask : std::exchange(entry.asks, {})) ask.pass_on(entry.actor);
  }

  // `wake_ms`: when to load it again, in job time.
  void unload(JobId id, Entry& entry, std::optional<Millis> wake_ms) {
    forget_wake(id, entry);
    if (!wake_ms) return;
    Millis elapsed = around_.elapsed();
    entry.wake_at = elapsed + std::max<Millis>(0, *wake_ms - entry.clock.now(elapsed));
    wakes_.insert({*entry.wake_at, id});
    arm();
  }

  void forget_wake(JobId id, Entry& entry) {
    if (auto at = std::exchange(entry.wake_at, std::nullopt)) wakes_.erase({*at, id});
  }

  void add_finished(JobId id, Entry& entry, Millis finished_ms) {
    entry.finished_ms = finished_ms;
    finished_.insert({finished_ms, id});
  }

  // Sets the only timer, for the unloaded job that is due next.
  void arm() {
    if (wakes_.empty()) return;
    Millis wait_ms = std::max<Millis>(0, wakes_.begin()->first - around_.elapsed());
    delayed_send(this, std::chrono::milliseconds(wait_ms), wake_atom_v, ++wake_round_);
  }

  void expire() {
    Millis now = around_.elapsed();
    while (!wakes_.empty() && wakes_.begin()->first <= now) {
      JobId id = wakes_.begin()->second;
      wakes_.erase(wakes_.begin());
      jobs_.at(id).wake_at.reset();
      // Its first decision acts on the current time.
      with_actor(id, {[](const job_actor&) {}, [](const Status&) {}});
    }
    arm();
  }

  // `looked`: the job that holds the name has been asked and is not about to release it.
  void create(const CreateJob& m, bool looked) {
    const core::JobMeta& meta = m.object->meta;
    FullName full{meta.ns, meta.name};
    if (auto named = names_.find(full); named != names_.end()) {
      // A client may know more than we do: the job may be gone, with its actor's message about that
      // still in flight. An unloaded job has no such message in flight.
      const Entry& entry = jobs_.at(named->second);
      if (!looked && entry.durable && !entry.unloaded()) return create_after(named->second, m);
      return gate_.reply<Status>(
          m.done, Error{Errc::exists, "jobs.batch \"" + meta.name + "\" already exists", {}});
    }
    auto dependencies = dependencies_of(meta);
    if (!dependencies) return gate_.reply<Status>(m.done, dependencies.error());
    JobId id = next_job_++;
    tell_next_job();
    names_[full] = id;
    auto records = std::make_shared<core::JobRecords>();
    records->job = id;
    records->records.push_back(core::JobAdmitted{around_.clock(), m.object, *dependencies});
    std::vector<storage::Row> rows = storage::job_rows(id, 1, records->records);
    rows.push_back(storage::next_job_row(next_job_));
    storage::RecoveredJob fresh{.job = core::Job(id, m.object), .next_seq = 2};
    fresh.job.apply(records->records.front());
    Entry entry{meta.ns, meta.name, meta.uid};
    entry.durable = false;
    entry.depends_on = awaited_by(fresh.job);
    entry.owner_uid = core::owner_uid(meta.annotations);
    note_dependencies(fresh.job);
    entry.clock = clock_from(fresh.job.state().last_record_ms);
    jobs_.emplace(id, std::move(entry));
    log::info("j{} {}/{} created", id, meta.ns, meta.name);
    fresh.tail_rows = 1;
    Append append;
    append.rows = std::move(rows);
    append.records = std::move(records);
    auto begin = [this, id, fresh = std::move(fresh), done = m.done](const Durable& durable) {
      Entry& entry = jobs_.at(id);
      entry.actor = spawn_job(fresh, entry.clock);
      entry.durable = true;
      done(durable, Nothing{});
      for (const Ask& ask : std::exchange(entry.asks, {})) ask.pass_on(entry.actor);
    };
    gate_.after(std::move(append), std::move(begin));
    for (const core::Dependency& one : *dependencies) {
      if (jobs_.at(one.job).end)
        notify_dependents(one.job);
      else if (job_actor actor = actor_of(one.job))
        send(actor, HasDependents{true});
    }
  }

  static core::DependencyEnd end_of(bool complete) {
    return complete ? core::DependencyEnd::succeeded : core::DependencyEnd::failed;
  }

  // Whether a new job may wait for this one. For a user's job, only the user's own exist: it would
  // otherwise tell whether another user's job does and how it ended, and keep it from being
  // forgotten.
  bool may_await(const core::JobMeta& meta, JobId id) {
    if (!core::is_users(meta.annotations)) return true;
    Entry& entry = jobs_.at(id);
    if (!std::exchange(entry.owner_known, true))
      if (auto loaded = load_job_(id))
        entry.owner_uid = core::owner_uid(loaded->job.object().meta.annotations);
    return entry.owner_uid == core::owner_uid(meta.annotations);
  }

  // The jobs that a new one names in muster.dev/after.
  Result<std::vector<core::Dependency>> dependencies_of(const core::JobMeta& meta) {
    std::vector<core::Dependency> found;
    for (core::After& after : core::after_of(meta.annotations)) {
      auto named = names_.find({meta.ns, after.job});
      if (named == names_.end() || !may_await(meta, named->second)) {
        const std::string key(core::kAfterKey);
        core::Violations wrong;
        wrong.invalid("metadata.annotations[" + key + "]", meta.annotations.at(key),
                      "there is no job `" + after.job + "` in namespace `" + meta.ns + "`");
        return Error{Errc::invalid, "", wrong.take()};
      }
      found.push_back({named->second, std::move(after)});
    }
    return found;
  }

  static std::vector<JobId> awaited_by(const core::Job& job) {
    std::vector<JobId> ids;
    for (const core::Dependency& one : job.state().dependencies) ids.push_back(one.job);
    return ids;
  }
  void note_dependencies(const core::Job& job) {
    for (JobId id : awaited_by(job)) dependents_[id].insert(job.id());
  }

  // At startup: notifies those that wait for jobs that have ended or are gone.
  void notify_dependents() {
    std::vector<JobId> over;
    for (const auto& [id, dependents] : dependents_) {
      auto it = jobs_.find(id);
      if (it == jobs_.end() ? !quarantined_.contains(id) : it->second.end.has_value())
        over.push_back(id);
    }
    for (JobId id : over) notify_dependents(id);
  }

  // Notifies the jobs that wait for this one, which has ended or is gone.
  void notify_dependents(JobId id) {
    auto waiting = dependents_.find(id);
    if (waiting == dependents_.end()) return;
    auto it = jobs_.find(id);
    const core::DependencyHasEnded event{
        0, id,
        it == jobs_.end() ? core::DependencyEnd::deleted
                          : it->second.end.value_or(core::DependencyEnd::deleted)};
    for (JobId dependent : std::set<JobId>(waiting->second)) {
      auto knows = [me = registry_actor{this}, dependent, id] {
        caf::anon_send(me, DependentKnows{dependent, id});
      };
      auto pass_on = [this, event, knows](const job_actor& actor) {
        send(actor, JobAsk{event, [knows](const Status&) { knows(); }});
      };
      with_actor(dependent, {pass_on, [knows](const Status&) { knows(); }});
    }
  }

  // The dependent has recorded how that job ended, or is gone itself.
  void forget_dependent(JobId of, JobId dependent) {
    auto waiting = dependents_.find(of);
    if (waiting == dependents_.end() || waiting->second.erase(dependent) == 0) return;
    if (!waiting->second.empty()) return;
    dependents_.erase(waiting);
    if (!jobs_.contains(of)) return;
    with_actor(of, {[this](const job_actor& actor) { send(actor, HasDependents{false}); },
                    [](const Status&) {}});
  }

  // Retries when the job that holds the name has handled everything sent to it so far.
  void create_after(JobId id, const CreateJob& m) {
    uint64_t number = ++last_look_;
    looks_.emplace(number, [this, m] { create(m, true); });
    auto again = [me = registry_actor{this}, number] { caf::anon_send(me, sync_atom_v, number); };
    with_actor(id, {[this, again](const auto& actor) {
                      // An empty request, answered after everything sent before it.
                      send(actor, JobAsk{core::PodsDeletion{}, [again](Status) { again(); }});
                    },
                    [again](const Status&) { again(); }});
  }

  // The id of the job; 0 if the request was answered with an error.
  JobId find(const std::string& ns, const std::string& name, const std::string& uid,
             const Reply<Status>& done) {
    auto named = names_.find({ns, name});
    if (named == names_.end()) {
      gate_.reply<Status>(done,
                          Error{Errc::not_found, "jobs.batch \"" + name + "\" not found", {}});
      return 0;
    }
    const Entry& entry = jobs_.at(named->second);
    if (uid.empty() || uid == entry.uid) return named->second;
    gate_.reply<Status>(done, Error{Errc::conflict,
                                    "the UID in the precondition (" + uid +
                                        ") does not match the UID of the job (" + entry.uid + ")",
                                    {}});
    return 0;
  }

  void remove(const DeleteJob& m) {
    JobId id = find(m.ns, m.name, m.uid, m.done);
    if (id == 0) return;
    log::info("j{} {}/{} deleted", id, m.ns, m.name);
    auto ack = std::make_shared<Countdown>(
        1, [done = m.done](const Durable& durable) { done(durable, Nothing{}); });
    with_actor(id, {[this, order = JobDelete{m.background, m.orphan, ack}](const auto& actor) {
                      send(actor, order);
                    },
                    [this, done = m.done](const Status& why) { gate_.reply(done, why); }});
  }

  void ask(const AskJob& m) {
    JobId id = m.name.empty() ? m.id : find(m.ns, m.name, m.uid, m.done);
    if (id == 0) return;
    if (!jobs_.contains(id)) return gate_.reply<Status>(m.done, job_is_gone());
    with_actor(id,
               {[this, order = JobAsk{m.event, m.done}](const auto& actor) { send(actor, order); },
                [this, done = m.done](const Status& why) {
                  gate_.reply(done, why ? Status(job_is_gone()) : why);
                }});
  }

  void tell_next_job() {
    if (shared_next_job_) *shared_next_job_ = next_job_;
  }

  static Error job_is_gone() { return {Errc::not_found, "the job is gone", {}}; }

  void report(const Report& m) {
    size_t living = 0;
    std::vector<PodId> kept;
    for (const auto& [id, part] : m.jobs) {
      if (actor_of(id)) ++living;
      if (!quarantined_.contains(id)) continue;
      for (const auto& end : part.ends) kept.push_back({id, end.pod.index, end.pod.attempt});
    }
    auto done = [kept = std::move(kept), answer = m.done](const Durable& durable) {
      answer(durable, kept);
    };
    if (living == 0) return gate_.after(std::move(done));
    auto ack = std::make_shared<Countdown>(living, std::move(done));
    for (const auto& [id, part] : m.jobs)
      if (job_actor actor = actor_of(id)) send(actor, JobReport{part, ack});
  }

  void reconcile(const Reconcile& m) {
    // Collects the answers of all jobs; the mutex guards the vector.
    struct Answers {
      std::mutex mutex;
      std::vector<PodId> end;
    };
    auto answers = std::make_shared<Answers>();
    std::vector<std::pair<JobId, job_actor>> asked;
    for (const auto& [id, entry] : jobs_)
      if (entry.actor) asked.emplace_back(id, entry.actor);
    for (const auto& [id, pods] : m.known)
      if (!actor_of(id) && !quarantined_.contains(id))
        for (PodKey pod : pods) answers->end.push_back({id, pod.index, pod.attempt});
    auto ack = std::make_shared<Countdown>(
        asked.size() + 1, [answers, answered = m.answered](const Durable& durable) {
          answered(durable, std::move(answers->end));
        });
    for (auto& [id, actor] : asked) {
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
    for (const auto& [id, entry] : jobs_)
      if (entry.actor) send(entry.actor, m);
  }

  // Stops its actor, which first answers everything sent to it before.
  void over(const JobIsOver& m) {
    auto it = jobs_.find(m.job);
    if (it == jobs_.end()) return;
    Entry& entry = it->second;
    if (m.complete) entry.end = end_of(*m.complete);
    if (m.complete || m.forgotten) notify_dependents(m.job);
    if (entry.actor) {
      log::info("j{} {}/{} {}", m.job, entry.ns, entry.name, m.forgotten ? "is gone" : "is over");
      send(entry.actor, stop_atom_v);
      entry.leaving = entry.actor.address();
      leaving_[entry.leaving] = {m.job, std::exchange(entry.actor, job_actor{})};
    }
    unload(m.job, entry, m.wake_ms);
    if (!m.forgotten) {
      if (!entry.finished_ms) add_finished(m.job, entry, around_.clock());
      return bound_finished();
    }
    if (entry.finished_ms) finished_.erase({*entry.finished_ms, m.job});
    free_name(m.job, entry);
    for (const Ask& ask : entry.asks) ask.otherwise(Nothing{});
    const std::vector<JobId> depended_on = std::move(entry.depends_on);
    jobs_.erase(it);
    for (JobId of : depended_on) forget_dependent(of, m.job);
  }

  // Deletes the jobs that finished earliest if there are too many.
  void bound_finished() {
    while (finished_.size() > finished_jobs_max_) {
      JobId id = finished_.begin()->second;
      finished_.erase(finished_.begin());
      log::info("j{} is deleted: {} finished jobs are kept", id, finished_jobs_max_);
      with_actor(id, {[this](const auto& actor) {
                        send(actor,
                             JobDelete{true, false,
                                       std::make_shared<Countdown>(1, [](const Durable&) {})});
                      },
                      [](const Status&) {}});
    }
  }

  void hidden(const JobIsHidden& m) {
    if (auto it = jobs_.find(m.job); it != jobs_.end()) free_name(m.job, it->second);
  }

  void free_name(JobId id, const Entry& entry) {
    auto named = names_.find({entry.ns, entry.name});
    if (named != names_.end() && named->second == id) names_.erase(named);
  }

  void left(const caf::actor_addr& actor) {
    auto gone = leaving_.extract(actor);
    if (gone.empty()) return;
    const JobId job = gone.mapped().job;
    send(around_.cluster, JobLeft{job});
    auto it = jobs_.find(job);
    if (it == jobs_.end() || it->second.leaving != actor) return;
    it->second.leaving = {};
    if (!it->second.asks.empty()) load(it->first, it->second);
  }

  job_actor actor_of(JobId id) const {
    auto it = jobs_.find(id);
    return it == jobs_.end() ? job_actor{} : it->second.actor;
  }

  JobSurroundings around_;
  LoadJob load_job_;
  RegistryStart start_;
  JobId next_job_;
  std::shared_ptr<std::atomic<JobId>> shared_next_job_;
  uint64_t finished_jobs_max_;
  std::set<std::pair<Millis, JobId>> finished_;  // by time of finish, for bound_finished()
  std::map<FullName, JobId> names_;
  std::map<JobId, Entry> jobs_;
  std::map<JobId, std::set<JobId>> dependents_;  // by the job whose end they have not recorded
  std::set<JobId> quarantined_;                  // since the start; they may have pods
  // Actors that were asked to stop. Nothing else refers to one that waits for its last commit.
  struct Leaving {
    JobId job = 0;
    job_actor actor;
  };
  std::map<caf::actor_addr, Leaving> leaving_;
  std::set<std::pair<Millis, JobId>> wakes_;  // unloaded jobs to load again, by when (elapsed)
  uint64_t wake_round_ = 0;
  uint64_t last_look_ = 0;
  std::map<uint64_t, std::function<void()>> looks_;  // creates that wait for a job's answer
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
      HeldSlots& slots = held.slots[r.job.id()];
      slots.object = r.job.object_ptr();
      ++slots.slots[pod.node];
    }
  held.lost.assign(lost.begin(), lost.end());
  return held;
}

registry_actor spawn_registry(caf::actor_system& system, journal_actor journal,
                              cluster_actor cluster, SealedLink link, RegistryStart start,
                              RegistryOptions options) {
  return vital(registry_actor{system.spawn<Registry>(std::move(journal), std::move(cluster), link,
                                                     std::move(start), std::move(options))});
}

}  // namespace muster::actors
