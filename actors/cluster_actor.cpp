#include "actors/cluster_actor.hpp"

#include "actors/gate.hpp"
#include "actors/supervise.hpp"
#include "base/log.hpp"
#include "base/seldom.hpp"
#include "core/cluster/rules/decide.hpp"
#include "storage/rows/rows.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

namespace muster::actors {

namespace {

namespace fold = core::cluster;

class ClusterActor : public GatedActor<cluster_actor> {
 public:
  ClusterActor(caf::actor_config& config, journal_actor journal,
               std::function<registry_actor()> registry, SealedLink link, WallClock clock,
               ClusterOptions options, const std::vector<core::NodeInfo>& nodes,
               const std::map<JobId, HeldSlots>& holds)
      : GatedActor(config, std::move(journal), link),
        registry_(std::move(registry)),
        clock_(std::move(clock)),
        options_(std::move(options)),
        cluster_(options_.settings, nodes) {
    for (const auto& [id, held] : holds) cluster_.slots().hold(id, held.object, held.slots);
  }

  behavior_type make_behavior() override {
    delayed_send(this, tick(), beat_atom_v);
    return {
        [this](const RegisterAgent& m) { enroll(m); },
        [this](const LinkUp& m) { decide(m); },
        [this](const LinkDown& m) { decide(m); },
        [this](const Heartbeat& m) { decide(m); },
        [this](const AgentLeaves& m) { decide(m); },
        [this](const QueuesChanged& m) { decide(m); },
        [this](const Want& m, const job_actor& job) { want(m, job); },
        [this](const Freed& m) {
          decide(m);
          forget_idle(m.job);
        },
        [this](const JobLeft& m) {
          decide(m);
          forget_idle(m.job);
          core::each_steps([&](core::Steps steps) { forget_idle(core::in_steps(m.job, steps)); });
        },
        [this](const ChangeNode& m) {
          decide(fold::SpecRequest{keep(requests_, {m.name, m.done}), m.name, m.seen, m.spec});
        },
        [this](const DeleteNode& m) {
          decide(fold::DeleteRequest{keep(requests_, {m.name, m.done}), m.name});
        },
        [this](const EndUnknownPods& m) {
          decide(fold::EndStrangersRequest{keep(requests_, {m.name, m.done}), m.name});
        },
        [this](const durable_atom&, uint64_t number, uint64_t commit) {
          gate_.open(number, commit);
        },
        [this](const sync_atom&, uint64_t token) {
          decide(std::move(*answers_.extract(token).mapped()));
        },
        [this](const place_atom&) {
          place_due_ = false;
          decide(fold::PlaceNow{});
        },
        [this](const beat_atom&) {
          delayed_send(this, tick(), beat_atom_v);
          decide(fold::Tick{});
        },
        [this](const stop_atom&) { quit(); },
    };
  }

  void on_exit() override {
    actors_.clear();
    hellos_.clear();
    requests_.clear();
    answers_.clear();
    registry_ = nullptr;
    gate_.close();
  }

 private:
  struct Request {
    std::string name;
    Reply<Status> done;
  };

  std::chrono::milliseconds tick() const {
    return std::chrono::milliseconds(core::tick_ms(options_.settings.node_grace_ms));
  }
  // Milliseconds of a monotonic clock.
  Millis uptime() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock().now().time_since_epoch())
        .count();
  }
  // Keeps what an effect with the returned token needs.
  template <class T>
  uint64_t keep(std::map<uint64_t, T>& waiting, T what) {
    waiting.emplace(++last_token_, std::move(what));
    return last_token_;
  }

  void enroll(const RegisterAgent& m) {
    const uint64_t token = keep(hellos_, m);
    decide(fold::AgentRegisters{token, m.hello, !m.hello.ends.empty()});
  }

  void want(const Want& m, const job_actor& actor) {
    actors_[m.job] = actor;
    decide(m);
    forget_idle(m.job);
  }

  // A job that neither waits for slots nor holds some.
  void forget_idle(JobId job) {
    if (!cluster_.slots().knows(job)) actors_.erase(job);
  }

  void decide(const fold::Event& event) {
    fold::Decision decision =
        fold::decide(cluster_, event,
                     {clock_(), uptime(), options_.last_commit(),
                      options_.next_job ? std::optional(options_.next_job->load()) : std::nullopt});
    for (fold::AtOnce& effect : decision.at_once)
      std::visit([this](auto& one) { carry_out(one); }, effect);
    // Not before at_once: jobs that are forgotten now were told there to return their slots.
    if (std::any_of(decision.records.begin(), decision.records.end(), fold::is_end))
      std::erase_if(actors_,
                    [this](const auto& one) { return !cluster_.slots().knows(one.first); });
    journal(std::move(decision));
  }

  // Appends the rows of the nodes that durable records have changed; then come the effects.
  void journal(fold::Decision decision) {
    std::set<NodeId> changed;
    Append append;
    for (const fold::Record& record : decision.records) {
      if (const auto* uses = std::get_if<fold::UsesNoted>(&record))
        append.rows.push_back(storage::uses_row(uses->noted));
      else if (is_durable(record))
        changed.insert(node_of(record));
    }
    if (changed.empty() && append.rows.empty() && decision.effects.empty()) return;
    auto then = [this, effects = std::move(decision.effects)](const Durable& durable) {
      for (const fold::Effect& effect : effects)
        std::visit([&](const auto& one) { carry_out(durable, one); }, effect);
    };
    if (changed.empty() && append.rows.empty()) return gate_.after(std::move(then));
    for (const NodeId node : changed) {
      core::NodeInfo info = cluster_.node(node)->info;
      append.rows.push_back(storage::node_row(info));
      // Health may have changed again by the time this is durable, so the read model keeps the
      // health it has.
      if (!info.gone) info.health = core::NodeInfo::Health::unknown;
      append.nodes.push_back(std::move(info));
    }
    gate_.after(std::move(append), std::move(then));
  }

