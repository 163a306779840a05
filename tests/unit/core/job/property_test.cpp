// Random histories of one job: agents that lose connections, reboot or are declared lost, a journal
// that forgets what was not synced, and a client that remembers what it was shown.
//
// Each history begins with random events, including an owner who suspends and scales the job and
// deletes and evicts pods. Then the faults stop and the job must finish. The checks compare it with
// this small world (what really ran and how it ended) and with an independent count over the
// records. A failure prints its seed; MUSTER_SEED=4711 replays that history alone.
#include "core/job/fold/text.hpp"
#include "core/job/rules/backoff.hpp"
#include "core/job/rules/decide.hpp"
#include "core/job/shown/index_map.hpp"
#include "core/spec/rules/defaults.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <set>

namespace muster::core {

namespace {

// Takes seconds. ctest runs 5,000 in a build with sanitizers, ./dev test 10^5 in a release build.
constexpr uint64_t kHistories = 2000;  // MUSTER_HISTORIES overrides it
constexpr int kFaultySteps = 160;
constexpr int kCalmRounds = 4000;
constexpr size_t kAgents = 3;
constexpr Millis kBegin = 1'000'000;

struct Process {
  enum class State { waiting, running, ended };
  State state = State::waiting;
  bool start_acked = false;
  int32_t restarts = 0;
  PodsReported::Ended end;
};

// A message from the coordinator to an agent. Messages arrive in order, until the connection
// breaks.
struct Message {
  enum class Kind { launch, kill, ack, question };
  Kind kind;
  PodKey pod;
  uint64_t token = 0;  // the number of a question
};

struct Agent {
  NodeId id = kNoNode;
  bool connected = false;
  bool ready = false;
  bool lost = false;  // declared lost; its pods keep running
  bool lease = true;  // may start pods; false once lost, until it learns what to end
  uint32_t slots = 0;
  uint32_t free = 0;  // according to the cluster's books
  std::deque<Message> inbox;
  std::map<PodKey, Process> pods;
  std::map<uint64_t, std::pair<std::vector<PodKey>, std::vector<PodKey>>>
      reports;  // token -> starts, ends

  uint32_t running() const {
    uint32_t n = 0;
    for (const auto& [key, process] : pods) n += process.state == Process::State::running;
    return n;
  }
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    object_ = make_object();
    live_ = std::make_unique<Job>(1, object_);
    shown_ = std::make_unique<Job>(1, object_);
    completions_ = object_->spec.completions.value_or(-1);
    fail_percent_ = pick(3) == 0 ? 0 : pick(60);
    for (Agent& agent : agents_) {
      agent.id = ++nodes_;
      agent.slots = agent.free = 1 + pick(3);
    }
    Record admitted = JobAdmitted{now_, object_};
    live_->apply(admitted);
    unsynced_.push_back({{admitted}, {}});
    arrived_.push_back(TimePassed{});
  }

  // Returns the first violation, or an empty string.
  std::string run() {
    for (int i = 0; i < kFaultySteps && !over(); ++i) random_step();
    for (int i = 0; i < kCalmRounds && !over(); ++i) {
      if (i % 50 == 0) calm_owner();
      calm_round();
    }
    if (broken_.empty() && !shown_->finished() && !shown_->state().forgotten &&
        !shown_->state().orphaned)
      broken("not finished though the faults have stopped");
    if (broken_.empty()) check_refold();
    return broken_;
  }

  std::string story() const {
    std::string text;
    for (const Record& record : durable_) text += "  " + to_text(1, record) + "\n";
    return text + "  " + status_text(*shown_) + "\n";
  }

 private:
  struct Batch {
    std::vector<Record> records;
    std::vector<Effect> effects;
  };

  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  bool chance(uint32_t percent) { return pick(100) < percent; }
  bool over() const {
    bool quiet = arrived_.empty() && unsynced_.empty();
    bool orphaned = shown_->state().orphaned && shown_->state().open.empty();
    return !broken_.empty() || shown_->state().forgotten ||
           ((shown_->finished() || orphaned) && quiet);
  }
  void broken(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }
  void expect(bool holds, const std::string& what) {
    if (!holds) broken(what);
  }

  JobObjectPtr make_object() {
    auto object = std::make_shared<JobObject>();
    object->meta.name = "j";
    object->meta.uid = "00000000-0000-4000-8000-000000000001";
    JobSpec& spec = object->spec;
    bool indexed = pick(3) != 0;
    spec.completion_mode = indexed ? "Indexed" : "NonIndexed";
    if (indexed || pick(3) != 0) spec.completions = static_cast<int32_t>(pick(13));
    spec.parallelism = static_cast<int32_t>(1 + pick(6));
    if (indexed && pick(2) == 0) {
      spec.backoff_limit_per_index = static_cast<int32_t>(pick(4));
      if (pick(3) == 0) spec.max_failed_indexes = static_cast<int32_t>(pick(4));
      if (pick(4) == 0) spec.backoff_limit = static_cast<int32_t>(pick(12));
    } else if (pick(2) == 0) {
      spec.backoff_limit = static_cast<int32_t>(pick(12));
    }
    if (pick(3) == 0) spec.pod_replacement_policy = "Failed";
    if (pick(3) == 0) spec.pod_failure_policy = failure_policy(indexed);
    if (indexed && pick(3) == 0) spec.success_policy = success_policy();
    if (!spec.pod_failure_policy && pick(4) == 0) spec.pod.restart_policy = "OnFailure";
    if (pick(6) == 0) spec.active_deadline_s = 1 + pick(60);
    if (pick(8) == 0) spec.ttl_s = static_cast<int32_t>(pick(3));
    if (pick(8) == 0) spec.suspend = true;
    if (indexed && pick(3) == 0) {
      StringMap& own = object->meta.annotations;
      leads_ = pick(2) == 0;
      whole_ = !leads_ || pick(2) == 0;
      gang_ = true;
      own["muster.dev/gang"] = "true";
      if (leads_) own["muster.dev/mpi"] = "auto";
      if (whole_) own["muster.dev/restart"] = "gang";
    }
    if (spec.backoff_limit_per_index && (!gang_ || whole_) && pick(2) == 0) {
      object->meta.annotations["muster.dev/retry-memory"] = "2Gi,4Gi";
      object->meta.annotations["muster.dev/retry-time"] = "2m";
      steps_max_ = {2, 1};
    }
    if (pick(6) == 0) object->meta.finalizers = {"example.com/audit"};
    Container main;
    main.name = "main";
    spec.pod.containers.push_back(main);
    object->json = "0";
    apply_defaults(object->meta, spec);
    return object;
  }

