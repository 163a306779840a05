#include "tests/sim/world.hpp"

#include "actors/kept_actor.hpp"
#include "api/kube/objects/manifest.hpp"
#include "api/kube/objects/queue_object.hpp"
#include "base/exec_exit.hpp"
#include "base/log.hpp"
#include "core/job/fold/text.hpp"
#include "core/job/rules/invariants.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/window.hpp"
#include "storage/codec/codec.hpp"
#include "storage/journal/keys.hpp"
#include "storage/recovery.hpp"
#include "storage/rows/attempts.hpp"
#include "storage/rows/history.hpp"
#include "storage/rows/rows.hpp"
#include "storage/rows/summary_row.hpp"
#include "storage/verify.hpp"

#include <caf/actor_registry.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace muster::sim {

namespace {
constexpr Millis kGraceMs = 4'000;
constexpr Millis kBeatMs = 500;

// The longest delay of an order in the executor: normally, and with a slow disk.
constexpr uint64_t kExecutorMs = 40, kSlowExecutorMs = 1'500;
constexpr Millis kPodGraceMs = 100;
constexpr Millis kFenceMs = 15'000;  // the shortest muster.dev/fence-after
constexpr int kPid = 4711;
constexpr Millis kHourMs = 3'600'000;
constexpr Millis kWindowMaxMs = 60'000;  // after its end, at the latest, a clock was set back

// The kinds of the records in these rows or, if there are none, of the rows themselves.
std::set<std::string> kinds_of(const std::vector<storage::Row>& rows) {
  std::set<std::string> kinds;
  for (const storage::Row& row : rows)
    if (row.value && row.key.starts_with(storage::keys::kRecords))
      if (auto records = storage::decode_records(*row.value))
        for (const core::Record& record : *records) kinds.emplace(core::record_name(record));
  if (!kinds.empty()) return kinds;
  const bool node = std::ranges::any_of(
      rows, [](const auto& row) { return row.key.starts_with(storage::keys::kNodes); });
  return {node ? "a node" : "other rows"};
}

// Splits "NAMESPACE/NAME"; a name alone is in the namespace "default".
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return {"default", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

core::node::PodPlanPtr plan_of(const core::JobObject& object,
                               std::optional<Millis> fence_after_ms) {
  const core::PodTemplate& pod = object.spec.pod;
  const bool restarts = pod.restart_policy == "OnFailure";
  if (pod.containers.size() == 1 && pod.init_containers.empty() && !restarts && !fence_after_ms)
    return nullptr;
  core::node::PodPlan plan;
  plan.init_containers = static_cast<uint16_t>(pod.init_containers.size());
  plan.containers = static_cast<uint16_t>(pod.containers.size());
  plan.restarts = restarts;
  plan.restart_delay_ms = 200;
  plan.fence_after_ms = fence_after_ms;
  return std::make_shared<const core::node::PodPlan>(plan);
}

// The job as if an operator had created it.
core::JobObjectPtr as_operators(const core::JobObject& object) {
  if (!core::owner_of(object.meta.annotations)) return std::make_shared<core::JobObject>(object);
  Json json = Json::parse(object.json);
  json["metadata"]["annotations"][std::string(core::kOwnerRoleKey)] = "operator";
  return api::load_job(json.dump());
}
}  // namespace

struct World::Config : caf::actor_system_config {
  Config() {
    add_message_types<caf::id_block::muster>();
    set("scheduler.policy", caf::atom("testing"));
  }
};

// A disk that can crash the process in the middle of a commit: written, not synced, never answered.
class World::Disk final : public storage::Journal {
 public:
  explicit Disk(World& world) : world_(world) {}
  Status commit(const std::vector<storage::Row>& rows) override {
    if (world_.crash_due_) return Error{Errc::unavailable, "the process is dead", {}};
    ++world_.count.commits;
    if (!world_.calm_ && world_.plan_.failed_syncs > 0 && world_.chance(0.003)) {
      --world_.plan_.failed_syncs;
      ++world_.count.faults;
      const bool wrote = world_.chance(0.5);
      if (wrote) (void)world_.disk_.commit(rows);
      world_.note_crash_point(rows, wrote ? "its sync fails, but it is on disk" : "its sync fails");
      world_.crash_due_ = true;
      return Error{Errc::unavailable, "the disk reports an error", {}};
    }
    if (world_.cut_at_ != 0 && world_.disk_.last_commit() + 1 >= world_.cut_at_) {
      world_.cut_at_ = 0;
      world_.disk_.set_manual_sync(true);
      (void)world_.disk_.commit(rows);
      const bool wrote = world_.chance(0.5);
      world_.disk_.crash(wrote ? 1 : 0);
      world_.disk_.set_manual_sync(false);
      world_.note_crash_point(rows, wrote ? "after its sync, unanswered" : "before its sync");
      world_.crash_due_ = true;
      return Error{Errc::unavailable, "power is gone", {}};
    }
    world_.last_rows_ = rows;
    if (world_.plan_.store) {
      if (Status stored = world_.plan_.store->commit(rows); !stored) {
        world_.crash_due_ = true;
        return stored;
      }
    }
    if (!world_.calm_ && world_.planted(Plant::sync_lies, 0.02)) {
      world_.disk_.set_manual_sync(true);
      world_.crash_soon();
    }
    if (rows.size() > 1 && world_.planted(Plant::row_lost, 0.02)) {
      std::vector<storage::Row> torn = rows;
      torn.erase(torn.begin() + static_cast<ptrdiff_t>(world_.below(torn.size())));
      return world_.disk_.commit(torn);
    }
    return world_.disk_.commit(rows);
  }
  Status go_on_at(uint64_t commit) override { return world_.disk_.go_on_at(commit); }
  uint64_t last_commit() const override { return world_.disk_.last_commit(); }
  Result<std::optional<std::string>> get(std::string_view key) override {
    return world_.disk_.get(key);
  }
  Status walk(std::string_view prefix, std::string_view from, const Walk& visit) override {
    return world_.disk_.walk(prefix, from, visit);
  }
  std::unique_ptr<storage::Rows> frozen() override { return world_.disk_.frozen(); }

 private:
  World& world_;
};

struct World::Coordinator {
  explicit Coordinator(World& world)
      : disk(world),
        system(config),
        scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())) {}
  Config config;
  Disk disk;
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  actors::journal_actor journal;
  actors::cluster_actor cluster;
  actors::registry_actor registry;
  actors::kept_actor kept;
  std::map<NodeId, uint32_t> agent_of;  // agents whose link is up
  uint64_t epoch = 0;
  std::vector<caf::actor> leaked;  // Plant::actor_leaked
};

struct World::Process {
  Millis started_ms = 0;
  bool killing = false;
  bool fenced = false;  // its keeper ended it for lack of contact
  core::node::StartOrder order;
};

struct World::Agent {
  uint32_t number = 0;
  std::string name, dir_id;
  std::unique_ptr<core::node::Node> node;         // dies with the agent process
  std::map<PodId, core::node::PodPlanPtr> plans;  // in the work-dir
  // The keeper's state, which survives the agent.
  uint64_t keeper = 1;                       // numbers the keepers of this node
  bool queues = false;                       // the keeper starts queued orders by itself
  uint32_t room = 0;                         // for how many of those at once
  std::deque<core::node::StartOrder> queue;  // waiting
  std::set<ProcessKey> placed;               // from the queue, starting or running
  std::map<ProcessKey, core::node::StartOrder> ordered;  // being started
  std::map<ProcessKey, Process> processes;
  std::map<uint64_t, core::node::ProcessEnd> spool;  // by entry
  uint64_t last_entry = 0;
  Millis contact_at = 0;    // the latest that the keeper knows of
  uint64_t disk = 1;        // numbers the disks of this node, to tell starts apart
  uint64_t connection = 0;  // number of the current one; 0: none
  bool registered = false;
  NodeId id = kNoNode;
  Millis frozen_until_ms = 0;
  Millis cut_until_ms = 0;
  Millis heard_at = 0;  // when the coordinator last got a heartbeat
  Millis trouble_until_ms = 0;
  Millis broken_until_ms = 0;          // nothing starts there until then
  std::optional<Millis> ends_at_ms{};  // when the node ends (--until)
  uint64_t boots = 1;
  std::string cluster;
  uint64_t commit = 0;  // the highest one it has seen; kept in its work-dir
  // An older copy of its disk.
  struct Backup {
    std::string cluster;
    uint64_t commit = 0;
    core::node::Term term;
    std::map<PodId, core::node::PodPlanPtr> plans;
    std::map<uint64_t, core::node::ProcessEnd> spool;
  };
  std::optional<Backup> backup;
  // FIFO in each direction.
  Millis last_to_agent_ms = 0, last_to_coordinator_ms = 0;

