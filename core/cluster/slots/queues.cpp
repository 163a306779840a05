// What queues change for their jobs: priority, nodes, limits, and whether they may start at all.
#include "core/cluster/slots/slots.hpp"

#include <algorithm>

namespace muster::core {

namespace {

const Queue kOpenQueue{.name = std::string(kDefaultQueue)};

// The class that counts for such pods: the one they name, or the default of those that say nothing
// in a queue that says nothing.
std::optional<PriorityClass> class_of(const Queue& queue, const Demand& demand,
                                      const PriorityClasses& classes) {
  if (const auto named = classes.find(demand.priority_class); named != classes.end())
    return named->second;
  if (demand.own_priority || queue.priority_default) return std::nullopt;
  return default_class(classes);
}

// What a user has asked for is bounded as at admission (core/queue/rights.hpp), by what the class
// and the queue say now. `user_max`: in queues without a maximum.
int32_t priority_in(const Queue& queue, const Demand& demand, int32_t of_template,
                    const std::optional<PriorityClass>& of_class, int32_t user_max) {
  int32_t priority = of_template;
  if (of_class)
    priority = of_class->value;
  else if (!demand.own_priority && queue.priority_default)
    priority = *queue.priority_default;
  if (!demand.of_user || demand.given_priority) return priority;
  return std::min(priority, queue.priority_max.value_or(user_max));
}

}  // namespace

void Slots::set_queues(const std::vector<Queue>& queues, const PriorityClasses& classes) {
  std::vector<std::pair<Client*, Uncounted>> clients;
  for (Client* client : by_id()) clients.emplace_back(client, uncount(*client));
  classes_ = classes;
  forget_nodeless();
  for (auto& [name, queue] : queues_) queue.stored.reset();
  for (const Queue& queue : queues) queues_[queue.name].stored = queue;
  for (auto& [name, queue] : queues_) {
    const Queue& now = queue.stored ? *queue.stored : kOpenQueue;
    queue.share.weight = now.weight;
    queue.total.set_max(now.total);
    for (auto& [user, sharer] : queue.users) sharer.own.set_max(now.per_user);
  }
  for (auto& [client, was] : clients) {
    count_again(*client, was);
    if (!client->line) drop_reservation(client->job);
  }
  weights_known_ = false;
}

// Null: it does not exist.
const Queue* Slots::queue_of(const Client& client) const {
  if (client.queue->stored) return &*client.queue->stored;
  return client.need.queue == kDefaultQueue ? &kOpenQueue : nullptr;
}

// Why the job may not start at all. A pod without a time limit runs longer than any.
std::optional<Slots::QueueWait::Why> Slots::bar(const Client& client) const {
  const Queue* queue = queue_of(client);
  if (!queue) return QueueWait::Why::no_queue;
  if (client.need.given_queue) return std::nullopt;
  if (!open_to(*queue, client.facts)) return QueueWait::Why::not_open;
  if (!queue->time_max_s || client.need.given_time) return std::nullopt;
  const std::optional<int64_t>& limit = client.need.time_limit_s;
  if (limit && *limit <= *queue->time_max_s) return std::nullopt;
  return QueueWait::Why::time_limit;
}

// Among which jobs it counts, and what its queue says of it.
void Slots::enrol(Client& client) {
  client.person = &users_[client.owner];
  if (settings_.user_pods_max > 0) client.person->all.set_max({.pods = settings_.user_pods_max});
  InQueue& queue = queues_[client.need.queue];
  if (queue.share.number == 0) queue.share.number = ++queue_numbers_;
  const auto [found, first] = queue.users.try_emplace(client.owner);
  Sharer& sharer = found->second;
  if (first) {
    sharer.share.queue = &queue.share;
    sharer.share.number = static_cast<uint32_t>(queue.users.size());
    if (queue.stored) sharer.own.set_max(queue.stored->per_user);
  }
  client.queue = &queue;
  client.sharer = &sharer;
  client.user = &sharer.share;
  client.limits = {client.owner ? &client.person->all : nullptr, &queue.total,
                   client.owner ? &sharer.own : nullptr};
  client.limited = std::any_of(client.limits.begin(), client.limits.end(),
                               [](const Allowance* limit) { return limit && limit->limited; });
  client.barred = bar(client);
  const Queue* rules = queue_of(client);
  const Queue& queue_rules = rules ? *rules : kOpenQueue;
  const std::optional<PriorityClass> of_class = class_of(queue_rules, client.need, classes_);
  const bool asked = client.need.own_priority || classes_.contains(client.need.priority_class);
  client.need.priority = priority_in(queue_rules, client.need, client.template_priority, of_class,
                                     asked ? settings_.user_priority_max : INT32_MAX);
  client.need.preempts = client.template_preempts && (!of_class || of_class->preempts);
  client.need.queue_selector = rules ? rules->node_selector : StringMap{};
  client.need.preempted_queues = rules ? rules->preempts : std::nullopt;
}

// Looks at all nodes, once after each change of their labels.
bool Slots::has_no_node(const InQueue& queue) const {
  if (!queue.stored || queue.stored->node_selector.empty()) return false;
  if (!queue.nodeless)
    queue.nodeless = std::none_of(sites_.begin(), sites_.end(), [&queue](const auto& one) {
      return has_labels(one.second.labels, queue.stored->node_selector);
    });
  return *queue.nodeless;
}

void Slots::forget_nodeless() {
  for (auto& [name, queue] : queues_) queue.nodeless.reset();
}

std::map<JobId, Slots::QueueWait> Slots::queue_waits() const {
  std::map<JobId, QueueWait> waits;
  for (const auto& [job, client] : clients_) {
    const uint32_t wanted = client.lacking();
    if (wanted == 0) continue;
    if (client.barred || has_no_node(*client.queue)) {
      waits[job] = {client.need.queue, client.barred.value_or(QueueWait::Why::no_node)};
      continue;
    }
    if (!client.limited || may_have(client)) continue;
    for (const size_t which : {1, 2}) {
      const Allowance* limit = client.limits[which];
      const uint64_t least = client.need.gang ? wanted : 1;
      const bool fresh = would_be_new(client);
      if (!limit) continue;
      const std::optional<uint64_t> own = own_places(*limit, client);
      if (limit->left(client.need.amounts, fresh, least, own) == least) continue;
      waits[job] = {client.need.queue, QueueWait::Why::limit, which == 2,
                    limit->shortage(client.need.amounts, fresh, least, wanted, own)};
      break;
    }
  }
  return waits;
}

}  // namespace muster::core