  static FailureRule by_code(const char* action, int32_t code) {
    FailureRule rule;
    rule.action = action;
    rule.on_exit_codes = OnExitCodes{{}, "In", {code}};
    return rule;
  }

  // Mirrored by ignores(): disruptions and exit code 2 are ignored, 3 fails the job, 4 the index.
  FailurePolicy failure_policy(bool per_index) {
    FailurePolicy policy;
    FailureRule disrupted;
    disrupted.action = "Ignore";
    disrupted.on_pod_conditions = {{"DisruptionTarget", "True"}};
    policy.rules = {disrupted, by_code("Ignore", 2), by_code("Count", 1)};
    if (pick(3) == 0) policy.rules.push_back(by_code("FailJob", 3));
    if (per_index) policy.rules.push_back(by_code("FailIndex", 4));
    return policy;
  }

  SuccessPolicy success_policy() {
    SuccessPolicy policy;
    policy.rules.resize(1 + pick(2));
    for (SuccessRule& rule : policy.rules) {
      if (pick(2) == 0) rule.succeeded_indexes = "0,2-4";
      if (!rule.succeeded_indexes || pick(2) == 0)
        rule.succeeded_count = static_cast<int32_t>(pick(4));
    }
    return policy;
  }

  // A random owner request, based on the object shown now, so that later ones may conflict.
  void owner() {
    auto object = std::make_shared<JobObject>(shown_->object());
    object->json = std::to_string(++versions_);
    JobSpec& spec = object->spec;
    if (chance(10)) object->meta.finalizers.clear();
    if (chance(10)) {
      arrived_.push_back(
          HoldChange{++tokens_, !shown_->on_hold(), "olga", chance(50), std::to_string(pick(3))});
      return;
    }
    if (chance(8)) {
      Cancellation cancellation{++tokens_, "olga"};
      if (chance(80)) {
        cancellation.indexes.emplace();
        cancellation.indexes->insert(static_cast<uint32_t>(pick(6)));
      }
      arrived_.push_back(std::move(cancellation));
      return;
    }
    switch (pick(8)) {
      case 0:
      case 1:
        spec.suspend = !spec.suspend.value_or(false);
        break;
      case 2:
        spec.parallelism = static_cast<int32_t>(pick(7));
        break;
      case 3:
        if (!spec.indexed()) return;
        spec.parallelism = spec.completions = static_cast<int32_t>(pick(13));
        break;
      case 4:
        spec.active_deadline_s = 1 + pick(60);
        break;
      default:
        return owner_of_pods();
    }
    ++object->meta.generation;
    arrived_.push_back(OwnerUpdate{++tokens_, shown_->object_ptr(), object});
  }

  void owner_of_pods() {
    std::vector<PodKey> keys;
    shown_->each_pod([&keys](const Pod& pod) { keys.push_back(pod.key); });
    if (keys.empty()) return;
    PodKey key = keys[pick(static_cast<uint32_t>(keys.size()))];
    if (pick(4) == 0) {
      arrived_.push_back(
          PodConditionsWrite{++tokens_, key, {{"ConfigIssue", "True", 0, "Bad", ""}}});
    } else if (pick(4) == 0) {
      arrived_.push_back(Preempted{{{agents_[pick(kAgents)].id, 1}}});
    } else {
      auto why = pick(2) == 0 ? PodsDeletion::Why::owner : PodsDeletion::Why::eviction;
      arrived_.push_back(PodsDeletion{
          ++tokens_, {key}, why, pick(2) == 0 ? std::nullopt : std::optional<Millis>(500)});
    }
  }

  // Undoes whatever the owner did that keeps the job from finishing.
  void calm_owner() {
    if (shown_->on_hold()) arrived_.push_back(HoldChange{++tokens_, false, "olga", true});
    const JobSpec& now = shown_->spec();
    bool runs = !now.suspend.value_or(false) && now.parallelism.value_or(1) > 0;
    bool held_up =
        shown_->state().deleted_at.has_value() && !shown_->object().meta.finalizers.empty();
    if (shown_->hidden() || (runs && !held_up)) return;
    auto object = std::make_shared<JobObject>(shown_->object());
    object->json = std::to_string(++versions_);
    object->spec.suspend = false;
    if (held_up) object->meta.finalizers.clear();
    if (object->spec.parallelism.value_or(1) == 0) object->spec.parallelism = 2;
    arrived_.push_back(OwnerUpdate{++tokens_, shown_->object_ptr(), object});
  }

