// Random histories of a job: agents that lose connections, boots and patience, a journal that
// forgets what was not synced, a client that remembers what it was shown.
//
// In each history something happens at random for a while, then the faults stop and the job must
// finish. What must hold is checked against this little world (what really ran and how it ended)
// and against a count of its own over the records. A failure prints its seed; MUSTER_SEED=4711
// plays that history alone.
#include "core/job/decide.hpp"
#include "core/spec/defaults.hpp"
#include "core/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <set>

namespace muster::core {

namespace {

constexpr uint64_t kHistories = 5000;
constexpr int kFaultySteps = 160;
constexpr int kCalmRounds = 4000;
constexpr size_t kAgents = 3;
constexpr Millis kBegin = 1'000'000;

struct Process {
  enum class State { waiting, running, ended };
  State state = State::waiting;
  bool start_acked = false;
  PodsReported::Ended end;
};

// What the coordinator sends to an agent; in order, until the connection breaks.
struct Message {
  enum class Kind { launch, kill, ack };
  Kind kind;
  PodKey pod;
  uint64_t token = 0;
};

struct Agent {
  NodeId id = kNoNode;
  bool connected = false;
  bool ready = false;
  bool lost = false;  // declared so; it runs what it runs
  bool lease = true;  // may start; over when it is lost, until it is back and was told what to end
  uint32_t slots = 0;
  uint32_t free = 0;  // in the cluster's books
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

  // Empty when all held; else what did not.
  std::string run() {
    for (int i = 0; i < kFaultySteps && !over(); ++i) random_step();
    for (int i = 0; i < kCalmRounds && !over(); ++i) calm_round();
    if (broken_.empty() && !shown_->finished() && !shown_->state().forgotten)
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
    return !broken_.empty() || shown_->state().forgotten || (shown_->finished() && quiet);
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
    apply_defaults(object->meta, spec);
    return object;
  }

  void random_step() {
    Agent& agent = agents_[pick(kAgents)];
    switch (pick(16)) {
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

  // Time goes on, everyone does what he has to do, nobody fails.
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
    // All that arrived is one sync; sometimes the last ones come a moment later.
    size_t n = chance(70) ? arrived_.size() : 1 + pick(static_cast<uint32_t>(arrived_.size()));
    for (size_t i = 0; i < n; ++i) {
      events.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
    }
    Decision decision = decide(*live_, events, now_, {100, 1000});
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
      check_shown(before, succeeded_before);
      for (const Effect& effect : batch.effects)
        std::visit([this](const auto& e) { act(e); }, effect);
    }
  }

