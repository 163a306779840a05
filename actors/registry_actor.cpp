#include "actors/registry_actor.hpp"

#include "actors/supervise.hpp"
#include "base/log.hpp"
#include "storage/rows.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <mutex>
#include <utility>

namespace muster::actors {

namespace {

class Registry : public registry_actor::base {
 public:
  Registry(caf::actor_config& config, journal_actor journal, cluster_actor cluster, AgentLink& link,
           WallClock clock, core::Knobs knobs, std::vector<storage::RecoveredJob> jobs,
           std::vector<NodeId> lost, JobId next_job,
           std::function<void(const std::string&)> outdated, uint64_t tail_bytes_min)
      : registry_actor::base(config),
        around_{std::move(journal), std::move(cluster),
                registry_actor{},   &link,
                std::move(clock),   knobs,
                tail_bytes_min},
        recovered_(std::move(jobs)),
        lost_(std::move(lost)),
        next_job_(next_job),
        outdated_(std::move(outdated)) {}

  behavior_type make_behavior() override {
    around_.registry = registry_actor{this};
    for (storage::RecoveredJob& r : recovered_) adopt(std::move(r));
    recovered_.clear();
    for (NodeId node : lost_) tell_all(NodeIsLost{node, core::EndCause::node_lost});
    return {
        [this](const CreateJob& m) { create(m); },
        [this](const DeleteJob& m) { remove(m); },
        [this](const Report& m) { report(m); },
        [this](const Reconcile& m) { reconcile(m); },
        [this](const NodeReadyNow& m) { tell_all(m); },
        [this](const NodeIsLost& m) { tell_all(m); },
        [this](const JobIsOver& m) { over(m); },
        [this](const durable_atom&, uint64_t asked) { durable(asked); },
        [this](const stop_atom&) {
          for (auto& [id, entry] : jobs_)
            if (entry.actor) send_exit(entry.actor, caf::exit_reason::user_shutdown);
          quit();
        },
    };
  }

  void on_exit() override {
    jobs_.clear();
    asked_.clear();
    destroy(around_.journal);
    destroy(around_.cluster);
    destroy(around_.registry);
  }

 private:
  struct Entry {
    std::string ns, name, uid;
    job_actor actor;        // none: finished
    uint64_t last_seq = 0;  // of a finished job: what forget_rows() needs
    uint64_t first_tail_seq = 1;
    bool durable = true;             // false: being created
    std::vector<DeleteJob> deletes;  // that arrived before the job was durable
  };
  using FullName = std::pair<std::string, std::string>;

  void adopt(storage::RecoveredJob r) {
    const core::JobMeta& meta = r.job.object().meta;
    JobId id = r.job.id();
    uint64_t first_tail = r.next_seq - r.tail_rows;
    if (r.job.state().forgotten) {
      Append append;
      append.rows = storage::forget_rows(id, r.next_seq - 1, first_tail);
      return send(around_.journal, std::move(append));
    }
    Entry entry{meta.ns, meta.name, meta.uid, job_actor{}, r.next_seq - 1, first_tail, true, {}};
    if (!r.job.hidden()) names_[{meta.ns, meta.name}] = id;
    bool over = r.job.finished() && r.job.state().open.empty() && r.job.state().deleted_ms == 0;
    if (!over) entry.actor = spawn_job(std::move(r.job), r.next_seq, first_tail, r.tail_bytes);
    jobs_.emplace(id, std::move(entry));
  }

  job_actor spawn_job(core::Job job, uint64_t next_seq, uint64_t first_tail, uint64_t tail_bytes) {
    return vital(job_actor{
        system().spawn<JobActor>(around_, std::move(job), next_seq, first_tail, tail_bytes)});
  }