  void random_step() {
    Agent& agent = agents_[pick(kAgents)];
    switch (pick(18)) {
      case 0:
        now_ += pick(400);
        break;
      case 1:
        wake();
        break;
      case 2:
      case 3:
        grant(agent);
        break;
      case 4:
      case 5:
        decide_all();
        break;
      case 6:
      case 7:
        sync();
        break;
      case 8:
      case 9:
        deliver(agent);
        break;
      case 10:
        start_one(agent);
        break;
      case 11:
        end_one(agent);
        break;
      case 12:
        report(agent);
        break;
      case 13:
        connect(agent);
        break;
      case 16:
        if (chance(50)) owner();
        break;
      case 17:
        if (chance(30)) return_one(agent);
        break;
      case 14:
        if (chance(20))
          crash();
        else if (chance(4))
          remove();
        break;
      case 15:
        if (chance(40))
          disconnect(agent);
        else if (chance(30))
          lose(agent);
        else if (chance(30))
          reboot(agent);
        else if (chance(30))
          keeper_dies(agent);
        break;
    }
  }

  // Time passes, everything pending is handled, and no faults occur.
  void calm_round() {
    now_ += 50;
    wake();
    for (Agent& agent : agents_) {
      connect(agent);
      while (!agent.inbox.empty()) deliver(agent);
      grant(agent);
      start_one(agent);
      if (chance(50)) end_one(agent);
      report(agent);
    }
    decide_all();
    sync();
  }

  // ---- the coordinator

  void decide_all() {
    if (arrived_.empty()) return;
    std::vector<Event> events;
    // Usually everything that has arrived goes into one sync; sometimes the rest follows later.
    size_t n = chance(70) ? arrived_.size() : 1 + pick(static_cast<uint32_t>(arrived_.size()));
    for (size_t i = 0; i < n; ++i) {
      events.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
    }
    Decision decision = decide(*live_, events, now_, {100, 1000}, hearing_);
    unsynced_.push_back({std::move(decision.records), std::move(decision.effects)});
  }

  void sync() {
    for (Batch& batch : std::exchange(unsynced_, {})) {
      JobState before = shown_->state();
      uint64_t succeeded_before = shown_->succeeded();
      for (Record& record : batch.records) {
        shown_->apply(record);
        durable_.push_back(std::move(record));
      }
      before_ = &before;
      check_shown(before, succeeded_before);
      for (const Effect& effect : batch.effects)
        std::visit([this](const auto& e) { act(e); }, effect);
    }
  }

  void crash() {
    unsynced_.clear();
    arrived_.clear();
    wakes_.clear();
    hearing_ = Hearing{};
    // Rebuilt from a snapshot and the records after it.
    size_t cut = pick(static_cast<uint32_t>(durable_.size()) + 1);
    Job until(1, object_);
    for (size_t i = 0; i < cut; ++i) until.apply(durable_[i]);
    live_ = std::make_unique<Job>(1, cut == 0 ? object_ : shown_->object_ptr(), until.state());
    for (size_t i = cut; i < durable_.size(); ++i) live_->apply(durable_[i]);
    expect(live_->state() == shown_->state(), "a restart gives a different job from the one shown");
    if (durable_.empty()) {
      // It was never accepted, so its owner submits it again.
      Record admitted = JobAdmitted{now_, object_};
      live_->apply(admitted);
      unsynced_.push_back({{admitted}, {}});
    }
    wanted_ = live_->slots_wanted();
    for (Agent& agent : agents_) {
      disconnect(agent);
      agent.free = agent.slots - open_on(*live_, agent.id);
    }
    taken_.clear();
    for (const auto& [key, pod] : live_->state().open)
      if (pod.bound()) ++taken_[{pod.node, pod.steps}];
    arrived_.push_back(TimePassed{});
    for (NodeId id : gone_) arrived_.push_back(NodeLost{id});
  }

  static uint32_t open_on(const Job& job, NodeId node) {
    uint32_t n = 0;
    for (const auto& [key, pod] : job.state().open) n += pod.node == node;
    return n;
  }

  void wake() {
    bool due = false;
    while (!wakes_.empty() && *wakes_.begin() <= now_) {
      wakes_.erase(wakes_.begin());
      due = true;
    }
    if (due) arrived_.push_back(TimePassed{});
  }

  void remove() {
    bool orphan = chance(30);
    arrived_.push_back(JobDeletion{0, orphan || chance(50), orphan});
  }

  // The cluster deducts what it grants from what the job wants, until the job asks again.
  void grant(Agent& agent) {
    if (agent.lost || !agent.ready) return;
    std::vector<std::pair<Steps, uint32_t*>> kinds;
    for (auto& [steps, pods] : wanted_.more) kinds.emplace_back(steps, &pods);
    kinds.emplace_back(Steps{}, &wanted_.wanted);
    for (auto& [steps, wanted] : kinds) {
      const uint32_t n = std::min(*wanted, agent.free);
      if (n == 0) continue;
      *wanted -= n;
      agent.free -= n;
      taken_[{agent.id, steps}] += n;
      arrived_.push_back(SlotsGranted{{{agent.id, n}}, {}, steps});
    }
  }

  Agent* agent_of(NodeId id) {
    for (Agent& agent : agents_)
      if (agent.id == id) return &agent;
    return nullptr;
  }

