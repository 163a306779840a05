#include "actors/job_actor.hpp"

#include "actors/index_actor.hpp"
#include "base/last_words.hpp"
#include "base/log.hpp"
#include "core/history/entry.hpp"
#include "core/job/fold/fence.hpp"
#include "core/job/rules/backoff.hpp"
#include "core/job/rules/held.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/mpi.hpp"
#include "core/spec/fields/owner.hpp"
#include "storage/rows/attempts.hpp"
#include "storage/rows/history.hpp"
#include "storage/rows/rows.hpp"
#include "storage/rows/summary_row.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <tuple>
#include <utility>

namespace muster::actors {

namespace {

constexpr uint32_t kManyActive = 16;  // pods; with fewer, waiting would leave a slot idle
constexpr size_t kDeathsMax = 5;      // of index actors, within kDeathsSpanMs
constexpr Millis kDeathsSpanMs = 10'000;

bool is_mpi(const core::Job& job) {
  return job.object().meta.annotations.contains(std::string(core::kMpiKey));
}

bool launches(const core::Effect& effect) {
  return std::holds_alternative<core::LaunchPods>(effect);
}

// "Failed (BackoffLimitExceeded): 8 of 10 succeeded, 2 failed, 14 attempts", for the log.
std::string outcome_of(const core::Job& job) {
  const core::HistoryEntry entry = core::history_entry(job);
  std::string text(core::name(entry.state));
  if (!entry.reason.empty()) text += " (" + entry.reason + ")";
  text += ": " + std::to_string(entry.succeeded) + " of " + std::to_string(entry.indexes) +
          " succeeded";
  for (const auto& [count, what] : {std::pair(entry.failed_indexes, " failed"),
                                    std::pair(entry.cancelled_indexes, " cancelled")})
    if (count > 0) text += ", " + std::to_string(count) + what;
  return text + ", " + std::to_string(entry.attempts) +
         (entry.attempts == 1 ? " attempt" : " attempts");
}

}  // namespace

JobActor::JobActor(caf::actor_config& config, JobSurroundings around, core::JobClock clock,
                   core::Job job, uint64_t next_seq, uint64_t first_tail_seq, uint64_t tail_bytes,
                   core::Dependents dependents)
    : GatedActor(config, around.journal, around.link),
      around_(std::move(around)),
      clock_(clock),
      job_(std::move(job)),
      dependents_(dependents),
      told_completions_(job_.state().completions),
      knobs_(knobs()),
      waiting_(*around_.waiting, core::owner_uid(job_.object().meta.annotations)),
      has_summary_row_(job_.can_unload()),
      judged_object_(job_.object_ptr()),
      is_mpi_(is_mpi(job_)),
      next_seq_(next_seq),
      first_tail_seq_(first_tail_seq),
      tail_bytes_(tail_bytes) {}

JobActor::behavior_type JobActor::make_behavior() {
  waiting_.now(job_.pending().size());
  set_down_handler([this](caf::down_msg& down) { respawn(down); });
  if (is_mpi_) gate_.after([this](const Durable& durable) { tell_hosts(durable); });
  ask_slots(job_.slots_wanted());  // launches and kills follow when their nodes are ready
  // The cluster must know whom to tell about the slots that these hold.
  for (const auto& [key, pod] : job_.state().open)
    if (!asked_.contains(pod.steps)) ask_slots(pod.steps, 0);
  take(core::TimePassed{});
  return {
      [this](const JobReport& m) {
        core::PodsReported report = m.report;
        report.token = remember(m.ack);
        take(std::move(report));
      },
      [this](const JobDelete& m) {
        take(core::JobDeletion{remember(m.ack), m.background, m.orphan});
      },
      [this](const JobAsk& m) { take_ask(m); },
      [this](const Preempt& m) {
        take(core::Preempted{m.slots, m.steps});
      },
      [this](const LeaveNodes& m) {
        take(core::Tainted{m.nodes, m.steps});
      },
      [this](const JobReconcile& m) {
        keeps_on_.erase(m.node);
        known_[m.node] = {m.link, m.known};
        reconciles_.emplace_back(m.node, m.answered);
        take(core::NodeRegistered{m.node, m.known, m.restored});
      },
      [this](const NodeReadyNow& m) { ready(m); },
      [this](const NodeIsLost& m) {
        keeps_on_.erase(m.node);
        const Millis wait_ms = core::fence_wait_ms(job_, m.node) - m.silent_ms;
        if (wait_ms <= 0) return take(core::NodeLost{m.node, m.cause});
        log::info("job {}: its pods on n{} are replaced in {}s ({})", job_.object().meta.name,
                  m.node, wait_ms / 1000, core::kFenceAfterKey);
        delayed_send(this, std::chrono::milliseconds(wait_ms),
                     NodeIsLost{m.node, m.cause, m.silent_ms + wait_ms});
      },
      [this](const ReturnSlots&) { keeps_on_.clear(); },
      [this](const HasNowhere&) { take(core::NowhereElse{}); },
      [this](const Granted& m) {
        const bool keep = m.keep && !m.steps.any();
        if (!keep) keeps_on_.clear();
        for (auto [node, link] : m.links)
          if (keep) keeps_on_[node] = link;
        take(core::SlotsGranted{m.slots, m.links, m.steps});
      },
      [this](const JobHears& m) { take(m.heard); },
      [this](const HasDependents& m) {
        dependents_ = m;
        told_progress_.reset();
        knobs_ = knobs();
        take(core::TimePassed{});
      },
      [this](const sync_atom&) { step(); },
      [this](const durable_atom&, uint64_t number, uint64_t commit) { gate_.open(number, commit); },
      [this](const wake_atom&, uint64_t round) {
        if (round != wake_round_) return;
        wake_ms_.reset();
        take(core::TimePassed{});
      },
      [this](const stop_atom&) {
        stopping_ = true;
        if (!gate_.closed()) step();
        leave_if_idle();
      },
  };
}

core::Knobs JobActor::knobs() const {
  core::Knobs knobs = core::knobs_of(around_.knobs, job_.object());
  knobs.has_dependents = dependents_.any;
  return knobs;
}

void JobActor::on_exit() {
  waiting_.now(0);
  for (auto& [index, by] : followers_) send_exit(by.actor, caf::exit_reason::user_shutdown);
  followers_.clear();
  gate_.close();
  destroy(around_.journal);
  destroy(around_.cluster);
  destroy(around_.registry);
}

void JobActor::take(core::Event event) {
  arrived_.push_back(std::move(event));
  if (step_due_ || gate_.closed()) return;
  step_due_ = true;
  send(this, sync_atom_v);  // queues behind everything in the mailbox
}

// If the node did not reconcile with this job, the job has no pods there. If it has registered
// again since, another NodeReadyNow follows.
void JobActor::ready(const NodeReadyNow& m) {
  auto it = known_.find(m.node);
  if (it == known_.end() || it->second.first != m.link) return;
  take(core::NodeReady{m.node, std::move(it->second.second), m.link});
  known_.erase(it);
}

void JobActor::take_ask(const JobAsk& m) {
  uint64_t token = ++last_token_;
  asks_.emplace(token, m.done);
  core::Event event = m.event;
  std::visit(
      [token](auto& e) {
        if constexpr (requires { e.token; }) e.token = token;
      },
      event);
  take(std::move(event));
}

void JobActor::step() {
  step_due_ = false;
  if (gate_.closed() || arrived_.empty()) return;
  const WorksOn works(job_.id());
  // A Want must count only the grants that its decision knew about.
  for (const core::Event& event : arrived_)
    if (auto* granted = std::get_if<core::SlotsGranted>(&event))
      for (auto [node, count] : granted->slots) slots_received_[granted->steps] += count;
  std::shared_ptr<const core::Job> before;
  if (job_.finished()) before = std::make_shared<core::Job>(job_);
  knobs_.pending_max = waiting_.may(around_.knobs.pending_max);
  auto began = std::chrono::steady_clock::now();
  core::Decision decision = core::decide(job_, arrived_, now(), knobs_, hearing_);
  arrived_.clear();
  const bool moved = place_as_wished();
  if (moved) keeps_on_.clear();  // its pods may have to go elsewhere
  if (job_.object_ptr() == judged_object_) use_again(decision);
  waiting_.now(job_.pending().size());
  if (around_.synced) {
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    around_.synced(job_.indexed(), decision.action, took.count());
  }
  if (moved) decision.effects.push_back(job_.slots_wanted());
  if (job_.object_ptr() != judged_object_) {
    judged_object_ = job_.object_ptr();
    keeps_on_.clear();  // its pods may now request something else
    is_mpi_ = is_mpi(job_);
    knobs_ = knobs();
    decision.effects.push_back(job_.slots_wanted());
    decision.effects.push_back(core::WakeAt{now()});  // the knobs may have changed
  }
  // Launches go first, so that those for the node that reported leave with its acknowledgement.
  std::stable_partition(decision.effects.begin(), decision.effects.end(), launches);
  auto effects = [this, effects = std::move(decision.effects)](const Durable& durable) {
    this->durable(effects, durable);
  };
  if (decision.records.empty()) return gate_.after(std::move(effects));
  Append append;
  append.rows = rows_of(decision);
  append.records = std::make_shared<core::JobRecords>(
      core::JobRecords{job_.id(), std::move(decision.records), std::move(before)});
  append.may_wait = job_.active() >= kManyActive;
  gate_.after(std::move(append), std::move(effects));
}

// If this decision frees as many slots as the job still wants, and the cluster lets the job keep
// them, its next pods are bound to them in the same batch: one sync and one round trip from an end
// to the next start. If it frees fewer, the cluster decides, since it may have more.
void JobActor::use_again(core::Decision& decision) {
  uint32_t wanted = job_.slots_wanted().wanted;
  if (keeps_on_.empty() || wanted == 0) return;
  // Some of its pods require more than others; each grant must be confirmed.
  if (!asked_.empty() && asked_.rbegin()->first.any()) return;
  auto free = std::find_if(decision.effects.begin(), decision.effects.end(),
                           [](const core::Effect& effect) {
                             const auto* one = std::get_if<core::FreeSlots>(&effect);
                             return one && !one->steps.any();
                           });
  if (free == decision.effects.end()) return;
  auto& freed = std::get<core::FreeSlots>(*free);
  for (const auto& [node, failed] : freed.avoid) keeps_on_.erase(node);
  core::SlotsGranted again;
  for (auto [node, count] : freed.slots) {
    auto session = keeps_on_.find(node);
    if (session == keeps_on_.end() || wanted == 0) continue;
    again.slots[node] = std::min(count, wanted);
    again.registrations[node] = session->second;
    wanted -= again.slots[node];
  }
  if (wanted > 0) return;
  for (auto [node, count] : again.slots) {
    if ((freed.slots[node] -= count) == 0) freed.slots.erase(node);
    freed.quick.erase(node);
  }
  std::erase_if(decision.effects, [this](const core::Effect& effect) {
    auto* rest = std::get_if<core::FreeSlots>(&effect);
    const bool kept = rest && rest->slots.empty() && rest->avoid.empty();
    if (kept) ran_.add(rest->ran);
    return kept || std::holds_alternative<core::AskSlots>(effect);
  });
  core::Decision bound = core::decide(job_, {std::move(again)}, now(), knobs_, hearing_);
  auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(decision.records, bound.records);
  append(decision.effects, bound.effects);
  append(decision.closed, bound.closed);
}

void JobActor::durable(const std::vector<core::Effect>& effects, const Durable& durable) {
  if (job_.hidden() && !std::exchange(hidden_reported_, true))
    send(around_.registry, JobIsHidden{job_.id()});  // before any answer
  tell_completions();                                // likewise
  tell_progress();                                   // before it is over
  tell_hosts(durable);                               // before launches, which need it
  const auto perform_all = [&] {
    for (const core::Effect& effect : effects) perform(effect, durable);
  };
  if (!effects.empty() && launches(effects.front()))
    durable.link().together(perform_all);
  else
    perform_all();
  if (!arrived_.empty() && !step_due_) {
    step_due_ = true;
    send(this, sync_atom_v);
  }
  leave_if_idle();
}

void JobActor::tell_hosts(const Durable& durable) {
  if (!is_mpi_ && sent_hosts_ == nullptr) return;
  auto hosts =
      std::make_shared<const core::HostList>(is_mpi_ ? core::hosts_of(job_) : core::HostList{});
  if (sent_hosts_ != nullptr && *sent_hosts_ == *hosts) return;
  sent_hosts_ = hosts;
  durable.link().hosts(job_.id(), std::move(hosts));
}

void JobActor::tell_completions() {
  if (told_completions_ == job_.state().completions) return;
  told_completions_ = job_.state().completions;
  send(around_.registry, JobIsResized{job_.id(), told_completions_});
}

// At most once per decision, whatever the number of indexes.
void JobActor::tell_progress() {
  if (!dependents_.following) return;
  auto now = std::make_shared<const core::Progress>(core::progress_of(job_));
  if (told_progress_ && *told_progress_ == *now) return;
  told_progress_ = std::move(now);
  send(around_.registry, JobHasAdvanced{job_.id(), told_progress_});
}

// Events that have arrived are handled before the actor quits, or an agent would wait for an
// acknowledgement that never comes.
void JobActor::leave_if_idle() {
  if (stopping_ && !gate_.closed() && arrived_.empty()) quit();
}

std::vector<storage::Row> JobActor::rows_of(const core::Decision& decision) {
  const bool gone = job_.state().forgotten;
  const uint64_t seq = next_seq_++;
  std::vector<storage::Row> rows = gone ? storage::forget_rows(job_.id(), seq - 1, first_tail_seq_)
                                        : storage::job_rows(job_.id(), seq, decision.records);
  if (!decision.closed.empty() && (around_.history || !gone))
    rows.push_back(
        storage::attempts_row(job_.id(), seq, job_.state().last_record_ms, decision.closed));
  if (around_.history && (job_.finished() || job_.state().deleted_at))
    rows.push_back(storage::history_row(core::history_entry(job_)));
  if (gone) return rows;
  for (const storage::Row& row : rows) tail_bytes_ += row.value ? row.value->size() : 0;
  if (job_.can_unload())
    rows.push_back(storage::summary_row(job_));
  else if (has_summary_row_)
    rows.push_back(storage::forget_summary_row(job_.id()));
  has_summary_row_ = job_.can_unload();
  // Write a snapshot once the tail is twice as long as the last snapshot, so that the cost of
  // snapshots per record is constant.
  if (tail_bytes_ < std::max(around_.tail_bytes_min, 2 * snapshot_bytes_)) return rows;
  snapshot_bytes_ = 0;
  for (storage::Row& row : storage::snapshot_rows(job_.id(), job_.state(), seq, first_tail_seq_)) {
    snapshot_bytes_ += row.value ? row.value->size() : 0;
    rows.push_back(std::move(row));  // after the append's own rows, so that they are removed too
  }
  first_tail_seq_ = next_seq_;
  tail_bytes_ = 0;
  return rows;
}

void JobActor::perform(const core::Effect& effect, const Durable& durable) {
  std::visit([this, &durable](const auto& order) { act(order, durable); }, effect);
}

void JobActor::act(const core::LaunchPods& order, const Durable& durable) {
  place_as_wished();
  std::map<std::tuple<NodeId, uint64_t, core::Steps>, std::vector<PodId>> lists;
  for (const auto& [pod, node, link] : order.pods) {
    // Skip an order that the same batch made obsolete: the pod was stopped or has ended since.
    auto it = job_.state().open.find(pod);
    if (it == job_.state().open.end() || !it->second.to_launch()) continue;
    lists[{node, link, it->second.steps}].push_back({job_.id(), pod.index, pod.attempt});
  }
  for (auto& [to, pods] : lists) {
    const auto& [node, link, steps] = to;
    durable.link().launch(node, link, std::move(pods), objects(steps).launched);
  }
}

void JobActor::act(const core::KillPods& order, const Durable& durable) {
  for (const core::KillPods::One& one : order.pods) follow_kill(one, durable);
}

void JobActor::act(const core::LimitPods& order, const Durable& durable) {
  for (const auto& [pod, node, limit_ms] : order.pods)
    durable.link().limit(node, {job_.id(), pod.index, pod.attempt}, limit_ms);
}

void JobActor::follow_kill(const core::KillPods::One& kill, const Durable& durable) {
  if (!job_.state().open.contains(kill.pod)) return;  // it has ended
  Follower& by = follower(kill.pod.index);
  by.pods.insert(kill.pod);
  send(by.actor, FollowKill{kill.pod, kill.node, kill.deadline_ms, durable});
}

// True if the scheduler needs a new copy of the object.
bool JobActor::place_as_wished() {
  const auto& set = job_.state().overrides;
  const core::Overrides overrides = set ? set->overrides : core::Overrides{};
  if (placed_from_ == job_.object_ptr() && placed_overrides_ == overrides) return false;
  placed_from_ = job_.object_ptr();
  placed_overrides_ = overrides;
  objects_.clear();
  return true;
}

const JobActor::Objects& JobActor::objects(core::Steps steps) {
  Objects& all = objects_[steps];
  if (!all.placed) all = {core::placed_object(job_, steps), core::launched_object(job_, steps)};
  return all;
}

void JobActor::ask_slots(const core::AskSlots& order) {
  place_as_wished();
  ask_slots({}, order.wanted);
  for (const auto& [steps, pods] : order.more) ask_slots(steps, pods);
  for (const auto& [steps, before] : asked_)
    if (steps.any() && !order.more.contains(steps)) ask_slots(steps, 0);
}

void JobActor::ask_slots(core::Steps steps, uint32_t pods) {
  Want want{core::in_steps(job_.id(), steps), pods, slots_received_[steps], objects(steps).placed};
  const auto [before, fresh] = asked_.try_emplace(steps, want);
  if (!fresh && before->second.pending == want.pending &&
      before->second.received == want.received && before->second.object == want.object)
    return;
  before->second = want;
  send(around_.cluster, std::move(want), job_actor{this});
}

void JobActor::act(const core::FreeSlots& order, const Durable&) {
  Freed freed{core::in_steps(job_.id(), order.steps), order.slots, order.quick, {}};
  if (!order.steps.any()) freed.ran = std::exchange(ran_, {});
  freed.ran.add(order.ran);
  if (!order.avoid.empty()) freed.user = core::owner_uid(job_.object().meta.annotations);
  freed.failed_starts = order.avoid;
  for (const auto& [node, failed] : order.avoid) {
    freed.avoid.push_back(node);
    const auto name = hearing_.names.find(node);
    log::warn("job {}: {} cannot start its pods, which are placed elsewhere: {}",
              job_.object().meta.name,
              name != hearing_.names.end() ? name->second : "n" + std::to_string(node), failed.why);
  }
  send(around_.cluster, std::move(freed));
}

void JobActor::act(const core::AnswerReconcile& order, const Durable& durable) {
  auto it = std::find_if(reconciles_.begin(), reconciles_.end(),
                         [&order](const auto& r) { return r.first == order.node; });
  MUSTER_CHECK(it != reconciles_.end(), order.node);
  it->second(durable, order.end);
  reconciles_.erase(it);
}

void JobActor::act(const core::AskNodes& order, const Durable& durable) {
  for (const auto& [node, question] : order.nodes) durable.link().ask(node, job_.id(), question);
}

void JobActor::act(const core::WakeAt& order, const Durable&) {
  // An earlier wake-up reconsiders everything, so a later one needs no timer.
  if (wake_ms_ && *wake_ms_ <= order.at_ms) return;
  wake_ms_ = order.at_ms;
  // A wake-up that is early arms the next one; the timer's clock ends in a few hundred years.
  constexpr Millis kWakeMaxMs = 86'400'000;
  const Millis wait_ms = std::clamp<Millis>(order.at_ms - now(), 0, kWakeMaxMs);
  delayed_send(this, std::chrono::milliseconds(wait_ms), wake_atom_v, ++wake_round_);
}

void JobActor::act(const core::PodsClosed& order, const Durable&) {
  for (PodKey pod : order.pods) {
    auto it = followers_.find(pod.index);
    if (it == followers_.end() || it->second.pods.erase(pod) == 0) continue;
    send(it->second.actor, FollowEnd{pod});
    if (!it->second.pods.empty()) continue;
    index_of_.erase(it->second.actor.address());  // it quits by itself
    followers_.erase(it);
  }
}

void JobActor::act(const core::JobOver& order, const Durable&) {
  core::ProgressPtr progress = dependents_.following ? told_progress_ : nullptr;
  if (order.forgotten && !progress)
    progress = std::make_shared<const core::Progress>(core::progress_of(job_));
  std::string outcome = spdlog::should_log(spdlog::level::info) ? outcome_of(job_) : "";
  send(around_.registry, JobIsOver{job_.id(), order, std::move(progress), std::move(outcome)});
}

void JobActor::act(const core::Answer& order, const Durable& durable) {
  auto ask = asks_.extract(order.token);
  if (ask.empty()) return acknowledge(order.token, durable);
  using Outcome = core::Answer::Outcome;
  if (order.outcome == Outcome::done) return ask.mapped()(durable, Nothing{});
  bool conflict = order.outcome == Outcome::conflict;
  ask.mapped()(durable, Error{conflict ? Errc::conflict : Errc::not_found,
                              conflict ? "the object has been modified" : "there is no such object",
                              {}});
}

uint64_t JobActor::remember(CountdownPtr ack) {
  acks_.emplace(++last_token_, std::move(ack));
  return last_token_;
}

void JobActor::acknowledge(uint64_t token, const Durable& durable) {
  auto it = acks_.find(token);
  MUSTER_CHECK(it != acks_.end(), token);
  it->second->part_done(durable);
  acks_.erase(it);
}

JobActor::Follower& JobActor::follower(uint32_t index) {
  auto it = followers_.find(index);
  if (it != followers_.end()) return it->second;
  auto actor = spawn<IndexActor, caf::monitored>(
      job_.id(), [clock = clock_, elapsed = around_.elapsed] { return clock.now(elapsed()); });
  index_of_[actor.address()] = index;
  return followers_.emplace(index, Follower{actor, {}}).first->second;
}

// Repeats the dead actor's orders to a new one, once the state that they follow from is on disk.
void JobActor::respawn(const caf::down_msg& down) {
  auto it = index_of_.find(down.source);
  if (it == index_of_.end()) return;
  uint32_t index = it->second;
  auto pods = std::move(followers_.at(index).pods);
  index_of_.erase(it);
  followers_.erase(index);
  Millis now = around_.elapsed();
  deaths_.push_back(now);
  while (deaths_.front() < now - kDeathsSpanMs) deaths_.pop_front();
  log::warn("j{}: the actor of index {} died ({}); respawning it", job_.id(), index,
            caf::to_string(down.reason));
  MUSTER_CHECK(deaths_.size() <= kDeathsMax, job_.id(), index);
  // Skips pods whose end is being written.
  gate_.after([this, kill = job_.kills({pods.begin(), pods.end()})](const Durable& durable) {
    act(kill, durable);
  });
}

}  // namespace muster::actors
