#include "tests/sim/site_rules.hpp"

#include "api/kube/objects/queue_object.hpp"
#include "base/text/json.hpp"
#include "core/job/fold/text.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/quantity.hpp"
#include "core/spec/values/window.hpp"

#include <algorithm>

namespace muster::sim {

namespace {

// An agent may have said a little later than the witness when its node ends.
constexpr Millis kEndMarginMs = 2'000;

bool tolerates(const std::vector<core::Toleration>& tolerations, const core::Taint& taint) {
  return std::ranges::any_of(tolerations, [&taint](const core::Toleration& one) {
    return (one.key.empty() || one.key == taint.key) &&
           (one.effect.empty() || one.effect == taint.effect) &&
           (one.op == "Exists" || one.value == taint.value);
  });
}

bool holds(const core::Pod& pod) {
  return pod.bound() && !pod.ended;
}

// What pods hold together, of all jobs in a queue or of one user's.
struct Held {
  uint64_t pods = 0;
  std::set<JobId> jobs;
  int64_t cpu_millis = 0;
};

// Which limit these pods are beyond that leaves no room for one more like those of a job. `fresh`:
// the job had none before.
std::string over(const core::QueueLimits& limits, const Held& held, int64_t cpu_millis,
                 bool fresh) {
  if (limits.pods && held.pods > *limits.pods)
    return std::to_string(held.pods) + " pods, " + std::to_string(*limits.pods) + " allowed";
  if (fresh && limits.jobs && held.jobs.size() > *limits.jobs)
    return std::to_string(held.jobs.size()) + " jobs, " + std::to_string(*limits.jobs) + " allowed";
  if (cpu_millis > 0 && limits.cpu_millis && held.cpu_millis > *limits.cpu_millis)
    return std::to_string(held.cpu_millis) + "m cpu, " + std::to_string(*limits.cpu_millis) +
           "m allowed";
  return "";
}

}  // namespace

void SiteRules::sent(const core::JobObjectPtr& object) {
  sent_[object->meta.ns + "/" + object->meta.name] = object;
}

void SiteRules::restarted(const std::vector<core::NodeInfo>& nodes,
                          const std::vector<core::Kept>& kept) {
  now_.boot_ms = 0;  // what look() finds has been in force since before the start
  queues_.clear();
  nodes_.clear();
  asks_.clear();
  gone_.clear();
  for (const core::NodeInfo& node : nodes) look(node);
  for (const core::Kept& one : kept) look(one, false);
}

void SiteRules::look(const core::NodeInfo& node) {
  node_of_[node.id] = node.name;
  if (node.gone) {
    gone_.insert(node.id);
    return;
  }
  const auto [found, fresh] = nodes_.try_emplace(node.name);
  NodeState& state = found->second;
  state.labels = node.labels;
  if (!fresh && state.spec == node.spec) return;
  state.spec = node.spec;
  state.since = now_.boot_ms;
}

void SiteRules::look(const core::Kept& kept, bool removed) {
  if (kept.kind != core::KeptKind::queue) return;
  QueueState& state = queues_[kept.name];
  std::optional<core::Queue> next;
  if (!removed) next = api::queue_of(Json::parse(kept.json), {});
  const auto preempts = [](const auto& queue) {
    return queue ? queue->preempts : std::optional(std::vector<std::string>{"*"});
  };
  if (preempts(next) != preempts(state.stored)) state.preempts_since = now_.boot_ms;
  state.stored = std::move(next);
  state.since = now_.boot_ms;
}

std::optional<SiteRules::Asks> SiteRules::read_asks(JobId id) const {
  const core::Job* const job = shown_(id);
  if (!job) return std::nullopt;
  const auto found = sent_.find(job->object().meta.ns + "/" + job->object().meta.name);
  if (found == sent_.end()) return std::nullopt;
  const core::JobObject& object = *found->second;
  Asks asks;
  if (const auto owner = core::owner_of(object.meta.annotations)) {
    asks.user = owner->uid;
    asks.user_name = owner->name;
    asks.of_user = !owner->privileged;
  }
  asks.queue = core::queue_of(object.meta.annotations);
  const core::PodTemplate& pod = object.spec.pod;
  asks.limit_s = pod.active_deadline_s;
  asks.grace_s = pod.termination_grace_s.value_or(30);
  asks.tolerations = pod.tolerations;
  for (const core::Container& one : pod.containers)
    if (const auto cpu = one.resources.requests.find("cpu"); cpu != one.resources.requests.end())
      asks.cpu_millis += *core::parse_quantity_milli(cpu->second);
  asks.on_hold = job->on_hold();
  if (const auto& set = job->state().overrides) {
    const core::Overrides& given = set->overrides;
    asks.queue_given = given.queue.has_value();
    asks.limit_given = given.time_limit_s.has_value();
    asks.queue = given.queue.value_or(asks.queue);
    if (given.time_limit_s) asks.limit_s = given.time_limit_s;
    if (asks.limit_s == 0) asks.limit_s.reset();
  }
  return asks;
}

const SiteRules::JobAsks* SiteRules::asks_of(JobId id) {
  if (const auto known = asks_.find(id); known != asks_.end()) return &known->second;
  std::optional<Asks> asks = read_asks(id);
  return asks ? &asks_.emplace(id, JobAsks{std::move(*asks), 0}).first->second : nullptr;
}

// Overrides or a hold of the job have changed.
void SiteRules::look(JobId id) {
  std::optional<Asks> asks = read_asks(id);
  if (!asks) return;
  const auto known = asks_.find(id);
  if (known == asks_.end() || known->second.asks.queue != asks->queue)
    queues_[asks->queue].joined = now_.boot_ms;
  asks_[id] = {std::move(*asks), now_.boot_ms};
}

const core::Queue* SiteRules::queue_of(const Asks& asks) const {
  const auto found = queues_.find(asks.queue);
  return found == queues_.end() || !found->second.stored ? nullptr : &*found->second.stored;
}

void SiteRules::committed(Now now, const core::Committed& batch, const api::View& view) {
  now_ = now;
  for (const core::NodeInfo& node : batch.nodes) look(node);
  for (const core::KeptChange& change : batch.kept) look(*change.now, change.removed);
  std::vector<std::pair<JobId, core::PodsBound::Binding>> bound;
  for (const auto& job : batch.jobs)
    for (const core::Record& record : job->records) {
      if (std::holds_alternative<core::OverridesSet>(record) ||
          std::holds_alternative<core::JobHeld>(record) ||
          std::holds_alternative<core::JobReleased>(record))
        look(job->job);
      if (const auto* set = std::get_if<core::PodConditionSet>(&record);
          set && set->condition.reason == "PreemptionByScheduler")
        check_preempted(job->job, set->pod);
      if (const auto* pods = std::get_if<core::PodsBound>(&record))
        for (const auto& one : pods->bindings) bound.emplace_back(job->job, one);
    }
  Bound pods;
  for (const auto& [job, binding] : bound) {
    check_binding(job, binding);
    ++pods[job];
  }
  if (!pods.empty()) check_limits(pods, view);
}

void SiteRules::check_binding(JobId id, const core::PodsBound::Binding& binding) {
  const JobAsks* const known = asks_of(id);
  const auto name = node_of_.find(binding.node);
  if (!known || name == node_of_.end() || !is_settled(known->since)) return;
  const Asks& asks = known->asks;
  const std::string what =
      to_string(PodId{id, binding.pod.index, binding.pod.attempt}) + " on " + name->second;
  if (asks.on_hold) say("bound while its job is on hold: " + what);
  if (const auto node = nodes_.find(name->second); node != nodes_.end()) {
    if (is_settled(node->second.since)) check_node(asks, node->second, what);
    if (is_settled(node->second.since) && is_settled(jumped_ms_))
      check_time(asks, name->second, node->second, what);
    const auto queue = queues_.find(asks.queue);
    if (queue != queues_.end() && queue->second.stored && is_settled(queue->second.since))
      for (const auto& [key, value] : queue->second.stored->node_selector)
        if (const auto label = node->second.labels.find(key);
            label == node->second.labels.end() || label->second != value)
          say("bound outside the nodes of queue " + asks.queue + ": " + what);
  }
  const auto queue = queues_.find(asks.queue);
  if (queue != queues_.end() && !is_settled(queue->second.since)) return;
  const core::Queue* const stored = queue_of(asks);
  if (!stored) {
    if (asks.queue != core::kDefaultQueue) say("bound in a queue that does not exist: " + what);
    return;
  }
  if (!asks.queue_given && asks.of_user && !stored->users.empty() &&
      std::ranges::find(stored->users, asks.user_name) == stored->users.end())
    say("bound in a queue that is not open to " + asks.user_name + ": " + what);
  if (!asks.queue_given && !asks.limit_given && stored->time_max_s &&
      asks.limit_s.value_or(INT64_MAX) > *stored->time_max_s)
    say("bound with a time limit above that of queue " + asks.queue + ": " + what);
}

void SiteRules::check_node(const Asks& asks, const NodeState& node, const std::string& what) {
  const core::Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  if (node.spec.unschedulable && (asks.of_user || !tolerates(asks.tolerations, cordon)))
    say("bound to a cordoned node: " + what);
  for (const core::Taint& taint : node.spec.taints)
    if ((taint.effect == "NoExecute" && asks.of_user) || !tolerates(asks.tolerations, taint))
      say("bound to a drained node: " + what);
}

void SiteRules::check_time(const Asks& asks, const std::string& name, const NodeState& node,
                           const std::string& what) {
  const Millis granted_ms = now_.wall_ms - kSettleMs;  // at the earliest
  std::optional<Millis> over_ms;
  if (asks.limit_s) over_ms = granted_ms + 1000 * (*asks.limit_s + asks.grace_s);
  for (const core::Window& window : core::windows_of(node.spec.annotations)) {
    if (window.until_ms <= now_.wall_ms) continue;
    if (std::ranges::find(window.users, asks.user_name) != window.users.end()) continue;
    if (window.from_ms <= granted_ms)
      say("bound to a node that is reserved for others: " + what);
    else if (!over_ms || *over_ms > window.from_ms)
      say("bound, and may still run when its node is reserved for others: " + what);
  }
  const auto ends = ends_.find(name);
  if (over_ms && ends != ends_.end() && ends->second && *over_ms > *ends->second + kEndMarginMs)
    say("bound, and may still run when its node ends: " + what);
}

// These jobs have got pods bound just now. Others may be over limits, since jobs with pods may be
// moved and limits may be lowered.
void SiteRules::check_limits(const Bound& bound, const api::View& view) {
  std::map<std::string, Held> of_queue;
  std::map<std::pair<std::string, uint32_t>, Held> of_user;
  std::map<uint32_t, Held> of_all;
  std::map<JobId, uint32_t> of_job;
  view.each(
      api::Kind::job, "", [](const core::Job&) { return true; },
      [&](const api::Shown& shown) {
        const core::Job& job = *shown.job;
        if (job.state().open.empty()) return;
        const JobAsks* const known = asks_of(job.id());
        if (!known) return;
        const Asks& asks = known->asks;
        for (const auto& [key, pod] : job.state().open) {
          if (!holds(pod) || gone_.contains(pod.node)) continue;
          auto add = [&](Held& to) {
            ++to.pods;
            to.jobs.insert(job.id());
            to.cpu_millis += asks.cpu_millis;
          };
          add(of_queue[asks.queue]);
          if (asks.user) add(of_user[{asks.queue, *asks.user}]);
          if (asks.user) add(of_all[*asks.user]);
          ++of_job[job.id()];
        }
      });
  for (const auto& [job, pods] : bound) {
    const JobAsks* const known = asks_of(job);
    if (!known) continue;
    const Asks& asks = known->asks;
    if (asks.user && user_pods_max_ > 0 && of_all[*asks.user].pods > user_pods_max_)
      say("user " + std::to_string(*asks.user) + " has " + std::to_string(of_all[*asks.user].pods) +
          " pods, " + std::to_string(user_pods_max_) + " allowed");
    const QueueState& queue = queues_[asks.queue];
    if (!queue.stored || !is_settled(queue.since) || !is_settled(queue.joined)) continue;
    const bool fresh = of_job[job] == pods;
    auto check = [&](const core::QueueLimits& limits, const Held& held, const std::string& whose) {
      const std::string what = over(limits, held, asks.cpu_millis, fresh);
      if (!what.empty())
        say("the limit of " + whose + " in queue " + asks.queue + " is exceeded: " + what);
    };
    check(queue.stored->total, of_queue[asks.queue], "all");
    if (asks.user)
      check(queue.stored->per_user, of_user[{asks.queue, *asks.user}],
            "user " + std::to_string(*asks.user));
  }
}

// Some queue must be allowed to preempt pods of this one.
void SiteRules::check_preempted(JobId id, PodKey pod) {
  const JobAsks* const known = asks_of(id);
  if (!known || !is_settled(known->since, kPreemptedMs)) return;
  const std::string& queue = known->asks.queue;
  if (!queues_.contains(std::string(core::kDefaultQueue))) return;  // it may preempt all
  for (const auto& [name, state] : queues_) {
    if (!is_settled(state.preempts_since, kPreemptedMs)) return;
    if (!state.stored && name != core::kDefaultQueue) continue;
    if (!state.stored || !state.stored->preempts) return;
    if (std::ranges::find(*state.stored->preempts, queue) != state.stored->preempts->end()) return;
  }
  say("preempted, though no queue may preempt pods of queue " + queue + ": " +
      to_string(PodId{id, pod.index, pod.attempt}));
}

}  // namespace muster::sim