  void send(NodeId node, Message message) {
    Agent* agent = agent_of(node);
    if (agent && agent->ready) agent->inbox.push_back(message);
  }

  void act(const LaunchPods& e) {
    for (const auto& one : e.pods) send(one.node, {Message::Kind::launch, one.pod});
  }
  void act(const KillPods& e) {
    for (const auto& one : e.pods) send(one.node, {Message::Kind::kill, one.pod});
  }
  void act(const LimitPods&) {}  // pods have no limits here
  void act(const AckReport& e) {
    for (Agent& agent : agents_)
      if (agent.reports.contains(e.token)) agent.inbox.push_back({Message::Kind::ack, {}, e.token});
  }
  void act(const Answer&) {}
  void act(const AskSlots& e) { wanted_ = e; }
  void act(const FreeSlots& e) {
    for (auto [node, count] : e.slots) {
      Agent* agent = agent_of(node);
      if (!agent) continue;
      agent->free += count;
      uint32_t& taken = taken_[{node, e.steps}];
      expect(count <= taken, "slots returned that pods with other steps had");
      taken -= std::min(taken, count);
      expect(agent->free <= agent->slots, "more slots returned than there are");
    }
  }
  void act(const AskNodes& e) {
    for (const auto& one : e.nodes) send(one.node, {Message::Kind::question, {}, one.question});
  }
  void act(const AnswerReconcile& e) {
    Agent* agent = agent_of(e.node);
    if (!agent || !agent->connected || agent->ready) return;
    for (PodKey key : e.end) agent->pods.erase(key);
    agent->ready = agent->lease = true;
    arrived_.push_back(NodeReady{agent->id});
  }
  void act(const WakeAt& e) { wakes_.insert(e.at_ms); }
  void act(const PodsClosed& e) {
    for (PodKey key : e.pods)
      expect(!shown_->state().open.contains(key), "closed though open: " + to_string(key));
  }
  void act(const JobOver& e) {
    expect(e.forgotten ? shown_->state().forgotten
                       : shown_->finished() || shown_->hidden() || shown_->state().orphaned,
           "over too early");
    if (e.wake_ms) wakes_.insert(*e.wake_ms);
  }

  // ---- the agents

  void connect(Agent& agent) {
    if (agent.connected) return;
    if (agent.lost) {
      agent.id = ++nodes_;
      agent.lost = false;
      agent.free = agent.slots;
    }
    agent.connected = true;
    NodeRegistered registered{agent.id, {}};
    for (const auto& [key, process] : agent.pods) registered.known.insert(key);
    arrived_.push_back(std::move(registered));
  }

  void disconnect(Agent& agent) {
    agent.connected = agent.ready = false;
    agent.inbox.clear();
    agent.reports.clear();
    // The link drops what the broken connection had sent.
    std::erase_if(arrived_, [&agent](const Event& event) {
      const auto* registered = std::get_if<NodeRegistered>(&event);
      const auto* ready = std::get_if<NodeReady>(&event);
      return (registered && registered->node == agent.id) || (ready && ready->node == agent.id);
    });
  }

  void lose(Agent& agent) {
    disconnect(agent);
    if (agent.lost) return;
    agent.lost = true;
    agent.lease = false;
    gone_.push_back(agent.id);
    arrived_.push_back(NodeLost{agent.id});
  }

  void reboot(Agent& agent) {
    lose(agent);
    agent.pods.clear();
  }

  void keeper_dies(Agent& agent) {
    for (auto& [key, process] : agent.pods)
      if (process.state == Process::State::running)
        finish(key, process, EndCause::keeper_lost, 137);
  }

  void deliver(Agent& agent) {
    if (agent.inbox.empty()) return;
    Message message = agent.inbox.front();
    agent.inbox.pop_front();
    auto it = agent.pods.find(message.pod);
    switch (message.kind) {
      case Message::Kind::launch:
        if (it == agent.pods.end()) agent.pods[message.pod];
        break;
      case Message::Kind::question: {
        NodeHeard heard{agent.id, message.token, {}};
        for (const auto& [key, process] : agent.pods)
          if (process.state == Process::State::ended) heard.ended.insert(key);
        arrived_.push_back(std::move(heard));
        break;
      }
      case Message::Kind::kill: {
        Process& process = agent.pods[message.pod];
        if (process.state == Process::State::waiting)
          finish(message.pod, process, EndCause::never_started, 0);
        else if (process.state == Process::State::running)
          finish(message.pod, process, EndCause::killed, chance(50) ? 143 : 0);
        break;
      }
      case Message::Kind::ack: {
        auto report = agent.reports.find(message.token);
        if (report == agent.reports.end()) break;
        for (PodKey key : report->second.first)
          if (agent.pods.contains(key)) agent.pods[key].start_acked = true;
        for (PodKey key : report->second.second) {
          auto open = shown_->state().open.find(key);
          expect(open == shown_->state().open.end() || open->second.node != agent.id,
                 "acked though not on disk: " + to_string(key));
          agent.pods.erase(key);
        }
        agent.reports.erase(report);
        break;
      }
    }
  }

  void start_one(Agent& agent) {
    if (!agent.lease || agent.running() >= agent.slots) return;
    for (auto& [key, process] : agent.pods) {
      if (process.state != Process::State::waiting) continue;
      expect(started_.insert(key).second, "started twice: " + to_string(key));
      if (object_->spec.indexed())
        expect(!runs_elsewhere(key) || overlaps(key), "two live pods of " + to_string(key));
      process.state = Process::State::running;
      return;
    }
  }