  void crash() {
    unsynced_.clear();
    arrived_.clear();
    wakes_.clear();
    // From a snapshot and the records after it.
    size_t cut = pick(static_cast<uint32_t>(durable_.size()) + 1);
    Job until(1, object_);
    for (size_t i = 0; i < cut; ++i) until.apply(durable_[i]);
    live_ = std::make_unique<Job>(1, object_, until.state());
    for (size_t i = cut; i < durable_.size(); ++i) live_->apply(durable_[i]);
    expect(live_->state() == shown_->state(), "a restart gives another job than was shown");
    if (durable_.empty()) {
      // Never accepted: its owner submits it again.
      Record admitted = JobAdmitted{now_, object_};
      live_->apply(admitted);
      unsynced_.push_back({{admitted}, {}});
    }
    wanted_ = 0;
    for (const Effect& effect : live_->standing(now_))
      if (const auto* ask = std::get_if<AskSlots>(&effect)) wanted_ = ask->wanted;
    for (Agent& agent : agents_) {
      disconnect(agent);
      agent.free = agent.slots - open_on(*live_, agent.id);
    }
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

  void remove() { arrived_.push_back(JobDeletion{0, chance(50)}); }

  // The cluster: what it has granted is no longer wanted, unless the job asks anew.
  void grant(Agent& agent) {
    uint32_t n = std::min(wanted_, agent.free);
    if (n == 0 || agent.lost || !agent.ready) return;
    wanted_ -= n;
    agent.free -= n;
    arrived_.push_back(SlotsGranted{{{agent.id, n}}});
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
  void act(const AckReport& e) {
    for (Agent& agent : agents_)
      if (agent.reports.contains(e.token)) agent.inbox.push_back({Message::Kind::ack, {}, e.token});
  }
  void act(const Answer&) {}
  void act(const AskSlots& e) { wanted_ = e.wanted; }
  void act(const FreeSlots& e) {
    for (auto [node, count] : e.slots) {
      Agent* agent = agent_of(node);
      if (!agent) continue;
      agent->free += count;
      expect(agent->free <= agent->slots, "more slots given back than there are");
    }
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
    expect(e.forgotten ? shown_->state().forgotten : shown_->finished(), "over too early");
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
    // What it had sent is dropped by the link of the connection that broke.
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
        expect(!runs_elsewhere(key), "two live pods of " + to_string(key));
      process.state = Process::State::running;
      return;
    }
  }

  bool runs_elsewhere(PodKey pod) const {
    for (const Agent& agent : agents_) {
      // A copy on a node that was declared lost may run on until it is back and was told.
      if (!agent.lease || !agent.ready) continue;
      for (const auto& [key, process] : agent.pods)
        if (key.index == pod.index && process.state == Process::State::running) return true;
    }
    return false;
  }

  void end_one(Agent& agent) {
    for (auto& [key, process] : agent.pods) {
      if (process.state != Process::State::running || chance(30)) continue;
      finish(key, process, EndCause::exited, chance(fail_percent_) ? 1 : 0);
      return;
    }
  }

  void finish(PodKey key, Process& process, EndCause cause, int32_t exit_code) {
    process.end.pid = process.state == Process::State::running ? 100 : 0;
    process.state = Process::State::ended;
    process.end.pod = key;
    process.end.cause = cause;
    process.end.exit_code = exit_code;
    truth_[key] = exit_code == 0 && cause != EndCause::never_started;
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
        report.starts.push_back({key, 100, 0, 0});
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
    expect(job.succeeded() >= succeeded_before, "`succeeded` went back");
    for (const auto& [first, last] : before.completed.intervals())
      for (uint32_t i = first; i <= last; ++i)
        expect(s.completed.contains(i), "an index is no longer completed");
    for (const auto& [first, last] : before.failed_indexes.intervals())
      for (uint32_t i = first; i <= last; ++i)
        expect(s.failed_indexes.contains(i), "an index is no longer failed");
    for (const auto& [first, last] : s.failed_indexes.intervals())
      for (uint32_t i = first; i <= last; ++i)
        expect(!s.completed.contains(i), "an index is completed and failed");
    expect(before.start_ms == 0 || s.start_ms == before.start_ms, "startTime changed");
    expect(before.completion_ms == 0 || s.completion_ms == before.completion_ms,
           "completionTime changed");
    expect(s.conditions.size() >= before.conditions.size(), "a condition went away");
    for (size_t i = 0; i < before.conditions.size() && i < s.conditions.size(); ++i)
      expect(s.conditions[i] == before.conditions[i], "a condition changed");
    expect(job.ready() <= job.active(), "more ready than active");
    bool complete = job.condition("Complete"), failed = job.condition("Failed");
    expect(!(complete && failed), "Complete and Failed");
    expect(!(job.condition("SuccessCriteriaMet") && job.condition("FailureTarget")),
           "decided twice");
    expect(!complete || job.condition("SuccessCriteriaMet"),
           "Complete without its interim condition");
    expect(!failed || job.condition("FailureTarget"), "Failed without its interim condition");
    expect(complete == (s.completion_ms != 0), "completionTime goes with Complete");
    if (complete)
      expect(s.start_ms != 0 && s.completion_ms >= s.start_ms, "completionTime before startTime");
    if (complete || failed) expect(s.open.empty() && s.held.empty(), "finished with pods left");
    if (s.completions >= 0 && !job.indexed())
      expect(s.succeeded <= static_cast<uint64_t>(s.completions), "too many successes");
    expect(job.active() <= static_cast<uint32_t>(s.parallelism), "more active than parallelism");
    if (job.indexed())
      for (auto it = s.open.begin(); it != s.open.end(); ++it)
        if (auto next = std::next(it); next != s.open.end())
          expect(next->first.index != it->first.index, "an index has two open pods");
    check_counts();
  }

  // Every end once, by a count of its own: from exit codes and orders of records, not from their
  // verdicts.
  void check_counts() {
    for (; judged_ < durable_.size(); ++judged_)
      std::visit([this](const auto& r) { tally(r); }, durable_[judged_]);
    const JobState& s = shown_->state();
    expect(s.failed + s.held.size() == failed_,
           "failed is " + std::to_string(s.failed) + " and " + std::to_string(s.held.size()) +
               " held, the model says " + std::to_string(failed_));
    expect(shown_->succeeded() == (shown_->indexed() ? completed_.size() : succeeded_),
           "succeeded is " + std::to_string(shown_->succeeded()) + ", not as in the model");
    expect(s.pods_created == created_, "pods_created");
    if (shown_->indexed())
      for (uint32_t index : completed_)
        expect(s.completed.contains(index), "completedIndexes misses one");
  }

  void tally(const PodsCreated& r) {
    for (const auto& run : r.runs)
      for (uint32_t i = 0; i < run.count; ++i) {
        PodKey key{run.first + i, run.attempt};
        expect(ever_.insert(key).second, "created twice: " + to_string(key));
        uncounted_.insert(key);
        ++created_;
      }
  }
  void tally(const PodsEnded& r) {
    for (const auto& one : r.ends) {
      expect(ended_.insert(one.pod).second, "ended twice: " + to_string(one.pod));
      bool success = one.end.succeeded();
      if (one.end.cause != EndCause::node_lost) {
        expect(truth_.contains(one.pod) && truth_[one.pod] == success,
               "not how it ended: " + to_string(one.pod));
      }
      if (!uncounted_.erase(one.pod)) continue;
      if (success) {
        completed_.insert(one.pod.index);
        ++succeeded_;
      } else {
        ++failed_;
      }
    }
  }
  void tally(const FinishDecided& r) {
    if (!r.success) failed_ += uncounted_.size();
    uncounted_.clear();
  }
  void tally(const JobDeleted&) { uncounted_.clear(); }
  template <class Other>
  void tally(const Other&) {}

  void check_refold() {
    Job again(1, object_);
    for (const Record& record : durable_) again.apply(record);
    expect(again.state() == shown_->state(), "the fold of the records is another job");
    expect(unsynced_.empty() ? live_->state() == again.state() : true,
           "the live job differs from its fold");
  }

  std::mt19937_64 random_;
  Millis now_ = kBegin;
  uint32_t fail_percent_ = 0;
  JobObjectPtr object_;
  std::unique_ptr<Job> live_;   // runs ahead of the disk
  std::unique_ptr<Job> shown_;  // the fold of what is on disk
  std::vector<Record> durable_;
  std::vector<Batch> unsynced_;
  std::deque<Event> arrived_;
  std::set<Millis> wakes_;
  uint32_t wanted_ = 0;
  std::array<Agent, kAgents> agents_;
  NodeId nodes_ = 0;
  uint64_t tokens_ = 0;
  std::vector<NodeId> gone_;
  std::set<PodKey> started_;
  std::map<PodKey, bool> truth_;  // how its process ended: with success?
  // The model's count.
  size_t judged_ = 0;
  std::set<PodKey> ever_, ended_, uncounted_;
  std::set<uint32_t> completed_;
  uint64_t created_ = 0, succeeded_ = 0, failed_ = 0;
  std::string broken_;
};

TEST(Property, RandomHistories) {
  if (const char* seed = std::getenv("MUSTER_SEED")) {
    World world(std::strtoull(seed, nullptr, 10));
    std::string broken = world.run();
    EXPECT_EQ(broken, "") << world.story();
    return;
  }
  for (uint64_t seed = 1; seed <= kHistories; ++seed) {
    World world(seed);
    std::string broken = world.run();
    ASSERT_EQ(broken, "") << "MUSTER_SEED=" << seed << " plays it again\n" << world.story();
  }
}

}  // namespace

}  // namespace muster::core