  bool queued(ProcessKey key) const {
    return std::ranges::any_of(queue, [key](const auto& one) { return key_of(one) == key; });
  }
  bool in_spool(ProcessKey key) const {
    return std::ranges::any_of(spool, [key](const auto& one) {
      return ProcessKey{one.second.pod, one.second.step} == key;
    });
  }
  std::vector<core::node::ProcessEnd> spooled() const {
    std::vector<core::node::ProcessEnd> ends;
    for (const auto& [entry, end] : spool) ends.push_back(end);
    return ends;
  }
  static ProcessKey key_of(const core::node::StartOrder& order) { return {order.pod, order.step}; }
  size_t pods_running() const {
    std::set<PodId> pods;
    for (const auto& [key, process] : processes) pods.insert(key.first);
    return pods.size();
  }
};

class World::Link final : public actors::AgentLink {
 public:
  explicit Link(World& world) : world_(world) {}
  void launch(NodeId node, uint64_t link, std::vector<PodId> pods,
              core::JobObjectPtr object) override {
    auto up = world_.coordinator_->agent_of.find(node);
    if (up == world_.coordinator_->agent_of.end() || world_.agents_[up->second]->connection != link)
      return;
    core::node::Term term{world_.coordinator_->epoch, world_.coordinator_->epoch};
    auto fence_after_ms = core::read_annotations(object->meta.annotations).fence_after_ms;
    if (world_.planted(Plant::fence_unawaited)) fence_after_ms = kFenceMs;
    const core::node::PodPlanPtr plan = plan_of(*object, fence_after_ms);
    for (PodId pod : pods) {
      world_.trace("launch " + to_string(pod) + " on n" + std::to_string(node));
      world_.launched_on_[pod] = node;
      if (world_.planted(Plant::launch_lost, 0.05)) continue;
      auto begin = [this, term, pod, plan](Agent& agent) {
        agent.plans[pod] = plan;
        agent.node->launch(term, {{pod, kPodGraceMs, plan}}, world_.boot_ms_);
      };
      world_.to_agent(node, begin);
      if (world_.planted(Plant::launched_elsewhere, 0.1))
        for (const auto& [other, agent] : world_.coordinator_->agent_of)
          if (other != node) world_.to_agent(other, begin);
    }
  }
  void kill(NodeId node, PodId pod, Millis grace_ms) override {
    if (!world_.calm_ && world_.index_deaths_left_ > 0 && world_.chance(0.1)) {
      --world_.index_deaths_left_;
      throw std::runtime_error("planted in an index actor");
    }
    if (world_.planted(Plant::kill_lost)) return;
    core::node::Term term{world_.coordinator_->epoch, world_.coordinator_->epoch};
    world_.to_agent(node, [this, term, pod, grace_ms](Agent& agent) {
      agent.node->kill(term, {{pod, grace_ms}}, world_.boot_ms_);
    });
  }
  void limit(NodeId node, PodId pod, std::optional<Millis> limit_ms) override {
    core::node::Term term{world_.coordinator_->epoch, world_.coordinator_->epoch};
    world_.to_agent(node, [this, term, pod, limit_ms](Agent& agent) {
      agent.node->limit(term, {{pod, limit_ms}}, world_.boot_ms_);
    });
  }
  void ask(NodeId node, JobId job, uint64_t question) override {
    world_.to_agent(node, [this, node, job, question](Agent& agent) {
      actors::JobHears hears{job, {node, question, {}}};
      for (PodId pod : agent.node->ended())
        if (pod.job == job) hears.heard.ended.insert(pod.key());
      const Millis answered = world_.boot_ms_;
      world_.to_coordinator(agent.number, [this, node, job, answered, hears = std::move(hears)] {
        world_.answered_at_[{node, job}] = answered;
        caf::anon_send(world_.coordinator_->registry, hears);
      });
    });
  }
  void drop(NodeId node) override {
    const bool known = !world_.lost.insert(node).second;
    auto it = world_.coordinator_->agent_of.find(node);
    if (it == world_.coordinator_->agent_of.end()) return;
    uint32_t agent = it->second;
    // One that has never been welcomed as this node, because its work-dir became an older one in
    // between, has become another.
    const Agent& there = *world_.agents_[agent];
    if (!known && there.id == node && world_.boot_ms_ - there.heard_at < kGraceMs / 2)
      world_.broken.push_back("declared lost although it responded: " + there.name);
    world_.at(0, [this, agent] { world_.break_link(agent); });
  }

 private:
  World& world_;
};

World::World(Plan plan)
    : plan_(plan),
      rules_([this](JobId id) { return shown(id); }, plan.user_pods_max),
      random_(plan.seed),
      link_(std::make_unique<Link>(*this)),
      index_deaths_left_(plan.index_deaths) {
  for (uint32_t i = 0; i < plan.agents; ++i) {
    auto agent = std::make_unique<Agent>();
    agent->number = i;
    agent->name = "node-" + std::to_string(i);
    agent->dir_id = "dir-" + std::to_string(i);
    agent->node = std::make_unique<core::node::Node>(plan.slots, core::node::Term{}, 2);
    agent->queues = chance(0.7);
    agent->node->executor_queues(agent->queues);
    agents_.push_back(std::move(agent));
  }
  boot();
  for (uint32_t i = 0; i < plan.agents; ++i) {
    connect(i);
    beat(i);
  }
}

World::~World() {
  crash(false);
}

// Prints events that mention MUSTER_SIM_TRACE (such as "j1/26#0") to stderr.
void World::trace(const std::string& what) {
  static const char* wanted = std::getenv("MUSTER_SIM_TRACE");
  if (wanted && (what.find(wanted) != std::string::npos || what.starts_with('!')))
    std::fprintf(stderr, "%lld %s\n", static_cast<long long>(boot_ms_), what.c_str());
}

void World::trace_commit(const core::Committed& batch) {
  if (std::getenv("MUSTER_SIM_TRACE") == nullptr) return;
  for (const auto& job : batch.jobs) {
    std::string names;
    for (const core::Record& record : job->records)
      names += " " + std::string(core::record_name(record));
    trace("commit " + std::to_string(batch.commit) + " of j" + std::to_string(job->job) +
          "/:" + names);
  }
  for (const core::NodeInfo& node : batch.nodes)
    trace("commit " + std::to_string(batch.commit) + " of n" + std::to_string(node.id) +
          (node.gone ? ": it is gone" : ": it is there"));
}

void World::at(Millis after_ms, std::function<void()> what) {
  later_.emplace(boot_ms_ + after_ms, std::move(what));
}

bool World::planted(Plant plant, double p) {
  return plan_.plant == plant && chance(p);
}

// Reveals plants that only show after a crash.
void World::crash_soon() {
  if (calm_) return;
  at(static_cast<Millis>(below(20)), [this, life = life_] {
    if (life == life_ && !calm_) crash_due_ = true;
  });
}

void World::note_crash_point(const std::vector<storage::Row>& rows, const char* step) {
  for (const std::string& kind : kinds_of(rows)) ++count.points[kind + ", " + step];
}