  // The pod is being deleted and its job wants a replacement at once, which may start first.
  bool overlaps(PodKey key) const {
    const Pod* pod = live_->pod(key);
    return !object_->spec.replace_only_failed() && (!pod || !pod->active());
  }

  // Whether another pod of the index is running and not being stopped.
  bool runs_elsewhere(PodKey pod) const {
    for (const Agent& agent : agents_) {
      // A pod on a lost node may keep running until the node is back and learns what to end.
      if (!agent.lease || !agent.ready) continue;
      for (const auto& [key, process] : agent.pods)
        if (key.index == pod.index && process.state == Process::State::running && live_->pod(key) &&
            live_->pod(key)->active())
          return true;
    }
    return false;
  }

  void end_one(Agent& agent) {
    for (auto& [key, process] : agent.pods) {
      if (process.state != Process::State::running || chance(30)) continue;
      if (steps_max_.any() && chance(fail_percent_)) {
        finish(key, process, chance(50) ? EndCause::out_of_memory : EndCause::deadline, 137);
        return;
      }
      int32_t code = chance(fail_percent_) ? static_cast<int32_t>(1 + pick(4)) : 0;
      if (code != 0 && object_->spec.pod.restart_policy == "OnFailure" && !chance(10)) {
        ++process.restarts;
        process.start_acked = false;
      } else {
        finish(key, process, EndCause::exited, code);
      }
      return;
    }
  }

  void return_one(Agent& agent) {
    for (auto& [key, process] : agent.pods) {
      if (process.state != Process::State::waiting) continue;
      finish(key, process, EndCause::returned, 0);
      return;
    }
  }

  void finish(PodKey key, Process& process, EndCause cause, int32_t exit_code) {
    if (process.state == Process::State::running) process.end.start = {100, {}};
    process.state = Process::State::ended;
    process.end.pod = key;
    process.end.cause = cause;
    process.end.exit_code = exit_code;
    process.end.restarts = process.restarts;
    truth_[key] = exit_code == 0 && cause != EndCause::never_started && cause != EndCause::returned;
  }

  void report(Agent& agent) {
    if (!agent.ready) return;
    PodsReported report{++tokens_, agent.id, {}, {}};
    auto& sent = agent.reports[report.token];
    for (const auto& [key, process] : agent.pods) {
      if (process.state == Process::State::ended) {
        report.ends.push_back(process.end);
        sent.second.push_back(key);
      } else if (process.state == Process::State::running && !process.start_acked && chance(60)) {
        report.starts.push_back({key, 100, process.restarts, 0});
        sent.first.push_back(key);
      }
    }
    if (report.starts.empty() && report.ends.empty()) {
      agent.reports.erase(report.token);
      return;
    }
    arrived_.push_back(report);
    if (chance(10)) arrived_.push_back(report);
  }

  // ---- what must hold

  void check_shown(const JobState& before, uint64_t succeeded_before) {
    const Job& job = *shown_;
    const JobState& s = job.state();
    expect(s.failed >= before.failed, "`failed` went back");
    // Within one batch, completions may have gone down and up again.
    auto lowest = std::min(before.completions, s.completions);
    for (size_t i = judged_; i < durable_.size(); ++i)
      if (const auto* changed = std::get_if<JobSpecChanged>(&durable_[i]))
        lowest = std::min(lowest, changed->completions);
    bool scaled = lowest < before.completions;
    expect(scaled || job.succeeded() >= succeeded_before, "`succeeded` went back");
    for (const auto& [first, last] : before.completed.intervals())
      for (uint32_t i = first; i <= last; ++i)
        expect(s.completed.contains(i) || static_cast<int32_t>(i) >= lowest,
               "an index is no longer completed");
    for (const auto& [first, last] : before.failed_indexes.intervals())
      for (uint32_t i = first; i <= last; ++i)
        expect(s.failed_indexes.contains(i) || static_cast<int32_t>(i) >= lowest,
               "an index is no longer failed");
    if (job.indexed()) {
      auto end = static_cast<uint32_t>(s.completions.value_or(0));
      expect(s.completed.lowest(end) > UINT32_MAX && s.failed_indexes.lowest(end) > UINT32_MAX,
             "an index out of range in the status");
    }
    for (const auto& [first, last] : s.failed_indexes.intervals())
      for (uint32_t i = first; i <= last; ++i)
        expect(!s.completed.contains(i), "an index is completed and failed");
    bool was_suspended = false, is_suspended = job.suspended();
    for (const Condition& c : before.conditions)
      if (c.type == ConditionType::suspended) was_suspended = c.status;
    expect(!before.started_at || s.started_at == before.started_at || suspensions() > 0,
           "startTime changed");
    expect(!is_suspended || !s.started_at || job.decided() || s.deleted_at.has_value(),
           "suspended with a startTime");
    expect(was_suspended == is_suspended || suspensions() > 0, "Suspended changed by itself");
    expect(!is_suspended || job.active() == 0, "active pods while suspended");
    expect(!before.completed_at || s.completed_at == before.completed_at, "completionTime changed");
    expect(s.conditions.size() >= before.conditions.size(), "a condition went away");
    for (size_t i = 0; i < before.conditions.size() && i < s.conditions.size(); ++i)
      expect(s.conditions[i] == before.conditions[i] ||
                 s.conditions[i].type == ConditionType::suspended,
             "a condition changed");
    expect(job.ready() <= job.active(), "more ready than active");
    bool complete = job.condition(ConditionType::complete),
         failed = job.condition(ConditionType::failed);
    expect(!(complete && failed), "Complete and Failed");
    expect(!(job.condition(ConditionType::success_criteria_met) &&
             job.condition(ConditionType::failure_target)),
           "decided twice");
    expect(!complete || job.condition(ConditionType::success_criteria_met),
           "Complete without its interim condition");
    expect(!failed || job.condition(ConditionType::failure_target),
           "Failed without its interim condition");
    expect(complete == (s.completed_at.has_value()), "completionTime goes with Complete");
    if (complete && s.started_at.has_value())
      expect(s.started_at.has_value() && s.completed_at >= s.started_at,
             "completionTime before startTime");
    if (complete || failed) expect(s.open.empty() && s.deferred.empty(), "finished with pods left");
    if (s.completions && !job.indexed())
      expect(s.succeeded <= static_cast<uint64_t>(*s.completions), "too many successes");
    // A surplus may persist until the nodes have answered, but must not grow.
    uint32_t active_before = 0;
    for (const auto& [key, pod] : before.open) active_before += pod.active();
    if (s.completions >= 0 && !s.orphaned)
      expect(job.active() <= std::max(active_before, static_cast<uint32_t>(s.parallelism)),
             "more active than parallelism");
    std::map<uint32_t, int> active, open;
    uint64_t restarts = 0;
    for (const auto& [key, pod] : s.open) {
      open[key.index] += 1;
      active[key.index] += pod.active();
      restarts += static_cast<uint64_t>(pod.restarts);
      expect(pod.counted != Counted::failed || !job.spec().replace_only_failed() ||
                 job.condition(ConditionType::failure_target),
             "counted as failed before its end");
    }
    expect(restarts == job.restarts(), "the sum of restarts");
    if (job.indexed())
      for (auto [index, n] : active) {
        expect(n <= 1, "an index has two active pods");
        expect(open[index] <= 1 || !job.spec().replace_only_failed() || suspended_once_ ||
                   scaled_once_,
               "an index has two open pods");
      }
    check_index_map();
    check_counts();
  }