  // ---- at once

  void carry_out(const fold::TakeEnds& e) {
    auto again = std::make_shared<RegisterAgent>(std::move(hellos_.extract(e.token).mapped()));
    Report report{e.node, std::exchange(again->hello.ends, {}), nullptr};
    for (auto& [job, part] : report.jobs) part.node = e.node;
    report.done = [me = cluster_actor{this}, again](std::vector<PodId>) {
      caf::anon_send(me, *again);
    };
    send(registry_(), std::move(report));
  }
  void carry_out(const fold::StopOutdated& e) {
    hellos_.erase(e.token);
    options_.outdated(e.why);
  }
  void carry_out(const fold::AllRegistered&) { options_.all_here(); }
  void carry_out(const NodeReadyNow& e) { send(registry_(), e); }
  void carry_out(const fold::ShowHealth& e) { options_.show(e.health); }
  void carry_out(const fold::ShowShares& e) { options_.show_shares(e); }
  void carry_out(const fold::TakeKept& e) { send(actors_.at(e.job), ReturnSlots{}); }
  void carry_out(fold::Grant& e) {
    send(actors_.at(e.job),
         Granted{std::move(e.slots), std::move(e.links), e.keep, core::steps_of(e.job)});
  }
  void carry_out(fold::TakeBack& e) {
    send(actors_.at(e.job), Preempt{std::move(e.slots), core::steps_of(e.job)});
  }
  void carry_out(fold::TellLeave& e) {
    send(actors_.at(e.job), LeaveNodes{std::move(e.nodes), core::steps_of(e.job)});
  }
  void carry_out(const fold::TellNowhere& e) { send(actors_.at(e.job), HasNowhere{}); }
  void carry_out(const fold::PlaceSoon&) {
    if (std::exchange(place_due_, true)) return;
    send(this, place_atom_v);
  }
  void carry_out(const fold::PlaceAfter& e) {
    const Millis now = uptime();
    if (again_at_ > now) return;
    again_at_ = now + e.ms;
    delayed_send(this, std::chrono::milliseconds(e.ms), place_atom_v);
  }
  void carry_out(const fold::Log& e) {
    std::string text = e.text;
    if (e.seldom) {
      const auto more = seldom_.due(uptime());
      if (!more) return;
      text += *more;
    }
    using Level = fold::Log::Level;
    if (e.level == Level::info) return log::info("{}", text);
    e.level == Level::warn ? log::warn("{}", text) : log::error("{}", text);
  }

  // ---- once durable

  void carry_out(const Durable& durable, const fold::AnswerHello& e) {
    hellos_.extract(e.token).mapped().done(durable, e.answer);
  }
  void carry_out(const Durable& durable, const fold::AnswerRequest& e) {
    const Request request = std::move(requests_.extract(e.token).mapped());
    using Outcome = fold::AnswerRequest::Outcome;
    Status answer = Nothing{};
    if (e.outcome == Outcome::conflict)
      answer = Error{Errc::conflict, "the node has been modified", {}};
    if (e.outcome == Outcome::not_found)
      answer = Error{Errc::not_found, "nodes \"" + request.name + "\" not found", {}};
    request.done(durable, std::move(answer));
  }
  void carry_out(const Durable&, const fold::AskJobs& e) {
    auto event = std::make_shared<fold::JobsAnswered>();
    event->token = e.token;
    event->node = e.node;
    event->restored = e.restored;
    event->running = hellos_.at(e.token).hello.running;
    event->spared = e.spared;
    answers_.emplace(e.token, event);
    Reconcile ask{e.node, e.link, {}, e.restored, nullptr};
    for (PodId pod : e.known) ask.known[pod.job].insert(pod.key());
    ask.answered = [me = cluster_actor{this}, event](std::vector<PodId> end) {
      event->end = std::move(end);
      caf::anon_send(me, sync_atom_v, event->token);
    };
    send(registry_(), std::move(ask));
  }
  void carry_out(const Durable&, const NodeIsLost& e) { send(registry_(), e); }
  void carry_out(const Durable& durable, const fold::DropLink& e) { durable.link().drop(e.node); }
  void carry_out(const Durable&, const fold::PlaceSoon& e) { carry_out(e); }

  std::function<registry_actor()> registry_;
  WallClock clock_;
  ClusterOptions options_;
  fold::Cluster cluster_;
  // Of the jobs that wait for slots or hold some, by the ids that Slots knows.
  std::map<JobId, job_actor> actors_;
  bool place_due_ = false;
  Millis again_at_ = 0;  // uptime of the next scheduled round of placement
  Seldom seldom_;
  uint64_t last_token_ = 0;
  std::map<uint64_t, RegisterAgent> hellos_;  // by token: those that are not answered
  std::map<uint64_t, Request> requests_;
  std::map<uint64_t, std::shared_ptr<fold::JobsAnswered>> answers_;  // being collected
};

}  // namespace

cluster_actor spawn_cluster(caf::actor_system& system, journal_actor journal,
                            std::function<registry_actor()> registry, SealedLink link,
                            WallClock clock, ClusterOptions options,
                            std::vector<core::NodeInfo> nodes, std::map<JobId, HeldSlots> holds) {
  return vital(cluster_actor{system.spawn<ClusterActor>(std::move(journal), std::move(registry),
                                                        link, std::move(clock), std::move(options),
                                                        std::move(nodes), std::move(holds))});
}

}  // namespace muster::actors