void World::boot() {
  ++life_;
  crash_due_ = false;
  if (plan_.store) {
    const Store::Held held = plan_.store->start();
    disk_ = {};
    if (!held.rows.empty()) {
      MUSTER_CHECK(disk_.go_on_at(held.commit).ok());
      MUSTER_CHECK(disk_.commit(held.rows).ok());
    }
  }
  coordinator_ = std::make_unique<Coordinator>(*this);
  Coordinator& c = *coordinator_;
  auto load = [](std::string_view json) { return api::load_job(json); };
  view_ = std::make_unique<api::View>();
  view_->load_with(
      [&disk = c.disk, load](JobId id) -> Result<core::Job> {
        auto job = storage::recover_job(disk, id, load);
        if (job.ok()) return std::move(job->job);
        MUSTER_CHECK(job.error().code == Errc::not_found, job.error().message);
        return job.error();
      },
      plan_.recent_max);
  view_->brief_with([&disk = c.disk](JobId id) { return storage::brief_job(disk, id); });
  std::vector<core::JobSummary> unloaded;
  auto recovered = storage::recover(c.disk, load, [&](core::JobSummary job) {
    view_->add_unloaded(job);
    unloaded.push_back(std::move(job));
  });
  MUSTER_CHECK(recovered.ok(), recovered.error().message);
  // A node is lost if its loss had reached the disk; an older copy of the disk does not count.
  for (const core::NodeInfo& node : recovered->nodes) {
    if (on_old_disk_) break;
    if (node.gone)
      lost.insert(node.id);
    else if (!deleted_.contains(node.id))
      lost.erase(node.id);
  }
  const bool held =
      std::ranges::any_of(recovered->nodes, [](const auto& node) { return !node.gone; });
  MUSTER_CHECK(recovered->damaged.empty(), recovered->damaged.front().why);
  MUSTER_CHECK(recovered->summary_rows.empty(),
               "an unloaded job without a summary row, or the reverse");
  c.epoch = recovered->epoch + 1;
  recovered->line.add({c.epoch, c.epoch, disk_.last_commit() + 1});
  MUSTER_CHECK(recovered->line.broken().empty(), recovered->line.broken());
  const std::vector<storage::Row> epoch = {storage::cluster_row("sim"),
                                           storage::epoch_row(c.epoch, c.epoch),
                                           storage::line_row(recovered->line.last())};
  if (plan_.store && !plan_.store->commit(epoch)) return boot();
  MUSTER_CHECK(disk_.commit(epoch).ok());
  if (planted(Plant::override_lost))
    for (storage::RecoveredJob& one : recovered->jobs)
      if (one.job.state().overrides) one.job.apply(core::OverridesSet{now_ms_, {}, "nobody"});
  if (!recovered->jobs.empty() && planted(Plant::job_not_recovered, 0.2))
    recovered->jobs.erase(recovered->jobs.begin() +
                          static_cast<ptrdiff_t>(below(recovered->jobs.size())));
  actors::HeldAtStart slots = actors::held_slots(*recovered);
  for (const storage::RecoveredJob& r : recovered->jobs) {
    if (!r.job.state().forgotten) view_->add(r.job);
  }
  if (plan_.site && !on_old_disk_) rules_.restarted(recovered->nodes, recovered->kept);
  for (const core::Kept& one : recovered->kept) view_->add_kept(one);
  view_->start_at(disk_.last_commit(), recovered->nodes);
  WallClock clock = [this] { return now_ms_; };
  c.journal = actors::spawn_journal(c.system, c.disk,
                                    {.show =
                                         [this](core::Committed batch) {
                                           trace_commit(batch);
                                           view_->commit(batch);
                                           check_shown();
                                           if (plan_.site) check_site(batch);
                                         },
                                     .failed = [](const std::string&) {},
                                     .held = held});
  actors::ClusterOptions options;
  options.settings.cluster_id = "sim";
  options.settings.cluster_key = "key";
  options.settings.line = recovered->line;
  options.settings.node_grace_ms = kGraceMs;
  options.settings.slots.user_pods_max = plan_.user_pods_max;
  options.settings.noted = recovered->uses;
  options.settings.started_ms = now_ms_;
  options.settings.await_queues = plan_.site && view_->stored(core::KeptKind::queue).count > 0;
  options.last_commit = [this] { return disk_.last_commit(); };
  options.show = [this](const core::NodeHealth& health) { view_->health(health); };
  options.outdated = [this](const std::string& why) {
    if (!on_old_disk_) broken.push_back("outdated: " + why);
    crash_due_ = true;
  };
  // As in coordinator.cpp: nothing is written before the nodes have had time to contradict.
  auto begin = [this, life = life_] {
    if (life == life_ && !crash_due_) begin_serving();
  };
  options.all_here = [this, begin] { at(0, begin); };
  if (held) at(kGraceMs / 2, begin);
  auto next_job = std::make_shared<std::atomic<JobId>>(0);
  options.next_job = next_job;
  if (life_ > 1 && planted(Plant::holdings_forgotten)) slots.slots.clear();
  WallClock late = [this] { return now_ms_ - kHourMs; };
  c.cluster = actors::spawn_cluster(
      c.system, c.journal, [&c] { return c.registry; }, actors::SealedLink(*link_),
      plan_.plant == Plant::clock_late ? late : clock, options, recovered->nodes,
      std::move(slots.slots));
  if (plan_.site) {
    c.kept = actors::spawn_kept(c.system, c.journal, clock, recovered->kept);
    tell_queues();
  }
  actors::RegistryOptions registry;
  registry.clock = clock;
  registry.elapsed = [this] {
    return plan_.plant == Plant::backoff_skipped ? 10 * boot_ms_ : boot_ms_;
  };
  registry.knobs = {200, 1'000};
  registry.load_job = [&c, load](JobId id) {
    auto job = storage::recover_job(c.disk, id, load);
    MUSTER_CHECK(job.ok(), job.error().message);
    return job;
  };
  registry.next_job = next_job;
  registry.tail_bytes_min = 600;  // so that some snapshots are taken
  c.registry = actors::spawn_registry(c.system, c.journal, c.cluster, actors::SealedLink(*link_),
                                      {std::move(recovered->jobs),
                                       {},
                                       std::move(unloaded),
                                       std::move(slots.lost),
                                       std::max<JobId>(1, recovered->next_job_id)},
                                      std::move(registry));
  if (plan_.mid_commit > 0 && !calm_) {
    --plan_.mid_commit;
    cut_at_ = disk_.last_commit() + 2 + below(60);
  }
  if (on_old_disk_) return;
  check_shown();
  check_accepted();
}

void World::begin_serving() {
  if (on_old_disk_) {
    broken.push_back("an older copy of the data-dir was served");
    crash_due_ = true;
    return;
  }
  caf::anon_send(coordinator_->journal, actors::begin_atom_v);
}

void World::check_accepted() {
  for (const std::string& name : accepted_)
    if (!shown(name)) broken.push_back("accepted and lost: " + name);
}

void World::crash(bool again) {
  trace("! crash");
  ++count.crashes;
  ++life_;
  crash_due_ = true;  // from here on nothing is written or shown
  Coordinator& c = *coordinator_;
  caf::anon_send(c.registry, actors::stop_atom_v);
  caf::anon_send(c.cluster, actors::stop_atom_v);
  if (c.kept) caf::anon_send(c.kept, actors::stop_atom_v);
  caf::anon_send(c.journal, actors::stop_atom_v);
  c.registry = actors::registry_actor{};
  c.cluster = actors::cluster_actor{};
  c.kept = actors::kept_actor{};
  c.journal = actors::journal_actor{};
  while (c.scheduler.run() > 0) {
  }
  for (auto& agent : agents_) break_link(agent->number);
  coordinator_.reset();
  // A disk that lies loses what it had not synced.
  disk_.crash(0);
  disk_.set_manual_sync(false);
  if (on_old_disk_) {
    disk_ = std::move(*newest_);
    newest_.reset();
    on_old_disk_ = false;
  }
  if (again) boot();
}

void World::check_shown() {
  view_->each(
      api::Kind::job, "", [](const core::Job&) { return true; },
      [this](const api::Shown& shown) {
        const core::Job& job = *shown.job;
        names_[job.id()] = {job.object().meta.ns, job.object().meta.name};
        Counts& seen = shown_[job.id()];
        if (std::string rule = core::broken_rule(job); !rule.empty()) broken.push_back(rule);
        if (job.state().failed < seen.failed)
          broken.push_back("failed went back: j" + std::to_string(job.id()) + " " +
                           job.object().meta.name + " " + std::to_string(seen.failed) + " to " +
                           std::to_string(job.state().failed));
        if (job.succeeded() < seen.succeeded && !may_scale) broken.push_back("succeeded went back");
        seen.failed = job.state().failed;
        seen.succeeded = job.succeeded();
        if (job.ready() > job.active()) broken.push_back("ready > active");
        std::set<std::string> now;
        for (const core::Condition& condition : job.state().conditions)
          now.insert(std::string(core::name(condition.type)));
        for (const std::string& old : seen.conditions)
          if (!now.contains(old)) broken.push_back("condition " + old + " went away");
        if (now.contains("Complete") && now.contains("Failed"))
          broken.push_back("Complete and Failed");
        if (job.finished() && (job.active() || job.terminating()))
          broken.push_back("finished with active or terminating pods");
        seen.conditions = std::move(now);
        const std::string name = job.object().meta.ns + "/" + job.object().meta.name;
        if (job.finished() && with_ttl_.contains(name)) {
          accepted_.erase(name);
          removed_.insert(name);
        }
        std::map<uint32_t, int> live;
        for (const auto& [key, pod] : job.state().open)
          if (pod.active() && job.indexed() && ++live[key.index] > 1)
            broken.push_back("two active pods of an index");
        // A pod counted as failed before its end was reported must not have exited with 0 before
        // its node last answered.
        for (const auto& [key, pod] : job.state().open) {
          PodId id{job.id(), key.index, key.attempt};
          if (pod.counted != core::Counted::failed || !judged_.insert(id).second) continue;
          auto ended = ended_ok_at_.find(id);
          if (ended == ended_ok_at_.end()) continue;
          auto answered = answered_at_.find({pod.node, job.id()});
          if (answered == answered_at_.end() || answered->second > ended->second)
            broken.push_back("ended with 0 and counted as killed: " + to_string(id));
        }
      });
}

void World::submit(core::JobObjectPtr object) {
  auto answered = std::make_shared<bool>(false);
  for (int tries = 0; !*answered && tries < 1000; ++tries) {
    uint64_t life = life_;
    caf::anon_send(coordinator_->registry,
                   actors::CreateJob{object, [answered](Status s) {
                                       if (s.ok() || s.error().code == Errc::exists)
                                         *answered = true;
                                     }});
    for (int i = 0; i < 10'000 && !*answered && life == life_; ++i) step();
  }
  MUSTER_CHECK(*answered);
}

void World::create(core::JobObjectPtr object, std::function<void(muster::Status)> done) {
  const std::string name = object->meta.ns + "/" + object->meta.name;
  auto hear = [this, life = life_, name, done = std::move(done)](muster::Status status) {
    if (life != life_ || crash_due_) return;
    if ((status.ok() || status.error().code == Errc::exists) && !removed_.contains(name))
      accepted_.insert(name);
    done(std::move(status));
  };
  if (object->spec.ttl_s) with_ttl_.insert(name);
  rules_.sent(object);
  if (planted(Plant::drain_tolerated)) object = as_operators(*object);
  if (planted(Plant::created_early, 0.3)) return hear(Nothing{});
  if (planted(Plant::actor_leaked))
    coordinator_->leaked.push_back(coordinator_->system.spawn(
        [](caf::event_based_actor*) -> caf::behavior { return {[](actors::stop_atom) {}}; }));
  caf::anon_send(coordinator_->registry, actors::CreateJob{std::move(object), std::move(hear)});
}

void World::ask(const std::string& name, core::Event event,
                std::function<void(muster::Status)> done) {
  if (planted(Plant::changed_early, 0.3)) {
    if (done) done(Nothing{});
    return;
  }
  const auto [ns, plain] = parts_of(name);
  auto hear = [this, life = life_, done = std::move(done)](muster::Status status) {
    if (life == life_ && done) done(std::move(status));
  };
  caf::anon_send(coordinator_->registry,
                 actors::AskJob{ns, plain, "", 0, std::move(event), std::move(hear)});
}

void World::store(core::KeptPtr old, core::KeptPtr next, std::function<void(muster::Status)> done) {
  auto hear = [this, life = life_, done = std::move(done)](muster::Status status) {
    if (life == life_ && done) done(std::move(status));
  };
  caf::anon_send(coordinator_->kept,
                 actors::WriteKept{std::move(old), std::move(next), std::move(hear), {}});
}

core::KeptPtr World::stored(core::KeptKind kind, const std::string& name) const {
  const auto shown = view_->kept(kind, "", name);
  return shown ? shown->kept->kept : nullptr;
}

void World::check_site(const core::Committed& batch) {
  rules_.committed({boot_ms_, now_ms_}, batch, *view_);
  for (std::string& rule : rules_.take_broken()) broken.push_back(std::move(rule));
  if (!batch.kept.empty()) tell_queues();
}

// As api/request/queues.cpp does, a little later.
void World::tell_queues() {
  at(static_cast<Millis>(below(20)), [this, life = life_] {
    if (life != life_) return;
    actors::QueuesChanged now;
    view_->each_kept(core::KeptKind::queue, "", [&](const api::Shown& shown) {
      now.queues.push_back(api::queue_of(Json::parse(shown.kept->kept->json), {}));
    });
    view_->each_kept(core::KeptKind::priority_class, "", [&](const api::Shown& shown) {
      const core::Kept& kept = *shown.kept->kept;
      now.classes[kept.name] = api::priority_class_of(Json::parse(kept.json));
    });
    for (core::Queue& queue : now.queues) {
      if (plan_.plant == Plant::selector_kept)
        queue.node_selector =
            first_selectors_.emplace(queue.name, queue.node_selector).first->second;
      if (plan_.plant == Plant::preempts_all) queue.preempts.reset();
      if (plan_.plant == Plant::time_max_unread) queue.time_max_s.reset();
      if (life_ > 1 && plan_.plant == Plant::limits_unrecovered) queue.total = queue.per_user = {};
    }
    caf::anon_send(coordinator_->cluster, std::move(now));
  });
}

void World::remove(const std::string& name, bool background, bool orphan,
                   std::function<void(muster::Status)> done) {
  const auto [ns, plain] = parts_of(name);
  accepted_.erase(ns + "/" + plain);
  removed_.insert(ns + "/" + plain);
  auto hear = [this, life = life_, done = std::move(done)](muster::Status status) {
    if (life == life_ && done) done(std::move(status));
  };
  caf::anon_send(coordinator_->registry,
                 actors::DeleteJob{ns, plain, "", background, orphan, std::move(hear)});
}

const core::Job* World::shown(const std::string& name) const {
  const auto [ns, plain] = parts_of(name);
  auto shown = view_->job(ns, plain);
  return shown ? shown->job : nullptr;
}

const core::Job* World::shown(JobId id) const {
  const auto name = names_.find(id);
  if (name == names_.end()) return nullptr;
  auto shown = view_->job(name->second.first, name->second.second);
  return shown && shown->job->id() == id ? shown->job : nullptr;
}

bool World::quiet() const {
  return std::ranges::all_of(agents_, [](const auto& agent) {
    return agent->processes.empty() && agent->ordered.empty() && agent->queue.empty() &&
           agent->spool.empty() && agent->node->empty();
  });
}

std::vector<core::Pod> World::attempts(JobId id) {
  auto page =
      storage::read_attempts(disk_, id, {}, SIZE_MAX, [](const core::Pod&) { return true; });
  MUSTER_CHECK(page.ok(), page.error().message);
  std::vector<core::Pod> all = std::move(page->attempts);
  while (page->next) {
    page = storage::read_attempts(disk_, id, *page->next, SIZE_MAX,
                                  [](const core::Pod&) { return true; });
    MUSTER_CHECK(page.ok(), page.error().message);
    all.insert(all.end(), page->attempts.begin(), page->attempts.end());
  }
  return all;
}

// A job has its own rows or, once it has ended or is being deleted, an entry in the history.
std::string World::missing(JobId id) {
  const bool exists = disk_.get(storage::keys::owner(id))->has_value();
  const auto entry = storage::read_history(disk_, id);
  const std::string name = "j" + std::to_string(id);
  if (!exists && !entry.ok()) return name + " is gone without an entry in the history";
  if (!exists && entry->removal == core::Removal::none)
    return name + " is gone, and its entry in the history does not say so";
  return "";
}

std::vector<std::string> World::verify() {
  auto load = [](std::string_view json) { return api::load_job(json); };
  std::vector<std::string> wrong = storage::verify(disk_, load).mismatches;
  for (const auto& [id, name] : names_)
    if (std::string why = missing(id); !why.empty()) wrong.push_back(std::move(why));
  for (const auto& [id, name] : names_) {
    const core::Job* job = shown(id);
    if (!job || job->can_unload()) continue;
    auto folded = storage::recover_job(disk_, id, load);
    if (!folded.ok())
      wrong.push_back(folded.error().message);
    else if (!(folded->job.state() == job->state()))
      wrong.push_back("j" + std::to_string(id) + " is shown differently from its records");
  }
  return wrong;
}

size_t World::actors() const {
  return coordinator_->system.registry().running();
}

std::string World::picture(const std::string& name) const {
  std::string text = "no such job";
  if (const core::Job* job = shown(name)) {
    const core::JobState& state = job->state();
    text = "generation " + std::to_string(state.generation);
    if (job->spec().suspend.value_or(false)) text += ", to be suspended";
    if (state.deleted_at) text += ", deleted";
    for (const core::Condition& condition : state.conditions)
      text += ", " + std::string(core::name(condition.type));
    text += ", parallelism " + std::to_string(state.parallelism) + ", succeeded " +
            std::to_string(job->succeeded()) + ", failed " + std::to_string(state.failed) +
            ", deferred " + std::to_string(state.deferred.size());
    for (const auto& [key, pod] : state.open)
      text += "\n  open " + to_string(key) + " n" + std::to_string(pod.node) +
              (pod.started_at ? " started" : "") + (pod.stopping_at ? " stopping" : "");
  }
  for (const auto& agent : agents_) {
    text += "\n  " + agent->name + " n" + std::to_string(agent->id) + " link " +
            std::to_string(agent->connection) + (agent->registered ? " registered" : "") +
            " unacked " + std::to_string(agent->node->unacked()) + " processes " +
            std::to_string(agent->processes.size()) + " spool " +
            std::to_string(agent->spool.size()) + " ordered " +
            std::to_string(agent->ordered.size()) + " queued " +
            std::to_string(agent->queue.size()) + " runs";
    for (PodId pod : agent->node->running()) text += " " + to_string(pod);
    text += " waits";
    for (PodId pod : agent->node->waiting()) text += " " + to_string(pod);
  }
  return text + "\n  boot " + std::to_string(boot_ms_) + " events " + std::to_string(later_.size());
}

// ---- the network

core::PodsReported::Ended World::reported(const core::node::PodEnded& end) const {
  auto age = [this](BootInstant at) { return age_at(boot_ms_, at); };
  core::PodsReported::Ended to{core::with_times<Age>(end, age), end.pod.key(), {}, 0};
  if (to.cause == core::EndCause::keeper_lost && plan_.plant == Plant::node_charged)
    to.cause = core::EndCause::exited;
  if (to.exit_code == core::kExitNotHere && plan_.plant == Plant::start_charged) {
    to.exit_code = kExitCannotStart;
    to.message = "exec true: Permission denied";
    for (auto& one : to.containers)
      if (one.exit_code == core::kExitNotHere) one.exit_code = kExitCannotStart;
  }
  if (end.start) to.start = {end.start->pid, age(end.start->at)};
  to.restarts = end.restarts;
  for (const auto& run : end.runs) to.runs.push_back(core::with_times<Age>(run, age));
  return to;
}

void World::connect(uint32_t number) {
  Agent& agent = *agents_[number];
  static uint64_t connections = 0;
  agent.connection = ++connections;
  agent.registered = false;
  actors::RegisterAgent ask;
  ask.hello.link = agent.connection;
  ask.hello.node = agent.name;
  ask.hello.work_dir_id = agent.dir_id;
  ask.hello.secret = "secret of " + agent.dir_id;
  ask.hello.boot_id = "boot " + std::to_string(agent.boots);
  ask.hello.cluster_id = agent.cluster;
  if (!agent.cluster.empty()) ask.hello.cluster_key = "key";
  ask.hello.highest_epoch = agent.node->term().epoch;
  ask.hello.epoch_nonce = agent.node->term().nonce;
  ask.hello.highest_commit = agent.commit;
  if (plan_.plant == Plant::old_disk_unseen) {
    ask.hello.highest_epoch = ask.hello.epoch_nonce = ask.hello.highest_commit = 0;
    ask.hello.cluster_key.clear();
  }
  ask.hello.slots = plan_.slots;
  if (plan_.slots > 1 && planted(Plant::slots_forgotten)) --ask.hello.slots;
  if (plan_.site) {
    ask.hello.cpu_millis = 1000 * plan_.slots;
    ask.hello.labels = {{"pool", number % 2 == 0 ? "a" : "b"}};
  }
  if (agent.ends_at_ms && plan_.plant != Plant::end_unsaid)
    ask.hello.lives_ms = *agent.ends_at_ms - boot_ms_;
  rules_.node_ends(agent.name, agent.ends_at_ms
                                   ? std::optional(now_ms_ + *agent.ends_at_ms - boot_ms_)
                                   : std::nullopt);
  ask.hello.running = agent.node->running();
  if (!ask.hello.running.empty() && planted(Plant::running_unsaid, 0.5))
    ask.hello.running.pop_back();
  if (planted(Plant::running_invented))
    for (const auto& [id, name] : names_)
      if (const core::Job* job = shown(id))
        for (const auto& [key, pod] : job->state().open)
          if (pod.node == agent.id && pod.to_launch() &&
              !agent.node->knows({id, key.index, key.attempt}))
            ask.hello.running.push_back({id, key.index, key.attempt});
  ask.hello.waiting = agent.node->waiting();
  ask.hello.ended = agent.node->ended();
  for (const auto& end : agent.node->ends(core::node::kHelloEndsMax))
    ask.hello.ends[end.pod.job].ends.push_back(reported(end));
  Millis sent = boot_ms_;
  uint64_t life = life_, connection = agent.connection;
  ask.done = [this, number, life, connection, sent](actors::HelloAnswer answer) {
    Agent& to = *agents_[number];
    to.last_to_agent_ms = std::max(to.last_to_agent_ms, boot_ms_ + static_cast<Millis>(below(20)));
    later_.emplace(to.last_to_agent_ms, [this, number, life, connection, sent, answer] {
      Agent& a = *agents_[number];
      if (life != life_ || a.connection != connection) return;
      if (answer.kind != actors::HelloAnswer::Kind::welcome) return break_link(number);
      a.registered = true;
      a.id = answer.node;
      a.cluster = "sim";
      a.heard_at = boot_ms_;
      core::node::Welcome welcome{
          {coordinator_->epoch, coordinator_->epoch}, answer.end, kGraceMs / 2};
      if (planted(Plant::end_list_lost)) welcome.end.clear();
      if (planted(Plant::lease_endless)) welcome.lease_ms = 1'000'000;
      a.node->registered(welcome, sent);
      pump(number);
    });
    if (life != life_ || answer.kind != actors::HelloAnswer::Kind::welcome) return;
    at(0, [this, number, life, connection, node = answer.node] {
      if (life != life_ || agents_[number]->connection != connection) return;
      coordinator_->agent_of[node] = number;
      caf::anon_send(coordinator_->cluster, actors::LinkUp{node, connection});
    });
  };
  to_coordinator(number, [this, ask] { caf::anon_send(coordinator_->cluster, ask); });
}

void World::to_agent(NodeId node, std::function<void(Agent&)> what) {
  auto it = coordinator_->agent_of.find(node);
  if (it == coordinator_->agent_of.end()) return;
  Agent& agent = *agents_[it->second];
  uint64_t connection = agent.connection;
  agent.last_to_agent_ms =
      std::max(agent.last_to_agent_ms, boot_ms_ + static_cast<Millis>(below(15)));
  later_.emplace(agent.last_to_agent_ms, [this, number = agent.number, connection, what] {
    Agent& a = *agents_[number];
    if (a.connection != connection || !a.registered) return;
    what(a);
    pump(number);
  });
}

void World::to_coordinator(uint32_t number, std::function<void()> what) {
  Agent& agent = *agents_[number];
  uint64_t life = life_, connection = agent.connection;
  agent.last_to_coordinator_ms =
      std::max(agent.last_to_coordinator_ms, boot_ms_ + static_cast<Millis>(below(15)));
  later_.emplace(agent.last_to_coordinator_ms, [this, number, life, connection, what] {
    if (life == life_ && agents_[number]->connection == connection) what();
  });
}

void World::break_link(uint32_t number) {
  Agent& agent = *agents_[number];
  if (agent.connection == 0) return;
  if (coordinator_ && coordinator_->registry && agent.id != kNoNode) {
    caf::anon_send(coordinator_->cluster, actors::LinkDown{agent.id, agent.connection});
    coordinator_->agent_of.erase(agent.id);
  }
  trace("! link of " + agent.name + " breaks");
  agent.connection = 0;
  agent.registered = false;
  agent.node->disconnected();
  reconnect(number, 10 + static_cast<Millis>(below(300)));
}

void World::reconnect(uint32_t number, Millis after_ms) {
  at(after_ms, [this, number] {
    const Agent& agent = *agents_[number];
    if (agent.connection != 0 || !coordinator_) return;
    if (boot_ms_ < agent.cut_until_ms) return reconnect(number, agent.cut_until_ms - boot_ms_);
    connect(number);
  });
}

void World::beat(uint32_t number) {
  at(kBeatMs, [this, number] { beat(number); });
  Agent& agent = *agents_[number];
  if (!agent.registered || boot_ms_ < agent.frozen_until_ms) return;
  uint64_t connection = agent.connection;
  to_coordinator(number, [this, number, connection, sent = boot_ms_] {
    Agent& a = *agents_[number];
    a.heard_at = boot_ms_;
    actors::Heartbeat beat{a.id, connection};
    beat.started = a.node->started();
    if (boot_ms_ < a.trouble_until_ms) beat.trouble = {"DiskPressure", "its disk is full"};
    caf::anon_send(coordinator_->cluster, beat);
    to_agent(a.id, [this, sent, commit = disk_.last_commit()](Agent& to) {
      to.commit = std::max(to.commit, commit);
      to.node->heartbeat_answered({coordinator_->epoch, coordinator_->epoch}, sent);
    });
  });
}

// Executes the orders of the agent's node.
void World::pump(uint32_t number) {
  Agent& agent = *agents_[number];
  if (boot_ms_ < agent.frozen_until_ms) return;
  core::node::Orders orders = agent.node->next(boot_ms_);
  for (const auto& kill : orders.kills) {
    const ProcessKey key{kill.pod, kill.step};
    drop_queued(number, kill.pod);
    auto it = agent.processes.find(key);
    if (it == agent.processes.end() || it->second.killing) continue;
    it->second.killing = true;
    at(1 + static_cast<Millis>(below(50)), [this, number, key] { process_ends(number, key, 143); });
  }
  if (orders.contact_at) agent.contact_at = std::max(agent.contact_at, *orders.contact_at);
  if (orders.room) agent.room = *orders.room;
  for (PodId pod : orders.withdrawn) drop_queued(number, pod);
  for (const auto& start : orders.starts) {
    const ProcessKey key = Agent::key_of(start);
    // The keeper is idempotent.
    const bool known = agent.processes.contains(key) || agent.in_spool(key) ||
                       agent.ordered.contains(key) || agent.queued(key);
    if (known && !planted(Plant::started_twice)) continue;
    if (start.queued)
      agent.queue.push_back(start);
    else
      begin_start(number, start);
    if (planted(Plant::started_twice, 0.05)) begin_start(number, start);
  }
  fill_room(number);
  if (orders.again_at) at(*orders.again_at - boot_ms_, [this, number] { pump(number); });
  for (uint64_t entry : orders.forget) agent.spool.erase(entry);
  for (const auto& report : orders.reports) {
    for (const auto& end : report.ends)
      trace("report end " + to_string(end.pod) + " cause " +
            std::to_string(static_cast<int>(end.cause)));
    actors::Report out;
    out.node = agent.id;
    for (const auto& start : report.starts) {
      auto& part = out.jobs[start.pod.job];
      part.node = agent.id;
      part.starts.push_back({start.pod.key(), start.pid, start.restarts, age_at(boot_ms_, start.at),
                             start.readiness});
    }
    for (const auto& end : report.ends) {
      // Not if the pod was counted as lost before, while its node was silent.
      if (end.cause == core::EndCause::returned)
        if (const core::Job* job = shown(end.pod.job);
            job && job->state().open.contains(end.pod.key()))
          returned.insert(end.pod);
      auto& part = out.jobs[end.pod.job];
      part.node = agent.id;
      core::PodsReported::Ended to = reported(end);
      if (to.exit_code != 0 && planted(Plant::code_changed, 0.1)) to.exit_code = 0;
      if (planted(Plant::other_index, 0.1))
        for (const auto& [key, process] : agent.processes)
          if (key.first.job == end.pod.job) to.pod = key.first.key();
      part.ends.push_back(std::move(to));
    }
    if (!agent.processes.empty() && planted(Plant::end_invented, 0.02)) {
      const PodId pod = agent.processes.begin()->first.first;
      auto& part = out.jobs[pod.job];
      part.node = agent.id;
      core::PodsReported::Ended to;
      to.pod = pod.key();
      to.start = {kPid, Age{1}};
      part.ends.push_back(std::move(to));
    }
    uint64_t life = life_, connection = agent.connection;
    auto returns = [this, number, life, connection, id = report.id](std::vector<PodId> kept) {
      Agent& to = *agents_[number];
      to.last_to_agent_ms =
          std::max(to.last_to_agent_ms, boot_ms_ + static_cast<Millis>(below(15)));
      later_.emplace(to.last_to_agent_ms, [this, number, life, connection, id, kept] {
        Agent& a = *agents_[number];
        if (life != life_ || a.connection != connection) return;
        trace("! report returned to " + a.name);
        a.node->report_returned(id, kept);
        pump(number);
      });
    };
    out.done = returns;
    const bool repeat = !calm_ && plan_.repeats > 0 && chance(0.1);
    if (repeat) --plan_.repeats, ++count.faults;
    const bool dropped = planted(Plant::report_dropped, 0.05);
    const bool early = planted(Plant::acknowledged_early);
    to_coordinator(number, [this, out, returns, repeat, dropped, early]() mutable {
      if (dropped || early) returns({});
      if (early && chance(0.1)) crash_soon();
      if (dropped) return;
      if (early) out.done = [](std::vector<PodId>) {};
      caf::anon_send(coordinator_->registry, out);
      out.done = [](std::vector<PodId>) {};
      if (repeat) caf::anon_send(coordinator_->registry, out);
    });
  }
}

// ---- processes and the witness

// The keeper: it survives the agent and freezes with the node.
void World::begin_start(uint32_t number, const core::node::StartOrder& order) {
  Agent& agent = *agents_[number];
  agent.ordered[Agent::key_of(order)] = order;
  const uint64_t held_up_ms = chance(0.1) ? kSlowExecutorMs : kExecutorMs;
  at(static_cast<Millis>(below(held_up_ms)),
     [this, number, order, keeper = agent.keeper] { process_starts(number, order, keeper); });
}

void World::fill_room(uint32_t number) {
  Agent& agent = *agents_[number];
  while (!agent.queue.empty() &&
         (agent.placed.size() < agent.room || planted(Plant::queue_overflows))) {
    const core::node::StartOrder order = agent.queue.front();
    agent.queue.pop_front();
    agent.placed.insert(Agent::key_of(order));
    begin_start(number, order);
  }
}

void World::drop_queued(uint32_t number, PodId pod) {
  std::vector<ProcessKey> dropped;
  std::erase_if(agents_[number]->queue, [pod, &dropped](const auto& one) {
    if (one.pod == pod) dropped.push_back(Agent::key_of(one));
    return one.pod == pod;
  });
  for (ProcessKey key : dropped) report_unstarted(number, key);
}

void World::report_unstarted(uint32_t number, ProcessKey key) {
  at(0, [this, number, key] {
    agents_[number]->node->process_ended(
        {.pod = key.first, .step = key.second, .ended_at = boot_ms_, .unstarted = true});
    pump(number);
  });
}

core::node::Origin World::origin_of(const Agent& agent, const core::node::StartOrder& order,
                                    std::optional<Millis> started_at) const {
  core::node::Origin origin;
  if (const auto plan = agent.plans.find(order.pod); plan != agent.plans.end())
    origin.plan = plan->second;
  origin.grace_ms = kPodGraceMs;
  origin.pod_started_at = order.pod_started_at ? order.pod_started_at : started_at;
  origin.level = order.level;
  return origin;
}

// What must hold when a process starts.
void World::check_start(const Agent& agent, ProcessKey key) {
  const PodId pod = key.first;
  const NodeId node = launched_on_[pod];
  if (lost.contains(node) && !deleted_.contains(node))
    broken.push_back("started on a node that was declared lost: " + to_string(pod));
  if (agent.pods_running() >= plan_.slots &&
      !std::ranges::any_of(agent.processes,
                           [&](const auto& one) { return one.first.first == pod; }))
    broken.push_back("more pods than slots on " + agent.name + ": " + to_string(pod));
  for (auto [one, last] = starts_.equal_range(key); one != last; ++one)
    if (one->second.first != agent.number || one->second.second == agent.disk)
      broken.push_back("started twice: " + to_string(pod));
  starts_.emplace(key, std::pair(agent.number, agent.disk));
  for (const auto& [index, pods] : live_[pod.job])
    for (const Live& other : pods)
      if (other.agent == agent.number && other.node != node && lost.contains(other.node))
        broken.push_back("started beside a pod of a registration that was lost: " + to_string(pod));
  const auto plan = agent.plans.find(pod);
  const bool fenced = plan != agent.plans.end() && plan->second && plan->second->fence_after_ms;
  // The agent has not heard of the deletion yet, and other nodes may have its pods already.
  if (deleted_.contains(node) && !fenced) return;
  const core::Job* job = shown(pod.job);
  for (const Live& other : live_[pod.job][pod.index]) {
    if (other.pod == pod || (lost.contains(other.node) && (!fenced || other.late))) continue;
    // With this policy, a pod that is being deleted is replaced at once.
    auto leaves = [job](PodKey one) {
      const core::Pod* const shown = job->pod(one);
      return shown && shown->terminating() && !job->spec().replace_only_failed();
    };
    if (job && job->indexed() && !leaves(pod.key()) && !leaves(other.pod.key()))
      broken.push_back("two live pods of an index: " + to_string(other.pod) + " and " +
                       to_string(pod));
  }
  // Not once the job is scaled, which adds indexes to a running gang. Attempts within a gang may
  // differ: an index that takes the place of one that succeeded is new to it.
  if (!job || !job->gang().whole || job->state().generation != 1) return;
  const core::Pod* const starting = job->pod(pod.key());
  const auto is_older = [job, starting](PodKey key) {
    const core::Pod* const other = job->pod(key);
    return starting && other && other->created_ms < starting->created_ms;
  };
  for (const auto& [index, pods] : live_[pod.job])
    for (const Live& other : pods)
      if (is_older(other.pod.key()) && !lost.contains(other.node))
        broken.push_back("started before the last gang has ended: " + to_string(pod) + ", and " +
                         to_string(other.pod) + " lives");
}

void World::process_starts(uint32_t number, const core::node::StartOrder& order, uint64_t keeper) {
  Agent& agent = *agents_[number];
  const ProcessKey key = Agent::key_of(order);
  if (agent.keeper != keeper) return;  // the order died with it
  if (boot_ms_ < agent.frozen_until_ms)
    return at(agent.frozen_until_ms - boot_ms_,
              [this, number, order, keeper] { process_starts(number, order, keeper); });
  agent.ordered.erase(key);
  if (boot_ms_ >= order.not_after && !planted(Plant::lease_ignored)) {
    trace("too late for " + to_string(key.first) + " on " + agent.name);
    agent.placed.erase(key);
    fill_room(number);
    return report_unstarted(number, key);
  }
  if (boot_ms_ < agent.broken_until_ms) return fail_start(number, order);
  trace("start " + to_string(key.first) + " on " + agent.name);
  returned.erase(key.first);  // the report was lost with its agent
  check_start(agent, key);
  ++count.starts;
  Witnessed& pod = seen[key.first];
  if (pod.started_at == 0) pod.started_at = boot_ms_;
  pod.node = launched_on_[key.first];
  auto& live = live_[key.first.job][key.first.index];
  const auto found = std::ranges::find_if(
      live, [&](const Live& one) { return one.pod == key.first && one.agent == number; });
  if (found != live.end())
    ++found->processes;
  else
    live.push_back({key.first, number, pod.node, 1});
  agent.processes[key] = {boot_ms_, false, false, order};
  watch_fence(number, key, keeper);
  at(0, [this, number, key, keeper, started = boot_ms_] {
    if (agents_[number]->keeper != keeper) return;
    agents_[number]->node->process_started({key.first, key.second, kPid, started});
    pump(number);
  });
  const Millis random_ms = 1 + static_cast<Millis>(below(static_cast<uint64_t>(plan_.pod_ms_max)));
  at(run_ms ? run_ms(key.first) : random_ms, [this, number, key, keeper] {
    if (agents_[number]->keeper == keeper) process_ends(number, key, code_of(key));
  });
}

// For a reason of the node, such as a home that is not mounted.
void World::fail_start(uint32_t number, const core::node::StartOrder& order) {
  Agent& agent = *agents_[number];
  const ProcessKey key = Agent::key_of(order);
  trace("cannot start " + to_string(key.first) + " on " + agent.name);
  ++unstarted[key.first.job];
  core::node::ProcessEnd end;
  end.pod = key.first;
  end.step = key.second;
  end.entry = ++agent.last_entry;
  end.exit_code = core::kExitNotHere;
  end.error = "its home is not mounted";
  end.ended_at = boot_ms_;
  end.origin = origin_of(agent, order, {});
  agent.spool[*end.entry] = end;
  agent.placed.erase(key);
  fill_room(number);
  tell_end(number, *end.entry);
}

void World::tell_end(uint32_t number, uint64_t entry) {
  at(0, [this, number, entry] {
    Agent& agent = *agents_[number];
    const auto spooled = agent.spool.find(entry);
    if (spooled == agent.spool.end()) return;
    agent.node->process_ended(spooled->second);
    pump(number);
  });
}

int World::code_of(ProcessKey key) const {
  const auto& [pod, step] = key;
  return step_code ? step_code(pod, step) : exit_code(pod);
}

void World::see_end(Agent& agent, ProcessKey key, int code) {
  const PodId pod = key.first;
  ++count.ends;
  auto& live = live_[pod.job][pod.index];
  std::erase_if(live, [&](Live& one) {
    return one.pod == pod && one.agent == agent.number && --one.processes == 0;
  });
  Witnessed& was = seen[pod];
  ++was.ends;
  was.code = code;
  was.ended_at = boot_ms_;
  const auto plan = agent.plans.find(pod);
  if (plan != agent.plans.end() && plan->second) return;
  (code == 0 ? ended_ok : ended_bad).insert(pod);
  if (code == 0) ended_ok_at_[pod] = boot_ms_;
}

// The end as the keeper's spool has it.
core::node::ProcessEnd World::end_of(Agent& agent, ProcessKey key, const Process& process,
                                     int code) {
  core::node::ProcessEnd end;
  end.pod = key.first;
  end.step = key.second;
  end.entry = ++agent.last_entry;
  end.start = {kPid, process.started_ms};
  end.exit_code = code;
  end.ended_at = boot_ms_;
  end.fenced = process.fenced;
  end.origin = origin_of(agent, process.order, process.started_ms);
  return end;
}

void World::process_ends(uint32_t number, ProcessKey key, int code) {
  Agent& agent = *agents_[number];
  auto it = agent.processes.find(key);
  if (it == agent.processes.end()) return;
  trace("end " + to_string(key.first) + " on " + agent.name + " code " + std::to_string(code));
  see_end(agent, key, code);
  const core::node::ProcessEnd end = end_of(agent, key, it->second, code);
  agent.processes.erase(it);
  agent.placed.erase(key);
  if (planted(Plant::ran_unstarted, 0.05)) {
    fill_room(number);
    return report_unstarted(number, key);
  }
  agent.spool[*end.entry] = end;
  fill_room(number);
  if (plan_.launcher && key.first.index != 0 && chance(0.7)) abort_launcher(key.first);
  tell_end(number, *end.entry);
}

// The keeper ends a process once its node has had no contact for as long as the job says.
void World::watch_fence(uint32_t number, ProcessKey key, uint64_t keeper) {
  Agent& agent = *agents_[number];
  const auto plan = agent.plans.find(key.first);
  const auto found = agent.processes.find(key);
  if (agent.keeper != keeper || found == agent.processes.end() || plan == agent.plans.end() ||
      !plan->second || !plan->second->fence_after_ms || planted(Plant::fence_ignored))
    return;
  auto again = [this, number, key, keeper] { watch_fence(number, key, keeper); };
  const Millis due = agent.contact_at + *plan->second->fence_after_ms;
  if (boot_ms_ < due) return at(due - boot_ms_, again);
  if (boot_ms_ < agent.frozen_until_ms) {
    for (Live& live : live_[key.first.job][key.first.index])
      if (live.pod == key.first && live.agent == number) live.late = true;
    return at(agent.frozen_until_ms - boot_ms_, again);
  }
  trace("fence " + to_string(key.first) + " on " + agent.name);
  found->second.fenced = true;
  if (std::exchange(found->second.killing, true)) return;
  const core::Job* job = shown(key.first.job);
  const auto grace_ms =
      1000 * static_cast<uint64_t>(job ? job->spec().pod.termination_grace_s.value_or(30) : 0);
  at(1 + static_cast<Millis>(below(grace_ms + 50)),
     [this, number, key] { process_ends(number, key, 143); });
}

// Aborts the leader, as mpirun does when it loses a host.
void World::abort_launcher(PodId because) {
  const Millis after_ms = 1 + static_cast<Millis>(below(100));
  for (const Live& leader : live_[because.job][0])
    at(after_ms, [this, leader] { process_ends(leader.agent, {leader.pod, {}}, 255); });
}

// ---- what fails on a node

void World::restart_agent(uint32_t number) {
  Agent& agent = *agents_[number];
  core::node::Term term = agent.node->term();
  trace("! agent restarts: " + agent.name);
  break_link(agent.number);
  agent.node = std::make_unique<core::node::Node>(plan_.slots, term, 2);
  agent.node->executor_queues(agent.queues);
  if (planted(Plant::dies_with_agent)) end_keeper(agent);
  if (planted(Plant::spool_forgets)) agent.spool.clear();
  std::vector<core::node::Living> living;
  auto add = [&](const core::node::StartOrder& order, std::optional<Millis> started_at,
                 bool killing, bool queued) {
    std::optional<core::StartOf<Millis>> start;
    if (started_at) start = {kPid, *started_at};
    living.push_back({order.pod, order.step, start, kPodGraceMs, killing,
                      origin_of(agent, order, started_at), queued});
  };
  for (const auto& [key, process] : agent.processes)
    add(process.order, process.started_ms, process.killing, agent.placed.contains(key));
  for (const auto& [key, order] : agent.ordered) add(order, {}, false, agent.placed.contains(key));
  for (const auto& order : agent.queue) add(order, {}, false, true);
  agent.node->executor_connected(living, agent.spooled(), boot_ms_);
}

// Kills the keeper's processes; the next keeper reports them as lost.
void World::end_keeper(Agent& agent) {
  ++agent.keeper;
  for (const auto& [key, process] : std::exchange(agent.processes, {})) {
    see_end(agent, key, 137);
    core::node::ProcessEnd end = end_of(agent, key, process, 137);
    end.lost = true;
    agent.spool[*end.entry] = end;
  }
  agent.ordered.clear();
  agent.queue.clear();
  agent.placed.clear();
  agent.room = 0;
  agent.contact_at = 0;
}

void World::kill_keeper(uint32_t number) {
  Agent& agent = *agents_[number];
  trace("! keeper dies: " + agent.name);
  for (const auto& [key, process] : agent.processes) seen[key.first].lost = true;
  end_keeper(agent);
  agent.node->executor_connected({}, agent.spooled(), boot_ms_);
  pump(number);
}

// The machine restarts on an older copy of its disk. Unreported ends since the copy are lost with
// the disk, and ends in the copy's spool are reported again.
void World::restore_work_dir(uint32_t number) {
  Agent& agent = *agents_[number];
  trace("! older work-dir: " + agent.name);
  break_link(number);
  ++agent.boots;
  ++agent.disk;
  end_keeper(agent);
  for (const auto& [entry, end] : agent.spool) {
    seen[end.pod].lost = true;
    ended_ok_at_.erase(end.pod);
  }
  const Agent::Backup& backup = *agent.backup;
  agent.cluster = backup.cluster;
  agent.commit = backup.commit;
  agent.plans = backup.plans;
  agent.spool = backup.spool;
  agent.node = std::make_unique<core::node::Node>(plan_.slots, backup.term, 2);
  agent.node->executor_queues(agent.queues);
  agent.node->executor_connected({}, agent.spooled(), boot_ms_);
}

void World::change_node(uint32_t number) {
  Agent& agent = *agents_[number];
  const auto shown = view_->node(agent.name);
  if (!shown) return;
  core::NodeSpec spec = shown->node->spec;
  switch (below(6)) {
    case 0:
      spec.unschedulable = true;
      break;
    case 1:
      spec.taints = {{"drill", "", "NoExecute"}};
      break;
    case 2:
      agent.trouble_until_ms = boot_ms_ + 5'000;
      return;
    case 3:
      for (const NodeId id : {agent.id, shown->node->id}) {
        lost.insert(id);
        deleted_.insert(id);
      }
      return caf::anon_send(coordinator_->cluster,
                            actors::DeleteNode{agent.name, [](muster::Status) {}});
    default:
      spec = {};
  }
  caf::anon_send(coordinator_->cluster,
                 actors::ChangeNode{agent.name, shown->node->spec, spec, [](muster::Status) {}});
}

// Reserves a node, for maintenance or for a user.
void World::reserve(uint32_t number) {
  const std::string& name = agents_[number]->name;
  const auto shown = view_->node(name);
  if (!shown) return;
  core::Window window;
  window.name = "w" + std::to_string(below(3));
  window.from_ms = now_ms_ + static_cast<Millis>(below(10'000));
  window.until_ms = window.from_ms + 1'000 + static_cast<Millis>(below(20'000));
  if (chance(0.5)) window.users = {"ada"};
  core::NodeSpec spec = shown->node->spec;
  spec.annotations[std::string(core::kWindowKeys) + window.name] = core::window_text(window);
  caf::anon_send(coordinator_->cluster,
                 actors::ChangeNode{name, shown->node->spec, spec, [](muster::Status) {}});
}

// The agent is started again in an allocation, with which its node ends: with all processes, but
// not with its disk. Then it gets another one.
void World::end_node(uint32_t number) {
  Agent& agent = *agents_[number];
  if (agent.ends_at_ms) return;
  agent.ends_at_ms = boot_ms_ + 2'000 + static_cast<Millis>(below(30'000));
  restart_agent(number);
  at(*agent.ends_at_ms - boot_ms_, [this, number] {
    Agent& ended = *agents_[number];
    ended.ends_at_ms.reset();
    trace("! ends: " + ended.name);
    break_link(number);
    ++ended.boots;
    for (const auto& [key, process] : ended.processes) seen[key.first].lost = true;
    end_keeper(ended);
    ended.node = std::make_unique<core::node::Node>(plan_.slots, ended.node->term(), 2);
    ended.node->executor_queues(ended.queues);
    ended.node->executor_connected({}, ended.spooled(), boot_ms_);
  });
}