  // An index is in at most one set, and that set agrees with the state of its pod.
  void check_index_map() {
    const Job& job = *shown_;
    const JobState& s = job.state();
    const IndexMap map = index_map(job, now_, {100, 1000});
    IndexSet all;
    uint64_t size = 0;
    for (const IndexSet* set :
         {&map.succeeded, &map.failed, &map.cancelled, &map.running, &map.pending, &map.backoff}) {
      all.insert_all(*set);
      size += set->size();
    }
    expect(all.size() == size, "an index is in two sets of the map");
    if (!job.indexed()) return expect(all.empty(), "a map without indexes");
    expect(all.lowest(static_cast<uint64_t>(s.completions.value_or(0))) > UINT32_MAX,
           "an index out of range in the map");
    expect(map.succeeded == s.completed, "the map's successes");
    for (const auto& [key, pod] : s.open) {
      const uint32_t i = key.index;
      if (!pod.active() || static_cast<int64_t>(i) >= s.completions) continue;
      expect(map.succeeded.contains(i) || map.failed.contains(i) || map.cancelled.contains(i) ||
                 map.running.contains(i) || (map.pending.contains(i) && !pod.ready()),
             "an active pod's index in the map");
    }
  }

  uint64_t suspensions() {
    uint64_t n = 0;
    for (size_t i = judged_; i < durable_.size(); ++i)
      n += std::holds_alternative<JobSuspended>(durable_[i]);
    return n;
  }

  void check_counts() {
    for (; judged_ < durable_.size(); ++judged_)
      std::visit([this](const auto& r) { tally(r); }, durable_[judged_]);
    const JobState& s = shown_->state();
    uint64_t held = s.deferred.size() - shown_->deferred_not_failed();
    expect(s.failed + held == failed_, "failed is " + std::to_string(s.failed) + " and " +
                                           std::to_string(held) + " deferred, the model says " +
                                           std::to_string(failed_));
    expect(shown_->succeeded() == (shown_->indexed() ? completed_.size() : succeeded_),
           "succeeded is " + std::to_string(shown_->succeeded()) + ", not as in the model");
    expect(s.pods_created == created_, "pods_created");
    if (shown_->indexed())
      for (uint32_t index : completed_)
        expect(s.completed.contains(index), "completedIndexes misses one");
  }

