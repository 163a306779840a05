#include "tests/sim/world.hpp"

#include "api/kube/manifest.hpp"
#include "base/log.hpp"
#include "storage/recovery.hpp"
#include "storage/rows.hpp"
#include "storage/summary_row.hpp"

#include <caf/send.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace muster::sim {

namespace {
constexpr Millis kGraceMs = 4'000;
constexpr Millis kBeatMs = 500;

// The longest delay of an order in the executor: usually, and with a slow disk.
constexpr uint64_t kExecutorMs = 40, kSlowExecutorMs = 1'500;
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
    if (world_.cut_at_ != 0 && world_.disk_.last_commit() + 1 >= world_.cut_at_) {
      world_.cut_at_ = 0;
      world_.disk_.set_manual_sync(true);
      (void)world_.disk_.commit(rows);
      world_.disk_.crash(world_.chance(0.5) ? 1 : 0);
      world_.disk_.set_manual_sync(false);
      world_.crash_due_ = true;
      return Error{Errc::unavailable, "power is gone", {}};
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
  std::map<NodeId, uint32_t> agent_of;  // agents whose link is up
  uint64_t epoch = 0;
};

struct World::Agent {
  uint32_t number = 0;
  std::string name, dir_id;
  std::unique_ptr<core::node::Node> node;  // ends with the agent process
  struct Process {
    Millis started_ms = 0;
    bool killing = false;
  };
  // The keeper's state, which survives the agent.
  bool queues = false;                         // it starts queued orders by itself
  uint32_t room = 0;                           // how many of those at once
  std::deque<std::pair<PodId, Millis>> queue;  // waiting, and not_after
  std::set<PodId> placed;                      // of the queue, starting or running
  std::set<PodId> ordered;                     // start in progress
  std::map<PodId, Process> processes;
  std::map<PodId, core::node::ProcessEnd> spool;
  uint64_t last_entry = 0;
  uint64_t connection = 0;  // number of the current one; 0: none
  bool registered = false;
  NodeId id = kNoNode;
  Millis frozen_until_ms = 0;
  std::string cluster;
  uint64_t commit = 0;  // the highest one it has seen; kept in its work-dir
  // FIFO in each direction.
  Millis last_to_agent_ms = 0, last_to_coordinator_ms = 0;

  bool queued(PodId pod) const {
    return std::any_of(queue.begin(), queue.end(),
                       [pod](const auto& one) { return one.first == pod; });
  }
};

class World::Link final : public actors::AgentLink {
 public:
  explicit Link(World& world) : world_(world) {}
  void launch(NodeId node, uint64_t link, std::vector<PodId> pods, core::JobObjectPtr) override {
    auto up = world_.coordinator_->agent_of.find(node);
    if (up == world_.coordinator_->agent_of.end() || world_.agents_[up->second]->connection != link)
      return;
    core::node::Term term{world_.coordinator_->epoch, world_.coordinator_->epoch};
    for (PodId pod : pods) {
      world_.trace("launch " + to_string(pod) + " on n" + std::to_string(node));
      world_.to_agent(node, [this, term, pod](Agent& agent) {
        agent.node->launch(term, {{pod, 100}}, world_.boot_ms_);
      });
    }
  }
  void kill(NodeId node, PodId pod, Millis grace_ms) override {
    if (!world_.calm_ && world_.index_deaths_left_ > 0 && world_.chance(0.1)) {
      --world_.index_deaths_left_;
      throw std::runtime_error("planted in an index actor");
    }
    core::node::Term term{world_.coordinator_->epoch, world_.coordinator_->epoch};
    world_.to_agent(node, [this, term, pod, grace_ms](Agent& agent) {
      agent.node->kill(term, {{pod, grace_ms}}, world_.boot_ms_);
    });
  }
  void ask(NodeId node, JobId job, uint64_t question) override {
    world_.to_agent(node, [this, node, job, question](Agent& agent) {
      world_.answered_at_[node] = world_.boot_ms_;
      actors::JobHears hears{job, {node, question, {}}};
      for (PodId pod : agent.node->ended())
        if (pod.job == job) hears.heard.ended.insert(pod.key());
      world_.to_coordinator(agent.number, [this, hears = std::move(hears)] {
        caf::anon_send(world_.coordinator_->registry, hears);
      });
    });
  }
  void drop(NodeId node) override {
    world_.lost_.insert(node);
    auto it = world_.coordinator_->agent_of.find(node);
    if (it == world_.coordinator_->agent_of.end()) return;
    uint32_t agent = it->second;
    world_.at(0, [this, agent] { world_.break_link(agent); });
  }