// Once the faults are over, all nodes are usable again, those with windows when these are over.
// Those that started nothing, too: until a pod starts there, they get one at a time, which is of no
// use to a gang.
void World::tidy_nodes() {
  for (const auto& agent : agents_) {
    const auto shown = view_->node(agent->name);
    if (!shown) continue;
    core::NodeSpec spec;
    for (const core::Window& window : core::windows_of(shown->node->spec.annotations))
      if (now_ms_ < window.until_ms && window.until_ms < now_ms_ + kWindowMaxMs)
        spec.annotations[std::string(core::kWindowKeys) + window.name] = core::window_text(window);
    if (!(shown->node->spec == spec) || !shown->node->starts_failing.empty())
      caf::anon_send(coordinator_->cluster, actors::ChangeNode{agent->name, shown->node->spec, spec,
                                                               [](muster::Status) {}});
  }
}

// Makes an agent report the success of a pod that runs elsewhere.
void World::lie(uint32_t number) {
  for (const auto& [job, indexes] : live_)
    for (const auto& [index, pods] : indexes)
      for (const Live& one : pods) {
        if (one.agent == number || !agents_[number]->registered) continue;
        actors::Report out;
        out.node = planted(Plant::lie_believed) ? one.node : agents_[number]->id;
        auto& part = out.jobs[job];
        part.node = out.node;
        core::PodsReported::Ended to;
        to.pod = one.pod.key();
        to.start = {kPid, Age{1}};
        part.ends.push_back(std::move(to));
        out.done = [](std::vector<PodId>) {};
        return to_coordinator(number, [this, out] { caf::anon_send(coordinator_->registry, out); });
      }
}