  void create(const CreateJob& m) {
    const core::JobMeta& meta = m.object->meta;
    FullName full{meta.ns, meta.name};
    if (names_.contains(full)) {
      // The job that has the name may itself not be on disk yet: a refusal tells of it, so it waits
      // for it.
      return later({}, nullptr, [done = m.done, name = meta.name] {
        done(Error{Errc::exists, "jobs.batch \"" + name + "\" already exists", {}});
      });
    }
    JobId id = next_job_++;
    names_[full] = id;
    auto records = std::make_shared<core::JobRecords>();
    records->job = id;
    records->records.push_back(core::JobAdmitted{around_.clock(), m.object});
    std::vector<storage::Row> rows = storage::job_rows(id, 1, records->records);
    rows.push_back(storage::next_job_row(next_job_));
    core::Job job(id, m.object);
    job.apply(records->records.front());
    jobs_.emplace(id, Entry{meta.ns, meta.name, meta.uid, job_actor{}, 1, 1, false, {}});
    log::info("j{} {}/{} created", id, meta.ns, meta.name);
    later(std::move(rows), std::move(records), [this, id, job = std::move(job), done = m.done] {
      auto it = jobs_.find(id);
      it->second.actor = spawn_job(job, 2, 1, 0);
      it->second.durable = true;
      done(Nothing{});
      for (const DeleteJob& waiting : std::exchange(it->second.deletes, {})) remove(waiting);
    });
  }

  void remove(const DeleteJob& m) {
    auto named = names_.find({m.ns, m.name});
    if (named == names_.end())
      return later({}, nullptr, [done = m.done, name = m.name] {
        done(Error{Errc::not_found, "jobs.batch \"" + name + "\" not found", {}});
      });
    JobId id = named->second;
    Entry& entry = jobs_.at(id);
    if (!m.uid.empty() && m.uid != entry.uid)
      return m.done(Error{Errc::conflict,
                          "the UID in the precondition (" + m.uid +
                              ") does not match the UID of the job (" + entry.uid + ")",
                          {}});
    if (!entry.durable) return entry.deletes.push_back(m);
    log::info("j{} {}/{} deleted", id, entry.ns, entry.name);
    if (entry.actor) {
      if (m.background) names_.erase(named);
      return send(
          entry.actor,
          JobDelete{m.background, std::make_shared<Ack>(1, [done = m.done] { done(Nothing{}); })});
    }
    // Finished: it has no actor and no pods.
    names_.erase(named);
    auto records = std::make_shared<core::JobRecords>();
    records->job = id;
    records->records = {core::JobDeleted{around_.clock(), true},
                        core::JobForgotten{around_.clock()}};
    auto rows = storage::forget_rows(id, entry.last_seq, entry.first_tail_seq);
    jobs_.erase(id);
    later(std::move(rows), std::move(records), [done = m.done] { done(Nothing{}); });
  }

  void report(const Report& m) {
    size_t living = 0;
    for (const auto& [id, part] : m.jobs)
      if (actor_of(id)) ++living;
    if (living == 0) return later({}, nullptr, m.done);
    auto ack = std::make_shared<Ack>(living, m.done);
    for (const auto& [id, part] : m.jobs)
      if (job_actor actor = actor_of(id)) send(actor, JobReport{part, ack});
  }

  void reconcile(const Reconcile& m) {
    // Shared by all jobs' answers; the mutex is for the vector only.
    struct Answers {
      std::mutex mutex;
      std::vector<PodId> end;
    };
    auto answers = std::make_shared<Answers>();
    std::vector<std::pair<JobId, job_actor>> asked;
    for (const auto& [id, entry] : jobs_)
      if (entry.actor) asked.emplace_back(id, entry.actor);
    if (!m.known.empty() && m.known.rbegin()->first >= next_job_)
      return outdated_("a node runs pods of job j" + std::to_string(m.known.rbegin()->first) +
                       ", but this data-dir never gave that id");
    for (const auto& [id, pods] : m.known)
      if (!actor_of(id))
        for (PodKey pod : pods) answers->end.push_back({id, pod.index, pod.attempt});
    auto ack = std::make_shared<Ack>(
        asked.size() + 1, [answers, answered = m.answered] { answered(std::move(answers->end)); });
    for (auto& [id, actor] : asked) {
      auto known = m.known.find(id);
      send(actor,
           JobReconcile{m.node, m.link, known == m.known.end() ? std::set<PodKey>{} : known->second,
                        [answers, ack, id = id](std::vector<PodKey> end) {
                          {
                            std::lock_guard lock(answers->mutex);
                            for (PodKey pod : end)
                              answers->end.push_back({id, pod.index, pod.attempt});
                          }
                          ack->part_done();
                        }});
    }
    later({}, nullptr, [ack] { ack->part_done(); });
  }