 private:
  World& world_;
};

World::World(Plan plan)
    : plan_(plan),
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

void World::at(Millis after_ms, std::function<void()> what) {
  later_.emplace(boot_ms_ + after_ms, std::move(what));
}

void World::boot() {
  ++life_;
  crash_due_ = false;
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
      1 /* so they are loaded again and again */);
  view_->brief_with([&disk = c.disk](JobId id) { return storage::brief_job(disk, id); });
  std::vector<core::JobSummary> unloaded;
  auto recovered = storage::recover(c.disk, load, [&](core::JobSummary job) {
    view_->add_unloaded(job);
    unloaded.push_back(std::move(job));
  });
  MUSTER_CHECK(recovered.ok(), recovered.error().message);
  for (const core::NodeInfo& node : recovered->nodes)
    if (!node.gone) lost_.erase(node.id);  // its loss had not reached the disk
  MUSTER_CHECK(recovered->damaged.empty(), recovered->damaged.front().why);
  MUSTER_CHECK(recovered->summary_rows.empty(),
               "an unloaded job without a summary row, or the reverse");
  c.epoch = recovered->epoch + 1;
  recovered->line.add({c.epoch, c.epoch, disk_.last_commit() + 1});
  MUSTER_CHECK(recovered->line.broken().empty(), recovered->line.broken());
  MUSTER_CHECK(disk_
                   .commit({storage::cluster_row("sim"), storage::epoch_row(c.epoch, c.epoch),
                            storage::line_row(recovered->line.last())})
                   .ok());
  actors::HeldAtStart held = actors::held_slots(*recovered);
  for (const storage::RecoveredJob& r : recovered->jobs) {
    if (!r.job.state().forgotten) view_->add(r.job);
  }
  view_->start_at(disk_.last_commit(), recovered->nodes);
  WallClock clock = [this] { return now_ms_; };
  c.journal = actors::spawn_journal(
      c.system, c.disk,
      [this](core::Committed batch) {
        view_->commit(batch);
        check_shown();
      },
      [](const std::string&) {}, std::chrono::microseconds{0}, false);
  actors::ClusterOptions options;
  options.cluster_id = "sim";
  options.cluster_key = "key";
  options.line = recovered->line;
  options.node_grace_ms = kGraceMs;
  options.last_commit = [this] { return disk_.last_commit(); };
  options.show = [this](const core::NodeHealth& health) { view_->health(health); };
  options.outdated = [this](const std::string& why) { broken.push_back("outdated: " + why); };
  auto next_job = std::make_shared<std::atomic<JobId>>(0);
  options.next_job = next_job;
  c.cluster = actors::spawn_cluster(
      c.system, c.journal, [&c] { return c.registry; }, actors::SealedLink(*link_), clock, options,
      recovered->nodes, std::move(held.slots));
  actors::RegistryOptions registry;
  registry.clock = clock;
  registry.elapsed = [this] { return boot_ms_; };
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
                                       std::move(held.lost),
                                       std::max<JobId>(1, recovered->next_job_id)},
                                      std::move(registry));
  if (plan_.mid_commit > 0 && !calm_) {
    --plan_.mid_commit;
    cut_at_ = disk_.last_commit() + 2 + below(60);
  }
}

