// Random histories of nodes against core::cluster::decide(), each step checked against a model that
// is written from the rules in docs/scheduling.md and docs/guarantees.md, not from the code.
//
// With each plant (a fault at the border of decide(): an event or an effect is lost, or wrong),
// some history must break a rule. MUSTER_HISTORIES sets how many histories are played.
#include "core/cluster/rules/decide.hpp"
#include "tests/unit/core/cluster/rules/cluster_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

namespace muster::core::cluster {

namespace {

enum class NodePlant : uint8_t {
  none,
  tick_skipped,        // no tick reaches the leases, so silent nodes are never lost
  lost_too_early,      // two ticks for one
  loss_unsaid,         // the jobs are not told of a loss
  session_kept,        // the session of a lost node stays open
  disconnect_unseen,   // the end of a session changes nothing
  late_beat_believed,  // a heartbeat of an earlier session counts
  reboot_unseen,       // a reboot continues the incarnation
  name_unchecked,      // whoever knows a name may have it
  secret_unchecked,    // whoever knows a work-dir's id may have its name
  answer_lost,         // a refused agent is not answered
  ask_unheard,         // what a job wants leads to no placement
  health_unshown,      // changes of a node's health are not shown
  cordon_dropped,      // a change is answered, and not made
  spec_not_inherited,  // the next incarnation starts without the spec of its name
  drain_unseen,        // an agent's shutdown changes nothing
  trouble_unseen,      // a node in trouble gets pods
  row_lost,            // the row of a lost node is not written
  freed_twice,         // slots are freed twice, so they are granted twice
  slots_kept,          // jobs keep slots that others need
  strangers_ended,     // pods that a restored state does not contain are ended
  check_unseen,        // a node that fails its health check gets pods
  failures_unseen,     // a node that starts nothing gets pods
  recovery_unseen,     // a node that starts pods again gets none
  count,
};

constexpr const char* kNodePlants[] = {"none",
                                       "tick_skipped",
                                       "lost_too_early",
                                       "loss_unsaid",
                                       "session_kept",
                                       "disconnect_unseen",
                                       "late_beat_believed",
                                       "reboot_unseen",
                                       "name_unchecked",
                                       "secret_unchecked",
                                       "answer_lost",
                                       "ask_unheard",
                                       "health_unshown",
                                       "cordon_dropped",
                                       "spec_not_inherited",
                                       "drain_unseen",
                                       "trouble_unseen",
                                       "row_lost",
                                       "freed_twice",
                                       "slots_kept",
                                       "strangers_ended",
                                       "check_unseen",
                                       "failures_unseen",
                                       "recovery_unseen"};
static_assert(sizeof kNodePlants / sizeof *kNodePlants == static_cast<size_t>(NodePlant::count));

constexpr uint32_t kSlots = 2;
constexpr int kSteps = 400;

// An agent, with or without the right to its name.
struct Agent {
  std::string name, dir;
  std::string secret = "secret of " + dir;
  int boot = 1;
  bool frozen = false;    // sends no heartbeats
  uint64_t link = 0;      // of its session; 0: none
  uint64_t earlier = 0;   // of the session before
  NodeId node = kNoNode;  // as it was welcomed
  NodeTrouble trouble{};
  HealthCheck check{};
  uint64_t started = 0;  // processes of pods
};

// What the model knows of an incarnation.
struct Known {
  std::string name, dir, secret;
  int boot = 1;
  bool gone = false, deleted = false, draining = false, cordoned = false, troubled = false;
  bool held = false;                 // its loss
  bool unwell = false;               // it fails its health check
  std::map<JobId, uint32_t> failed;  // starts; here, each job is of a user of its own
  std::optional<uint64_t> started;   // as its agent said last, in this session
  std::optional<Millis> closed;      // until when it gets no probe
  Millis wait_ms = 0;                // between two probes
  uint64_t link = 0;
  uint32_t silent = 0;   // ticks since it was heard
  uint32_t granted = 0;  // slots
  bool ready() const { return !gone && link != 0 && silent < kTicksSuspect; }
  bool may_be_probed() const { return ready() && !draining && !cordoned && !troubled && !unwell; }
  bool takes_pods() const { return may_be_probed() && !closed; }
};

class History {
 public:
  History(uint64_t seed, NodePlant plant) : random_(seed), plant_(plant) {
    restored_ = below(2) == 0;
    settings_.cluster_id = "ours";
    settings_.cluster_key = "key";
    settings_.node_grace_ms = 16'000;
    settings_.line = restored_ ? EpochLine({{1, 1, 1}, {100, 100, 100, true}, {101, 101, 101}})
                               : EpochLine({{1, 1, 1}});
    cluster_ = std::make_unique<Cluster>(settings_, std::vector<NodeInfo>{});
    agents_ = {{"a", "d1"}, {"b", "d2"}, {"c", "d3"}, {"a", "thief"}, {"a", "d1", "guessed"}};
  }