  template <class Message>
  void tell_all(const Message& m) {
    for (const auto& [id, entry] : jobs_)
      if (entry.actor) send(entry.actor, m);
  }

  void over(const JobIsOver& m) {
    auto it = jobs_.find(m.job);
    if (it == jobs_.end()) return;
    Entry& entry = it->second;
    if (!m.forgotten && !entry.actor) return;
    log::info("j{} {}/{} {}", m.job, entry.ns, entry.name, m.forgotten ? "is gone" : "finished");
    if (entry.actor) send(entry.actor, stop_atom_v);
    entry.actor = job_actor{};
    entry.last_seq = m.last_seq;
    entry.first_tail_seq = m.first_tail_seq;
    if (!m.forgotten) return;
    if (auto named = names_.find({entry.ns, entry.name});
        named != names_.end() && named->second == m.job)
      names_.erase(named);
    jobs_.erase(it);
  }

  job_actor actor_of(JobId id) const {
    auto it = jobs_.find(id);
    return it == jobs_.end() ? job_actor{} : it->second.actor;
  }

  // Does `then` once the rows, and all that was appended before them, are durable.
  void later(std::vector<storage::Row> rows, std::shared_ptr<const core::JobRecords> records,
             std::function<void()> then) {
    Append append;
    append.rows = std::move(rows);
    append.records = std::move(records);
    uint64_t number = ++last_asked_;
    asked_.emplace(number, std::move(then));
    append.done = [me = registry_actor{this}, number](uint64_t) {
      caf::anon_send(me, durable_atom_v, number);
    };
    send(around_.journal, std::move(append));
  }

  void durable(uint64_t asked) {
    auto node = asked_.extract(asked);
    node.mapped()();
  }

  JobSurroundings around_;
  std::vector<storage::RecoveredJob> recovered_;
  std::vector<NodeId> lost_;
  JobId next_job_;
  std::function<void(const std::string&)> outdated_;
  std::map<FullName, JobId> names_;
  std::map<JobId, Entry> jobs_;
  uint64_t last_asked_ = 0;
  std::unordered_map<uint64_t, std::function<void()>> asked_;
};

}  // namespace

Held held_slots(const storage::Recovered& recovered) {
  Held held;
  for (const storage::RecoveredJob& r : recovered.jobs)
    for (const auto& [key, pod] : r.job.state().open)
      if (pod.bound()) ++held.slots[pod.node];
  for (const core::NodeInfo& node : recovered.nodes)
    if (node.gone && held.slots.erase(node.id) > 0) held.lost.push_back(node.id);
  return held;
}

registry_actor spawn_registry(caf::actor_system& system, journal_actor journal,
                              cluster_actor cluster, AgentLink& link, WallClock clock,
                              core::Knobs knobs, std::vector<storage::RecoveredJob> jobs,
                              std::vector<NodeId> lost, JobId next_job,
                              std::function<void(const std::string&)> outdated,
                              uint64_t tail_bytes_min) {
  return vital(registry_actor{system.spawn<Registry>(
      std::move(journal), std::move(cluster), std::ref(link), std::move(clock), knobs,
      std::move(jobs), std::move(lost), next_job, std::move(outdated), tail_bytes_min)});
}

}  // namespace muster::actors