void World::crash(bool again) {
  trace("! crash");
  ++life_;
  crash_due_ = true;  // from here on nothing is written or shown
  Coordinator& c = *coordinator_;
  caf::anon_send(c.registry, actors::stop_atom_v);
  caf::anon_send(c.cluster, actors::stop_atom_v);
  caf::anon_send(c.journal, actors::stop_atom_v);
  c.registry = actors::registry_actor{};
  c.cluster = actors::cluster_actor{};
  c.journal = actors::journal_actor{};
  while (c.scheduler.run() > 0) {
  }
  for (auto& agent : agents_) break_link(agent->number);
  coordinator_.reset();
  if (again) boot();
}

void World::check_shown() {
  view_->each(
      api::Kind::job, "", [](const core::Job&) { return true; },
      [this](const api::Shown& shown) {
        const core::Job& job = *shown.job;
        Seen& seen = seen_[job.id()];
        if (job.state().failed < seen.failed) broken.push_back("failed went back");
        if (job.succeeded() < seen.succeeded && !may_scale) broken.push_back("succeeded went back");
        seen.failed = job.state().failed;
        seen.succeeded = job.succeeded();
        if (job.ready() > job.active()) broken.push_back("ready > active");
        std::set<std::string> now;
        for (const core::Condition& condition : job.state().conditions)
          now.insert(std::string(name(condition.type)));
        for (const std::string& old : seen.conditions)
          if (!now.contains(old)) broken.push_back("condition " + old + " went away");
        if (now.contains("Complete") && now.contains("Failed"))
          broken.push_back("Complete and Failed");
        if (job.finished() && (job.active() || job.terminating()))
          broken.push_back("finished with active or terminating pods");
        seen.conditions = std::move(now);
        std::map<uint32_t, int> live;
        for (const auto& [key, pod] : job.state().open)
          if (pod.active() && job.indexed() && ++live[key.index] > 1)
            broken.push_back("two active pods of an index");
        // A pod counted as failed before its end was reported must not have exited with 0 before
        // its node was asked.
        for (const auto& [key, pod] : job.state().open) {
          PodId id{job.id(), key.index, key.attempt};
          if (pod.counted != core::Counted::failed || !judged_.insert(id).second) continue;
          auto ended = ended_ok_at_.find(id);
          if (ended == ended_ok_at_.end()) continue;
          auto answered = answered_at_.find(pod.node);
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

void World::ask(const std::string& name, core::Event event, std::function<void(Status)> done) {
  auto hear = [this, life = life_, done = std::move(done)](Status status) {
    if (life == life_ && done) done(std::move(status));
  };
  caf::anon_send(coordinator_->registry,
                 actors::AskJob{"default", name, "", 0, std::move(event), std::move(hear)});
}

void World::remove(const std::string& name, bool background, bool orphan,
                   std::function<void(Status)> done) {
  auto hear = [this, life = life_, done = std::move(done)](Status status) {
    if (life == life_ && done) done(std::move(status));
  };
  caf::anon_send(coordinator_->registry,
                 actors::DeleteJob{"default", name, "", background, orphan, std::move(hear)});
}

const core::Job* World::shown(const std::string& name) const {
  auto shown = view_->job("default", name);
  return shown ? shown->job : nullptr;
}

std::string World::picture(const std::string& name) const {
  const core::Job* job = shown(name);
  if (!job) return "no such job";
  std::string text = "succeeded " + std::to_string(job->succeeded()) + " failed " +
                     std::to_string(job->state().failed) + " deferred " +
                     std::to_string(job->state().deferred.size());
  for (const auto& [key, pod] : job->state().open)
    text += "\n  open " + to_string(key) + " n" + std::to_string(pod.node) +
            (pod.started_at ? " started" : "") + (pod.stopping_at ? " stopping" : "");
  for (const auto& agent : agents_) {
    text += "\n  " + agent->name + " n" + std::to_string(agent->id) + " link " +
            std::to_string(agent->connection) + (agent->registered ? " registered" : "") +
            " unacked " + std::to_string(agent->node->unacked()) + " processes " +
            std::to_string(agent->processes.size()) + " spool " +
            std::to_string(agent->spool.size()) + " runs";
    for (PodId pod : agent->node->running()) text += " " + to_string(pod);
    text += " waits";
    for (PodId pod : agent->node->waiting()) text += " " + to_string(pod);
  }
  return text + "\n  boot " + std::to_string(boot_ms_) + " events " + std::to_string(later_.size());
}

// ---- the network

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
  ask.hello.boot_id = "boot";
  ask.hello.cluster_id = agent.cluster;
  if (!agent.cluster.empty()) ask.hello.cluster_key = "key";
  ask.hello.highest_epoch = agent.node->term().epoch;
  ask.hello.epoch_nonce = agent.node->term().nonce;
  ask.hello.highest_commit = agent.commit;
  ask.hello.slots = plan_.slots;
  ask.hello.running = agent.node->running();
  ask.hello.waiting = agent.node->waiting();
  ask.hello.ended = agent.node->ended();
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
      a.node->registered({{coordinator_->epoch, coordinator_->epoch}, answer.end, kGraceMs / 2},
                         sent);
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
  at(10 + static_cast<Millis>(below(300)), [this, number] {
    if (agents_[number]->connection == 0 && coordinator_) connect(number);
  });
}

void World::beat(uint32_t number) {
  at(kBeatMs, [this, number] { beat(number); });
  Agent& agent = *agents_[number];
  if (!agent.registered || boot_ms_ < agent.frozen_until_ms) return;
  uint64_t connection = agent.connection;
  to_coordinator(number, [this, number, connection, sent = boot_ms_] {
    Agent& a = *agents_[number];
    caf::anon_send(coordinator_->cluster, actors::Heartbeat{a.id, connection});
    to_agent(a.id, [this, sent, commit = disk_.last_commit()](Agent& to) {
      to.commit = std::max(to.commit, commit);
      to.node->heartbeat_answered({coordinator_->epoch, coordinator_->epoch}, sent);
    });
  });
}

// Executes the orders of the node.
void World::pump(uint32_t number) {
  Agent& agent = *agents_[number];
  if (boot_ms_ < agent.frozen_until_ms) return;
  core::node::Orders orders = agent.node->next(boot_ms_);
  for (const auto& kill : orders.kills) {
    drop_queued(number, kill.pod);
    auto it = agent.processes.find(kill.pod);
    if (it == agent.processes.end() || it->second.killing) continue;
    it->second.killing = true;
    at(1 + static_cast<Millis>(below(50)),
       [this, number, pod = kill.pod] { process_ends(number, pod, 143); });
  }
  if (orders.room) agent.room = *orders.room;
  for (PodId pod : orders.withdrawn) drop_queued(number, pod);
  for (const auto& start : orders.starts) {
    PodId pod = start.pod;
    if (agent.processes.contains(pod) || agent.spool.contains(pod)) continue;
    if (agent.ordered.contains(pod) || agent.queued(pod)) continue;  // the keeper is idempotent
    if (start.queued)
      agent.queue.emplace_back(pod, start.not_after);
    else
      begin_start(number, pod, start.not_after);
  }
  fill_room(number);
  if (orders.again_at) at(*orders.again_at - boot_ms_, [this, number] { pump(number); });
  for (uint64_t entry : orders.forget)
    std::erase_if(agent.spool, [entry](const auto& item) { return item.second.entry == entry; });
  for (const auto& report : orders.reports) {
    for (const auto& end : report.ends)
      trace("report end " + to_string(end.pod) + " cause " +
            std::to_string(static_cast<int>(end.cause)));
    actors::Report out;
    out.node = agent.id;
    for (const auto& start : report.starts) {
      auto& part = out.jobs[start.pod.job];
      part.node = agent.id;
      part.starts.push_back({start.pod.key(), start.pid, 0, age_at(boot_ms_, start.at)});
    }
    for (const auto& end : report.ends) {
      // Unless its loss was counted before, when its node was silent.
      const core::Job* job = shown("one");
      if (end.cause == core::EndCause::returned && job && job->state().open.contains(end.pod.key()))
        returned.insert(end.pod);
      auto& part = out.jobs[end.pod.job];
      part.node = agent.id;
      auto age = [this](BootInstant at) { return age_at(boot_ms_, at); };
      core::PodsReported::Ended to{core::with_times<Age>(end, age), end.pod.key(), {}, 0};
      if (end.start) to.start = {end.start->pid, age(end.start->at)};
      part.ends.push_back(std::move(to));
    }
    uint64_t life = life_, connection = agent.connection;
    out.done = [this, number, life, connection, id = report.id](std::vector<PodId> kept) {
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
    to_coordinator(number, [this, out] { caf::anon_send(coordinator_->registry, out); });
  }
}

// ---- processes and the witness

// The keeper: it survives the agent and freezes with the node.
void World::begin_start(uint32_t number, PodId pod, Millis not_after) {
  agents_[number]->ordered.insert(pod);
  const uint64_t held_up_ms = chance(0.1) ? kSlowExecutorMs : kExecutorMs;
  at(static_cast<Millis>(below(held_up_ms)),
     [this, number, pod, not_after] { process_starts(number, pod, not_after); });
}

void World::fill_room(uint32_t number) {
  Agent& agent = *agents_[number];
  while (!agent.queue.empty() && agent.placed.size() < agent.room) {
    auto [pod, not_after] = agent.queue.front();
    agent.queue.pop_front();
    agent.placed.insert(pod);
    begin_start(number, pod, not_after);
  }
}

void World::drop_queued(uint32_t number, PodId pod) {
  if (std::erase_if(agents_[number]->queue, [pod](const auto& one) { return one.first == pod; }) >
      0)
    report_unstarted(number, pod);
}

void World::report_unstarted(uint32_t number, PodId pod) {
  at(0, [this, number, pod] {
    agents_[number]->node->process_ended({.pod = pod, .ended_at = boot_ms_, .unstarted = true});
    pump(number);
  });
}

void World::process_starts(uint32_t number, PodId pod, Millis not_after) {
  Agent& agent = *agents_[number];
  if (boot_ms_ < agent.frozen_until_ms)
    return at(agent.frozen_until_ms - boot_ms_,
              [this, number, pod, not_after] { process_starts(number, pod, not_after); });
  agent.ordered.erase(pod);
  if (boot_ms_ >= not_after) {
    trace("too late for " + to_string(pod) + " on " + agent.name);
    agent.placed.erase(pod);
    fill_room(number);
    return report_unstarted(number, pod);
  }
  if (lost_.contains(agent.id))
    broken.push_back("started on a node that was declared lost: " + to_string(pod));
  trace("start " + to_string(pod) + " on " + agent.name);
  returned.erase(pod);  // that report was lost with its agent
  if (agent.processes.size() >= plan_.slots)
    broken.push_back("more pods than slots on " + agent.name + ": " + to_string(pod));
  if (++starts[pod] > 1) broken.push_back("started twice: " + to_string(pod));
  for (const auto& [other, where] : live_[pod.job][pod.index])
    if (!lost_.contains(agents_[where]->id) && agents_[where]->frozen_until_ms == 0)
      broken.push_back("two live pods of an index: " + to_string(other) + " and " + to_string(pod));
  for (const auto& [index, pods] : live_[pod.job])
    for (const auto& [other, where] : pods)
      if (plan_.as_one && other.attempt < pod.attempt && !lost_.contains(agents_[where]->id) &&
          agents_[where]->frozen_until_ms == 0)
        broken.push_back("started before the last gang has ended: " + to_string(pod) + ", and " +
                         to_string(other) + " lives");
  live_[pod.job][pod.index].insert({pod, number});
  agent.processes[pod] = {boot_ms_, false};
  at(0, [this, number, pod, started = boot_ms_] {
    agents_[number]->node->process_started({pod, {}, 4711, started});
    pump(number);
  });
  const Millis random_ms = 1 + static_cast<Millis>(below(static_cast<uint64_t>(plan_.pod_ms_max)));
  at(run_ms ? run_ms(pod) : random_ms,
     [this, number, pod] { process_ends(number, pod, exit_code(pod)); });
}

void World::process_ends(uint32_t number, PodId pod, int code) {
  Agent& agent = *agents_[number];
  auto it = agent.processes.find(pod);
  if (it == agent.processes.end()) return;
  trace("end " + to_string(pod) + " on " + agent.name + " code " + std::to_string(code));
  (code == 0 ? ended_ok : ended_bad).insert(pod);
  if (code == 0) ended_ok_at_[pod] = boot_ms_;
  live_[pod.job][pod.index].erase({pod, number});
  core::node::ProcessEnd end;
  end.pod = pod;
  end.entry = ++agent.last_entry;
  end.start = {4711, it->second.started_ms};
  end.exit_code = code;
  end.ended_at = boot_ms_;
  agent.processes.erase(it);
  agent.spool[pod] = end;
  agent.placed.erase(pod);
  fill_room(number);
  if (plan_.launcher && pod.index != 0 && chance(0.7)) abort_launcher(pod);
  at(0, [this, number, pod] {
    Agent& a = *agents_[number];
    auto spooled = a.spool.find(pod);
    if (spooled == a.spool.end()) return;
    a.node->process_ended(spooled->second);
    pump(number);
  });
}

// As mpirun does when it loses a host.
void World::abort_launcher(PodId because) {
  const Millis after_ms = 1 + static_cast<Millis>(below(100));
  for (const auto& [leader, where] : live_[because.job][0])
    at(after_ms, [this, pod = leader, number = where] { process_ends(number, pod, 255); });
}

// ---- the loop

void World::faults() {
  if (plan_.crashes > 0 && chance(0.0015)) {
    --plan_.crashes;
    crash(true);
  }
  if (plan_.breaks > 0 && chance(0.002)) {
    --plan_.breaks;
    break_link(static_cast<uint32_t>(below(plan_.agents)));
  }
  if (plan_.owner_acts > 0 && owner && chance(0.004)) {
    --plan_.owner_acts;
    owner();
  }
  if (plan_.clock_jump_ms != 0 && chance(0.001)) now_ms_ += std::exchange(plan_.clock_jump_ms, 0);
  if (plan_.silences > 0 && chance(0.0007)) {
    --plan_.silences;
    Agent& agent = *agents_[below(plan_.agents)];
    agent.frozen_until_ms = boot_ms_ + 3 * kGraceMs;
    at(3 * kGraceMs, [this, number = agent.number] {
      break_link(number);  // the agent notices that its connection is gone
      pump(number);
    });
  }
  if (plan_.agent_restarts > 0 && chance(0.001)) {
    --plan_.agent_restarts;
    Agent& agent = *agents_[below(plan_.agents)];
    core::node::Term term = agent.node->term();
    trace("! agent restarts: " + agent.name);
    break_link(agent.number);
    agent.node = std::make_unique<core::node::Node>(plan_.slots, term, 2);
    agent.node->executor_queues(agent.queues);
    std::vector<core::node::Living> living;
    for (const auto& [pod, process] : agent.processes)
      living.push_back({pod,
                        {},
                        {{4711, process.started_ms}},
                        100,
                        process.killing,
                        {},
                        agent.placed.contains(pod)});
    for (PodId pod : agent.ordered)
      living.push_back({pod, {}, {}, 100, false, {}, agent.placed.contains(pod)});
    for (const auto& [pod, not_after] : agent.queue)
      living.push_back({pod, {}, {}, 100, false, {}, true});
    std::vector<core::node::ProcessEnd> ended;
    for (const auto& [pod, end] : agent.spool) ended.push_back(end);
    agent.node->executor_connected(living, ended, boot_ms_);
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
  coordinator_->scheduler.advance_time(std::chrono::milliseconds(by));
}

bool World::run(const std::function<bool()>& done, Millis limit_ms) {
  Millis end = boot_ms_ + limit_ms;
  // First a phase with faults, for as long as any are planned and work remains; then a calm phase
  // in which everything must finish.
  for (int i = 0; i < 60'000 && !done(); ++i) step();
  calm_ = true;
  cut_at_ = 0;
  while (boot_ms_ < end) {
    if (done()) return true;
    for (int i = 0; i < 64; ++i) step();
  }
  return done();
}

}  // namespace muster::sim