// ---- the loop

void World::faults() {
  if (on_old_disk_) return;  // until an agent exposes the copy
  auto due = [this](int& left, double p) {
    if (left <= 0 || !chance(p)) return false;
    --left;
    ++count.faults;
    return true;
  };
  auto any = [this] { return static_cast<uint32_t>(below(plan_.agents)); };
  if (due(plan_.crashes, plan_.crash_chance)) {
    note_crash_point(last_rows_, coordinator_->scheduler.jobs.empty()
                                     ? "after it, while idle"
                                     : "after it, with messages in flight");
    return crash(true);
  }
  if (due(plan_.breaks, 0.002)) break_link(any());
  if (plan_.owner_acts > 0 && owner && chance(0.004)) {
    --plan_.owner_acts;
    owner();
  }
  if (plan_.operator_acts > 0 && operators && chance(0.004)) {
    --plan_.operator_acts;
    operators();
  }
  if (plan_.clock_jump_ms != 0 && due(plan_.clock_jumps, 0.001)) {
    now_ms_ += plan_.clock_jump_ms;
    rules_.clock_jumped({boot_ms_, now_ms_});
    plan_.clock_jump_ms = -plan_.clock_jump_ms;
  }
  if (due(plan_.silences, 0.0007)) {
    Agent& agent = *agents_[any()];
    agent.frozen_until_ms = boot_ms_ + 3 * kGraceMs;
    at(3 * kGraceMs, [this, number = agent.number] {
      break_link(number);  // the agent notices that its connection is gone
      pump(number);
    });
  }
  if (due(plan_.cuts, 0.0007)) {
    Agent& agent = *agents_[any()];
    const Millis cut_ms = kFenceMs + static_cast<Millis>(below(5 * kFenceMs));
    agent.cut_until_ms = std::max(agent.cut_until_ms, boot_ms_ + cut_ms);
    break_link(agent.number);
  }
  if (due(plan_.agent_restarts, 0.001)) restart_agent(any());
  if (due(plan_.keeper_deaths, 0.0007)) kill_keeper(any());
  if (due(plan_.node_changes, 0.001)) change_node(any());
  if (due(plan_.windows, 0.001)) reserve(any());
  if (due(plan_.node_ends, 0.001)) end_node(any());
  if (due(plan_.failed_starts, 0.001))
    agents_[any()]->broken_until_ms = boot_ms_ + 1'000 + static_cast<Millis>(below(10'000));
  if (due(plan_.lies, 0.002)) lie(any());
  if (plan_.old_work_dirs > 0) {
    Agent& agent = *agents_[any()];
    if (agent.backup && boot_ms_ >= agent.frozen_until_ms && due(plan_.old_work_dirs, 0.0007))
      restore_work_dir(agent.number);
    else if (chance(0.001))
      agent.backup =
          Agent::Backup{agent.cluster, agent.commit, agent.node->term(), agent.plans, agent.spool};
  }
  if (plan_.old_data_dirs > 0) {
    const bool contradicted =
        backup_ && std::ranges::any_of(agents_, [this](const auto& agent) {
          // The copy waits only for nodes that it believes to be alive.
          return agent->commit > backup_->last_commit() + 2 && backup_nodes_.contains(agent->id) &&
                 boot_ms_ >= std::max(agent->frozen_until_ms, agent->cut_until_ms);
        });
    if (contradicted && due(plan_.old_data_dirs, 0.001)) {
      crash(false);
      newest_ = std::move(disk_);
      disk_ = std::move(*backup_);
      backup_.reset();
      on_old_disk_ = true;
      boot();
    } else if (!backup_ && chance(0.001) &&
               std::ranges::any_of(agents_, [](const auto& agent) { return agent->commit > 0; })) {
      backup_ = disk_;
      backup_nodes_.clear();
      for (const auto& agent : agents_)
        if (agent->registered && !lost.contains(agent->id)) backup_nodes_.insert(agent->id);
    }
  }
}