  // One break at a time: further failures that it causes count nowhere.
  void tally(const GangBroken& r) {
    expect(!broken_by_, "a broken gang broke again");
    expect(r.how.whole == whole_, "not the restart that the job asked for");
    broken_by_ = r.how.by;
    spared_ = uncounted_;
    spared_.erase(r.how.by);
  }
  void tally(const JobHeld&) { on_hold_ = true; }
  void tally(const JobReleased&) { on_hold_ = false; }
  void tally(const JobCancelled&) { cancelled_ = true; }
  void tally(const IndexesCancelled& r) { cancelled_indexes_.insert_all(r.indexes); }
  void tally(const PodsCreated& r) {
    expect(!on_hold_, "created while on hold");
    expect(!cancelled_, "created though the job is cancelled");
    for (const auto& run : r.runs)
      for (uint32_t i = run.first; i < run.first + run.count; ++i)
        expect(!object_->spec.indexed() || !cancelled_indexes_.contains(i),
               "created though the index is cancelled");
    // Pods that were open before this batch and have not ended in it.
    if (whole_)
      for (PodKey key : ever_)
        expect(ended_.contains(key) || gone_unbound_.contains(key) || !stopping_.contains(key),
               "created while " + to_string(key) + " of the former gang still ends");
    for (const auto& run : r.runs)
      for (uint32_t i = 0; i < run.count; ++i) {
        PodKey key{run.first + i, run.attempt};
        if (broken_by_ && (whole_ || key.index == 0)) {
          broken_by_.reset();
          spared_.clear();
        }
        expect(ever_.insert(key).second, "created twice: " + to_string(key));
        if (const auto next = next_steps_.find(gang_ ? 0 : key.index); next != next_steps_.end())
          steps_of_[key] = next->second;
        uncounted_.insert(key);
        ++created_;
        // A deleted pod that is still ending counts once its replacement exists.
        if (run.deferred_counted == Counted::not_yet) continue;
        for (auto it = deleted_.lower_bound({key.index, 0});
             it != deleted_.end() && it->index == key.index; ++it)
          if (uncounted_.erase(*it)) ++failed_;
      }
  }
  void tally(const JobSpecChanged& r) {
    scaled_once_ = true;
    if (!object_->spec.indexed() || r.completions.value_or(-1) >= completions_) {
      completions_ = r.completions.value_or(-1);
      return;
    }
    completions_ = r.completions.value_or(-1);
    auto end = static_cast<uint32_t>(r.completions.value_or(0));
    completed_.erase(completed_.lower_bound(end), completed_.end());
    cancelled_indexes_.erase_from(end);
    if (!gang_) next_steps_.erase(next_steps_.lower_bound(end), next_steps_.end());
    for (const auto& [index, pod] : before_->deferred)
      if (index >= end && dropped_.insert(pod.key).second &&
          pod.counts_when_replaced() == Counted::failed)
        --failed_;
  }
  void tally(const JobSuspended&) { suspended_once_ = true; }
  void tally(const PodConditionSet& r) {
    if (r.condition.type == "DisruptionTarget") disrupted_.insert(r.pod);
  }
  void tally(const PodsStopping& r) {
    for (const auto& one : r.pods) {
      stopping_.insert(one.pod);
      if (one.counted != Counted::not_yet && !bound_.contains(one.pod))
        gone_unbound_.insert(one.pod);
      expect(!spared_.contains(one.pod) || one.counted != Counted::failed,
             "charged twice: " + to_string(one.pod));
      if (one.counted == Counted::not_yet) {
        deleted_.insert(one.pod);
        continue;
      }
      if (!uncounted_.erase(one.pod)) continue;
      if (one.counted == Counted::failed) ++failed_;
      if (one.counted == Counted::ignored)
        expect(disrupted_.contains(one.pod), "ignored without a reason: " + to_string(one.pod));
      bool by_itself = one.counted == Counted::released && r.by_job;
      bool cancelled =
          one.counted == Counted::cancelled && cancelled_indexes_.contains(one.pod.index);
      bool by_mode = (one.counted == Counted::failed || one.counted == Counted::ignored) &&
                     !object_->spec.replace_only_failed();
      bool by_policy = one.counted == Counted::ignored;
      bool out_of_range = static_cast<int64_t>(one.pod.index) >= completions_;
      bool spared = one.counted == Counted::released && spared_.contains(one.pod);
      expect(by_itself || by_mode || by_policy || out_of_range || spared || cancelled,
             "counted without a reason: " + to_string(one.pod));
    }
  }
  void tally(const PodsBound& r) {
    expect(!on_hold_, "bound while on hold");
    for (const auto& one : r.bindings) bound_.insert(one.pod);
  }
  // The next pods get more, if there is more. A pod that was deleted, and one whose job or index is
  // decided, has no next pod.
  void check_steps(const PodsEnded::One& one) {
    const Steps had = steps_of_[one.pod];
    Steps next = had;
    if (one.end.cause == EndCause::out_of_memory && had.memory < steps_max_.memory) ++next.memory;
    if (one.end.cause == EndCause::deadline && had.time < steps_max_.time) ++next.time;
    const uint32_t index = one.pod.index;
    static const JobState kNothing;
    const JobState& s = before_ ? *before_ : kNothing;
    const bool settled = stopping_.contains(one.pod) || cancelled_indexes_.contains(index) ||
                         s.failed_indexes.contains(index) || completed_.contains(index) ||
                         ends_job_;
    if (next == had || static_cast<int64_t>(index) >= completions_)
      expect(!one.raised.any(), "raised without a reason: " + to_string(one.pod));
    else if (!settled && !s.index_limits_off)
      expect(one.raised == next, "not raised: " + to_string(one.pod));
    if (!one.raised.any()) return;
    expect(spared_.contains(one.pod) || (one.counted != Counted::failed && !one.fails_index),
           "raised, yet it failed");
    if (!gang_ && completed_.contains(index)) return;
    Steps& all = next_steps_[gang_ ? 0 : index];
    all = {std::max(all.memory, next.memory), std::max(all.time, next.time)};
  }
  // Mirrors failure_policy().
  bool ignores(const PodsEnded::One& one) const {
    if (!object_->spec.pod_failure_policy) return false;
    EndCause c = one.end.cause;
    bool platform = c == EndCause::keeper_lost || c == EndCause::node_lost;
    return platform || disrupted_.contains(one.pod) ||
           (one.end.exit_code == 2 && c != EndCause::never_started);
  }
  void tally(const PodsEnded& r) {
    // The state before this record.
    const bool led = completed_.contains(0);
    const std::set<PodKey> spared = spared_;
    for (const auto& one : r.ends) {
      expect(ended_.insert(one.pod).second, "ended twice: " + to_string(one.pod));
      bool success = one.end.succeeded();
      const bool worker = leads_ && one.pod.index != 0;
      bool unbound = one.end.cause == EndCause::never_started && !truth_.contains(one.pod);
      if (one.end.cause != EndCause::node_lost && !unbound) {
        expect(truth_.contains(one.pod) && truth_[one.pod] == success,
               "not how it ended: " + to_string(one.pod));
      }
      if (!uncounted_.contains(one.pod))
        expect(!one.raised.any(), "raised though it was counted: " + to_string(one.pod));
      if (!uncounted_.erase(one.pod)) continue;
      if (!success) check_steps(one);
      // A worker that was stopped has not succeeded.
      if (worker && one.end.cause != EndCause::exited && !led) success = false;
      bool in_range =
          !object_->spec.indexed() || static_cast<int64_t>(one.pod.index) < completions_;
      if (!in_range) {
        expect(one.counted == Counted::released, "counted out of range: " + to_string(one.pod));
      } else if (success) {
        completed_.insert(one.pod.index);
        if (!gang_) next_steps_.erase(one.pod.index);
        ++succeeded_;
        if (one.pod.index == 0 && broken_by_ && !whole_) {
          broken_by_.reset();
          spared_.clear();
        }
      } else if (spared.contains(one.pod)) {
        expect(one.counted == Counted::released, "charged twice: " + to_string(one.pod));
      } else if (one.end.cause == EndCause::returned) {
        expect(one.counted == Counted::released || one.counted == Counted::not_yet,
               "counted though it never ran: " + to_string(one.pod));
      } else if (!ignores(one) && !one.raised.any()) {
        ++failed_;
      }
    }
  }
  void tally(const FinishDecided& r) {
    ends_job_ = true;
    if (!r.success && r.reason != ConditionReason::cancelled) failed_ += uncounted_.size();
    uncounted_.clear();
  }
  void tally(const JobDeleted&) { uncounted_.clear(); }
  template <class Other>
  void tally(const Other&) {}