  // The first rule that is broken; empty: none.
  std::string play() {
    for (int step = 0; step < kSteps && broken_.empty(); ++step) {
      this->step();
      check_shown();
    }
    return broken_;
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool planted(NodePlant plant) const { return plant_ == plant; }
  void expect(bool holds, const std::string& rule) {
    if (!holds && broken_.empty()) broken_ = rule;
  }

  void step() {
    Agent& agent = agents_[below(agents_.size())];
    switch (below(16)) {
      case 0:
      case 1:
        return enroll(agent);
      case 2:
        agent.frozen = below(3) == 0;
        return;
      case 3:
        return disconnect(agent);
      case 4:
        if (below(3) == 0) ++agent.boot, disconnect(agent);
        return;
      case 5:
        if (agent.link != 0 && below(3) == 0) {
          Known& known = known_.at(agent.node);
          if (known.link == agent.link) known.draining = true;
          if (!planted(NodePlant::drain_unseen)) decided(AgentLeaves{agent.node, agent.link});
        }
        return;
      case 6:
        agent.trouble = below(3) == 0 ? NodeTrouble{"KeeperNotResponding", "m"} : NodeTrouble{};
        agent.check = {below(2) == 0, ""};
        if (agent.check.runs && below(3) == 0) agent.check.failure = "disk";
        return;
      case 7:
        return change(agent.name);
      case 8:
        if (below(8) == 0) return erase(agent.name);
        return;
      case 9:
        if (below(6) == 0) return restart();
        return;
      case 10:
        return ask(1 + below(2));
      case 11:
        return give_back(1 + below(2));
      case 12:
        // Of a session that has ended.
        if (agent.earlier != 0) beat(agent.node, agent.earlier, Agent());
        return;
      default:
        return ticks();
    }
  }

  // ---- what happens

  void enroll(Agent& agent) {
    if (agent.link != 0) return;
    AgentRegisters event{++tokens_, {}};
    Hello& hello = event.hello;
    hello.link = ++links_;
    hello.node = agent.name;
    hello.work_dir_id = agent.dir;
    hello.secret = agent.secret;
    hello.boot_id = "b" + std::to_string(agent.boot);
    hello.cluster_id = "ours";
    hello.cluster_key = "key";
    hello.highest_epoch = hello.epoch_nonce = hello.highest_commit = 1;
    hello.slots = kSlots;
    hello.running = {{1, 7, 0}};
    registering_ = &agent;
    expected_ = expected_answer(agent);
    if (planted(NodePlant::name_unchecked) && living(agent.name) != kNoNode) {
      hello.work_dir_id = known_.at(living(agent.name)).dir;
      hello.secret = known_.at(living(agent.name)).secret;
    }
    if (planted(NodePlant::secret_unchecked)) hello.secret = "secret of " + agent.dir;
    if (planted(NodePlant::reboot_unseen) && living(agent.name) != kNoNode)
      hello.boot_id = "b" + std::to_string(known_.at(living(agent.name)).boot);
    answered_ = false;
    decided(event);
    expect(answered_, "a registration is answered");
    registering_ = nullptr;
  }

  // Which incarnation the agent must become: kNoNode: refused.
  NodeId expected_answer(const Agent& agent) const {
    const NodeId old = living(agent.name);
    if (old == kNoNode) return next_;
    const Known& known = known_.at(old);
    if (known.dir == agent.dir && known.secret == agent.secret)
      return known.boot == agent.boot ? old : next_;
    return known.silent >= kTicksPerTerm ? next_ : kNoNode;
  }

  void disconnect(Agent& agent) {
    if (agent.link == 0) return;
    const uint64_t link = agent.link;
    agent.earlier = std::exchange(agent.link, 0);
    Known& known = known_.at(agent.node);
    if (known.link == link) known.link = 0;
    if (!planted(NodePlant::disconnect_unseen)) decided(LinkDown{agent.node, link});
  }

  void beat(NodeId node, uint64_t link, const Agent& agent) {
    Known& known = known_.at(node);
    if (known.link == link && !known.gone) {
      known.silent = 0;
      known.held = false;
      known.troubled = static_cast<bool>(agent.trouble);
      known.unwell = agent.check.fails();
      if (known.started && agent.started > *known.started) open(known);
      known.started = agent.started;
    }
    Heartbeat event{node, link, agent.trouble, agent.started, agent.check};
    if (planted(NodePlant::late_beat_believed))
      if (const auto* it = cluster_->node(node); it && it->link) event.link = *it->link;
    if (planted(NodePlant::trouble_unseen)) event.trouble = {};
    if (planted(NodePlant::check_unseen)) event.check = {};
    if (planted(NodePlant::recovery_unseen)) event.started = 0;
    decided(event);
  }

  static void open(Known& known) {
    known.failed.clear();
    known.closed.reset();
  }
  // What a tick makes of the starts that failed.
  void close() {
    for (auto& [id, known] : known_) {
      if (known.gone || known.closed || !known.started) continue;
      const bool many = std::any_of(known.failed.begin(), known.failed.end(), [](const auto& one) {
        return one.second >= StartWatch::kStarts;
      });
      if (!many && known.failed.size() < StartWatch::kUsers) continue;
      known.wait_ms = StartWatch::kProbeMinMs;
      known.closed = now_.up_ms + known.wait_ms;
    }
  }

  void ticks() {
    for (Agent& agent : agents_)
      if (agent.link != 0 && !agent.frozen && broken_.empty()) beat(agent.node, agent.link, agent);
    for (auto& [id, known] : known_) ++known.silent;
    now_.wall_ms += 1'000;
    now_.up_ms += below(50) == 0 ? 60'000 : 1'000;
    if (planted(NodePlant::tick_skipped)) return check_silent();
    close();
    decided(Tick{});
    if (planted(NodePlant::lost_too_early)) decided(Tick{});
    check_silent();
    place();
  }

  void check_silent() {
    bool some_ready = false;
    for (const auto& [id, known] : known_) some_ready |= known.ready();
    for (auto& [id, known] : known_) {
      expect(!some_ready || known.gone || known.silent < kTicksPerTerm,
             "a node that is silent for a whole term is lost");
      known.held |= !known.gone && known.silent >= kTicksPerTerm;
    }
  }

  void change(const std::string& name) {
    const NodeId newest = newest_of(name);
    const bool stale = below(4) == 0;
    SpecRequest event{++tokens_, name, {}, {}};
    if (newest != kNoNode) event.seen.unschedulable = known_.at(newest).cordoned != stale;
    event.spec.unschedulable = below(2) == 0;
    if (newest != kNoNode && !stale) {
      Known& known = known_.at(newest);
      known.cordoned = event.spec.unschedulable;
      if (!known.cordoned) open(known);
    }
    if (planted(NodePlant::cordon_dropped)) event.spec = event.seen;
    using Outcome = AnswerRequest::Outcome;
    request(event, newest == kNoNode ? Outcome::not_found
                   : stale           ? Outcome::conflict
                                     : Outcome::done);
  }

  void request(const Event& event, AnswerRequest::Outcome outcome) {
    outcome_.reset();
    decided(event);
    expect(outcome_ == outcome, "a request gets the answer that it must have");
  }

  void erase(const std::string& name) {
    using Outcome = AnswerRequest::Outcome;
    const Outcome expected = newest_of(name) == kNoNode ? Outcome::not_found : Outcome::done;
    request(DeleteRequest{++tokens_, name}, expected);
  }

  void ask(JobId job) {
    auto& wanted = wanted_[job];
    wanted = static_cast<uint32_t>(below(4));
    if (!objects_[job]) objects_[job] = std::make_shared<JobObject>();
    decided(Want{job, wanted, received_[job], objects_[job]});
    place();
  }

  void place() {
    decided(PlaceNow{});
    check_free();
    for (const auto& [job, wanted] : wanted_)
      expect(wanted == 0 || std::none_of(keepers_.begin(), keepers_.end(),
                                         [this](JobId one) { return keeps(one); }),
             "while a job waits for slots, no job keeps any");
  }
  void check_free() {
    bool waits = false, free = false;
    for (const auto& [job, wanted] : wanted_) waits |= wanted > 0;
    for (const auto& [id, known] : known_) free |= known.takes_pods() && known.granted < kSlots;
    expect(!waits || !free, "no slot stays free while a job waits for one");
  }
  // A job that holds no slot has none to keep.
  bool keeps(JobId job) { return keepers_.contains(job) && !held_[job].empty(); }

  void give_back(JobId job) {
    auto& held = held_[job];
    if (held.empty()) return;
    const NodeId node = held.begin()->first;
    if (--held[node] == 0) held.erase(node);
    if (known_.at(node).granted > 0) --known_.at(node).granted;
    Freed event{job, {{node, 1}}};
    event.user = static_cast<uint32_t>(job);
    if (below(3) == 0) {
      if (!planted(NodePlant::failures_unseen)) event.failed_starts[node] = {1, "no home"};
      if (!known_.at(node).gone) ++known_.at(node).failed[job];
    } else if (below(2) == 0) {
      for (Agent& agent : agents_)
        if (agent.node == node && agent.link != 0) ++agent.started;
    }
    decided(event);
    if (planted(NodePlant::freed_twice)) decided(Freed{job, {{node, 1}}});
    place();
  }

  // The coordinator dies and reads the rows back.
  void restart() {
    std::vector<NodeInfo> nodes;
    for (auto& [id, row] : rows_) {
      row.health = row.gone ? NodeInfo::Health::lost : NodeInfo::Health::unknown;
      row.draining = row.loss_held = false;
      row.trouble = {};
      row.check = {};
      row.starts_failing.clear();
      nodes.push_back(row);
    }
    cluster_ = std::make_unique<Cluster>(settings_, nodes);
    for (const auto& [id, known] : known_) {
      const auto* node = cluster_->node(id);
      expect(node && node->info.gone == known.gone && node->info.deleted == known.deleted &&
                 node->info.spec.unschedulable == known.cordoned,
             "what was on record is there after a start");
    }
    for (auto& [id, known] : known_) {
      known.link = 0;
      known.silent = known.granted = 0;
      known.draining = known.troubled = known.held = known.unwell = false;
      known.started.reset();
      open(known);
    }
    shown_.clear();
    for (Agent& agent : agents_) agent.earlier = std::exchange(agent.link, 0);
    held_.clear();
    received_.clear();
    wanted_.clear();
    keepers_.clear();
  }

  // ---- what the cluster decides

  void decided(const Event& event) {
    Decision decision = decide(*cluster_, event, now_);
    if (planted(NodePlant::ask_unheard) && std::holds_alternative<Want>(event))
      decision.at_once.clear();
    if (planted(NodePlant::health_unshown))
      std::erase_if(decision.at_once,
                    [](const AtOnce& e) { return std::holds_alternative<ShowHealth>(e); });
    if (planted(NodePlant::answer_lost) && std::holds_alternative<AgentRegisters>(event))
      std::erase_if(decision.effects,
                    [](const Effect& e) { return std::holds_alternative<AnswerHello>(e); });
    check_prompt(event, decision);
    if (planted(NodePlant::slots_kept))
      std::erase_if(decision.at_once,
                    [](const AtOnce& e) { return std::holds_alternative<TakeKept>(e); });
    for (const Record& record : decision.records) take(record);
    check_ends(event, decision);
    std::set<JobId> before = keepers_;
    for (const AtOnce& effect : decision.at_once)
      std::visit([this](const auto& e) { carry_out(e); }, effect);
    check_kept(decision, before);
    for (const Effect& effect : decision.effects)
      std::visit([this](const auto& e) { carry_out(e); }, effect);
  }

  void take(const Record& record) {
    const NodeId id = node_of(record);
    if (const auto* r = std::get_if<NodeRegistered>(&record)) registered(r->node);
    if (std::holds_alternative<NodeLost>(record)) {
      const Known& known = known_.at(id);
      bool other_ready = false;
      for (const auto& [other, one] : known_) other_ready |= other != id && one.ready();
      expect(!known.gone && known.silent >= kTicksPerTerm && other_ready,
             "a node is lost only after a term of silence, while another one is ready");
    }
    if (is_end(record)) {
      known_.at(id).gone = true;
      known_.at(id).link = 0;
      known_.at(id).deleted = std::holds_alternative<NodeDeleted>(record);
      for (auto& [job, held] : held_) held.erase(id);
    }
    const bool unwritten = planted(NodePlant::row_lost) && is_end(record);
    if (is_durable(record) && id != kNoNode && !unwritten) rows_[id] = cluster_->node(id)->info;
    if (planted(NodePlant::spec_not_inherited) && std::holds_alternative<NodeRegistered>(record)) {
      cluster_->apply(NodeSpecChanged{id, {}});
      rows_[id] = cluster_->node(id)->info;
    }
  }

  void registered(const NodeInfo& info) {
    const Agent& agent = *registering_;
    expect(info.id == expected_,
           "an agent becomes the incarnation that its name, work-dir, secret "
           "and boot make it");
    if (known_.contains(info.id)) {
      Known& known = known_.at(info.id);
      known.link = 0;
      known.silent = 0;
      known.draining = known.held = false;
      return;
    }
    expect(info.id == next_, "ids rise by one and are never used again");
    next_ = std::max(next_, info.id + 1);
    const NodeId before = newest_of(agent.name);
    Known known{agent.name, agent.dir, agent.secret, agent.boot};
    known.cordoned = before != kNoNode && known_.at(before).cordoned;
    known_[info.id] = known;
  }

  // What must lead to a round of placement, and what the jobs must hear.
  void check_prompt(const Event& event, const Decision& decision) {
    bool soon = false, ready = false;
    for (const AtOnce& effect : decision.at_once) {
      soon |= std::holds_alternative<PlaceSoon>(effect);
      ready |= std::holds_alternative<NodeReadyNow>(effect);
    }
    const auto* up = std::get_if<LinkUp>(&event);
    const bool connects = up && !known_.at(up->node).gone;
    expect(soon || !(connects || std::holds_alternative<Want>(event) ||
                     std::holds_alternative<Freed>(event)),
           "slots are placed soon after they are wanted or free");
    expect(ready == connects, "the jobs hear of each connection of a node, and of nothing else");
  }

  // The end of each incarnation is told to the jobs and closes its session.
  void check_ends(const Event& event, Decision& decision) {
    std::multiset<NodeId> ended, said, dropped;
    for (const Record& record : decision.records)
      if (is_end(record)) ended.insert(node_of(record));
    if (planted(NodePlant::loss_unsaid))
      std::erase_if(decision.effects,
                    [](const Effect& e) { return std::holds_alternative<NodeIsLost>(e); });
    if (planted(NodePlant::session_kept))
      std::erase_if(decision.effects,
                    [](const Effect& e) { return std::holds_alternative<DropLink>(e); });
    for (const Effect& effect : decision.effects) {
      if (const auto* e = std::get_if<NodeIsLost>(&effect)) said.insert(e->node);
      if (const auto* e = std::get_if<DropLink>(&effect)) dropped.insert(e->node);
    }
    expect(ended == said, "the jobs are told of the end of each incarnation, once");
    expect(std::holds_alternative<LinkUp>(event) || dropped == ended,
           "the session of a node that is gone is closed, and no other");
  }

  void check_shown() {
    for (const auto& [id, known] : known_) {
      if (known.gone) continue;
      const auto it = shown_.find(id);
      const NodeHealth shown = it == shown_.end() ? NodeHealth{} : it->second;
      expect((shown.health == NodeInfo::Health::ready) == known.ready() &&
                 shown.draining == known.draining &&
                 static_cast<bool>(shown.trouble) == known.troubled &&
                 shown.check.fails() == known.unwell &&
                 shown.starts_failing.empty() == !known.closed && shown.loss_held == known.held,
             "a node is shown as it is");
    }
  }

  void check_kept(const Decision& decision, const std::set<JobId>& before) {
    bool changed = false;
    for (const Record& record : decision.records)
      changed |= is_end(record) || std::holds_alternative<NodeSpecChanged>(record);
    for (const AtOnce& effect : decision.at_once)
      changed |= std::holds_alternative<ShowHealth>(effect);
    for (JobId job : before)
      expect(!changed || !keeps(job),
             "after a change in who takes pods, no job keeps the slots that it frees");
  }

  // ---- effects

  void carry_out(const Grant& e) {
    for (auto [node, count] : e.slots) {
      Known& known = known_.at(node);
      if (known.closed && known.may_be_probed()) {
        expect(*known.closed <= now_.up_ms && count == 1,
               "a node that starts nothing gets one pod, when it is due");
        known.wait_ms = known.failed.size() == 1
                            ? StartWatch::kProbeMinMs
                            : std::min(2 * known.wait_ms, StartWatch::kProbeMaxMs);
        known.closed = now_.up_ms + known.wait_ms;
      } else {
        expect(known.takes_pods(),
               "only a node that is connected, responding, not draining, not cordoned, not in "
               "trouble and healthy gets pods");
      }
      expect(e.links.at(node) == known.link, "a grant names the node's session");
      known.granted += count;
      expect(known.granted <= kSlots, "no slot is granted twice");
      held_[e.job][node] += count;
      received_[e.job] += count;
    }
    auto& wanted = wanted_[e.job];
    for (auto [node, count] : e.slots) wanted -= std::min(wanted, count);
    e.keep ? void(keepers_.insert(e.job)) : void(keepers_.erase(e.job));
  }
  void carry_out(const TakeKept& e) { keepers_.erase(e.job); }
  void carry_out(const ShowShares&) {}
  void carry_out(const ShowHealth& e) { shown_[e.health.id] = e.health; }
  void carry_out(const AskJobs& e) {
    JobsAnswered event{e.token, e.node, e.restored, {{1, 7, 0}}, {}, e.spared};
    if (restored_) event.end = e.known;  // the restored state does not contain it
    if (planted(NodePlant::strangers_ended)) event.restored = false;
    expect(e.restored == restored_,
           "an agent with a history from before a restore is known as one");
    asked_link_ = e.link;
    decided(event);
  }
  void carry_out(const AnswerHello& e) {
    Agent& agent = *registering_;
    answered_ = true;
    if (e.answer.kind != HelloAnswer::Kind::welcome)
      return expect(expected_ == kNoNode, "an agent with the right to its name is welcome");
    expect(e.answer.node == expected_, "an agent without the right to its name is refused");
    expect(!restored_ || e.answer.end.empty(), "what runs from before a restore is left alone");
    agent.node = e.answer.node;
    agent.link = asked_link_;
    if (!known_.contains(agent.node)) return;
    Known& known = known_.at(agent.node);
    known.link = agent.link;
    known.silent = 0;
    known.held = false;
    known.started.reset();
    decided(LinkUp{agent.node, agent.link});
  }
  void carry_out(const DropLink& e) {
    for (Agent& agent : agents_)
      if (agent.node == e.node && agent.link != 0) agent.earlier = std::exchange(agent.link, 0);
  }
  void carry_out(const StopOutdated&) { expect(false, "nobody proves that this is outdated"); }
  void carry_out(const AnswerRequest& e) { outcome_ = e.outcome; }
  template <class E>
  void carry_out(const E&) {}

  NodeId living(const std::string& name) const {
    for (const auto& [id, known] : known_)
      if (known.name == name && !known.gone) return id;
    return kNoNode;
  }
  NodeId newest_of(const std::string& name) const {
    for (auto it = known_.rbegin(); it != known_.rend(); ++it)
      if (it->second.name == name) return it->second.deleted ? kNoNode : it->first;
    return kNoNode;
  }

  std::mt19937_64 random_;
  const NodePlant plant_;
  Settings settings_;
  bool restored_ = false;
  Now now_{1'767'225'600'000, 1'000, 1, 8};
  std::unique_ptr<Cluster> cluster_;
  std::map<NodeId, NodeInfo> rows_;
  std::vector<Agent> agents_;
  Agent* registering_ = nullptr;
  bool answered_ = false;
  std::optional<AnswerRequest::Outcome> outcome_;
  std::map<NodeId, NodeHealth> shown_;
  NodeId expected_ = kNoNode;
  uint64_t asked_link_ = 0;
  std::map<NodeId, Known> known_;
  NodeId next_ = 1;
  std::map<JobId, std::map<NodeId, uint32_t>> held_;
  std::map<JobId, uint64_t> received_;
  std::map<JobId, uint32_t> wanted_;
  std::map<JobId, JobObjectPtr> objects_;
  std::set<JobId> keepers_;
  uint64_t tokens_ = 0, links_ = 0;
  std::string broken_;
};

int histories() {
  const char* word = std::getenv("MUSTER_HISTORIES");
  return word == nullptr ? 1'000 : std::atoi(word);
}

TEST(NodeHistories, RandomHistoriesBreakNoInvariant) {
  for (int seed = 1; seed <= histories(); ++seed) {
    const std::string broken = History(static_cast<uint64_t>(seed), NodePlant::none).play();
    ASSERT_EQ(broken, "") << "seed " << seed;
  }
}

class NodePlantTest : public testing::TestWithParam<int> {};

TEST_P(NodePlantTest, PlantedFaultIsNoticed) {
  constexpr uint64_t kSeedsMax = 200;
  for (uint64_t seed = 1; seed <= kSeedsMax; ++seed)
    if (!History(seed, static_cast<NodePlant>(GetParam())).play().empty()) return;
  FAIL() << kNodePlants[GetParam()] << " went unnoticed in " << kSeedsMax << " histories";
}

INSTANTIATE_TEST_SUITE_P(Each, NodePlantTest, testing::Range(1, static_cast<int>(NodePlant::count)),
                         [](const auto& plant) { return std::string(kNodePlants[plant.param]); });

}  // namespace

}  // namespace muster::core::cluster