void World::step() {
  if (crash_due_) crash(true);
  if (!calm_) faults();
  if (!coordinator_->scheduler.jobs.empty() && chance(0.9)) {
    auto& jobs = coordinator_->scheduler.jobs;
    std::swap(jobs.front(), jobs[below(jobs.size())]);
    coordinator_->scheduler.try_run_once();
    return;
  }
  if (!later_.empty() && later_.begin()->first <= boot_ms_) {
    auto what = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    what();
    return;
  }
  Millis by = 1 + static_cast<Millis>(below(5));
  if (coordinator_->scheduler.jobs.empty() && !later_.empty())
    by = std::max<Millis>(1, std::min<Millis>(later_.begin()->first - boot_ms_, 50));
  boot_ms_ += by;
  now_ms_ += by;
  const Millis ticks = plan_.plant == Plant::lost_too_early ? 20 * by : by;
  coordinator_->scheduler.advance_time(std::chrono::milliseconds(ticks));
}

bool World::run(const std::function<bool()>& done, Millis limit_ms) {
  // First a phase with faults, for a limited number of steps while work remains, then a calm phase
  // in which everything must finish.
  for (int i = 0; i < 60'000 && !done(); ++i) step();
  calm_ = true;
  const Millis end = boot_ms_ + limit_ms;
  cut_at_ = 0;
  for (uint64_t round = 0; boot_ms_ < end; ++round) {
    if (done()) return true;
    if (round % 100 == 0) tidy_nodes();
    for (int i = 0; i < 64; ++i) step();
  }
  return done();
}

}  // namespace muster::sim