  void check_refold() {
    Job again(1, object_);
    for (const Record& record : durable_) again.apply(record);
    expect(again.state() == shown_->state(), "folding the records gives a different job");
    expect(unsynced_.empty() ? live_->state() == again.state() : true,
           "the live job differs from its fold");
  }

  std::mt19937_64 random_;
  Millis now_ = kBegin;
  uint32_t fail_percent_ = 0;
  JobObjectPtr object_;
  std::unique_ptr<Job> live_;   // ahead of the disk
  Hearing hearing_;             // for live_
  std::unique_ptr<Job> shown_;  // the fold of the durable records
  std::vector<Record> durable_;
  std::vector<Batch> unsynced_;
  std::deque<Event> arrived_;
  std::set<Millis> wakes_;
  AskSlots wanted_;
  std::map<std::pair<NodeId, Steps>, uint32_t> taken_;  // slots granted and not returned
  bool gang_ = false;
  Steps steps_max_;                       // none: the job has no steps
  std::map<uint32_t, Steps> next_steps_;  // the model's, by index; in a gang, of 0 for all
  std::map<PodKey, Steps> steps_of_;      // likewise, of each pod
  std::array<Agent, kAgents> agents_;
  NodeId nodes_ = 0;
  uint64_t tokens_ = 0;
  std::vector<NodeId> gone_;
  std::set<PodKey> started_;
  std::map<PodKey, bool> truth_;  // whether its process succeeded
  // The independent count: derived from exit codes and the order of records, not from verdicts.
  size_t judged_ = 0;
  bool ends_job_ = false;
  const JobState* before_ = nullptr;  // before the batch under check
  int64_t completions_ = 0;
  bool suspended_once_ = false, scaled_once_ = false, on_hold_ = false, cancelled_ = false;
  IndexSet cancelled_indexes_;
  uint64_t versions_ = 0;
  bool leads_ = false, whole_ = false;  // which gang rules apply
  std::optional<PodKey> broken_by_;
  std::set<PodKey> spared_, stopping_, bound_, gone_unbound_;
  std::set<PodKey> deleted_, disrupted_, dropped_;
  std::set<PodKey> ever_, ended_, uncounted_;
  std::set<uint32_t> completed_;
  uint64_t created_ = 0, succeeded_ = 0, failed_ = 0;
  std::string broken_;
};

TEST(Property, RandomHistoriesBreakNoInvariant) {
  if (const char* seed = std::getenv("MUSTER_SEED")) {
    World world(std::strtoull(seed, nullptr, 10));
    std::string broken = world.run();
    EXPECT_EQ(broken, "") << world.story();
    return;
  }
  const char* asked = std::getenv("MUSTER_HISTORIES");
  const uint64_t histories = asked ? std::strtoull(asked, nullptr, 10) : kHistories;
  for (uint64_t seed = 1; seed <= histories; ++seed) {
    World world(seed);
    std::string broken = world.run();
    ASSERT_EQ(broken, "") << "MUSTER_SEED=" << seed << " plays it again\n" << world.story();
  }
}

}  // namespace

}  // namespace muster::core
