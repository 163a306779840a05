#include "core/queue/rights.hpp"

#include "core/spec/fields/annotations.hpp"
#include "core/spec/rules/retry_steps.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>

namespace muster::core {

namespace {

constexpr const char* kPodPath = "spec.template.spec.";

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "the users ann, bob and members of the group ml"
std::string admitted(const Queue& queue) {
  auto of = [](const char* one, const char* many, const std::vector<std::string>& names) {
    return names.empty() ? std::string() : (names.size() == 1 ? one : many) + listed(names);
  };
  const std::string users = of("the user ", "the users ", queue.users);
  const std::string groups =
      of("members of the group ", "members of the groups ", queue.group_names);
  return users + (users.empty() || groups.empty() ? "" : " and ") + groups;
}

std::string seconds_text(int64_t seconds) {
  return duration_text(seconds * 1000);
}

}  // namespace

const Queue* QueueSet::find(const std::string& name) const {
  const auto it = std::find_if(queues.begin(), queues.end(),
                               [&name](const Queue& queue) { return queue.name == name; });
  return it == queues.end() ? nullptr : &*it;
}

void take_time_limit(const JobMeta& meta, JobSpec& spec, const QueueSet& queues) {
  const Queue* const queue = queues.find(queue_of(meta.annotations));
  if (queue && !spec.pod.active_deadline_s) spec.pod.active_deadline_s = queue->time_default_s;
}

void enter_queue(const JobMeta& meta, const JobSpec& spec, const QueueSet& queues,
                 Violations& found) {
  const std::string name = queue_of(meta.annotations);
  const Queue* const queue = queues.find(name);
  if (!queue && name != kDefaultQueue)
    found.not_found("metadata.annotations[" + std::string(kQueueKey) + "]", name);
  if (const std::string& named = spec.pod.priority_class_name;
      !named.empty() && !priority_class(queues.classes, named))
    found.not_found(std::string(kPodPath) + "priorityClassName", named);
  if (!queue) return;
  if (!queue->time_max_s) return;
  const auto& limit_s = spec.pod.active_deadline_s;
  if (!limit_s)
    found.required(std::string(kPodPath) + "activeDeadlineSeconds",
                   "pods in queue " + name + " have a time limit of at most " +
                       seconds_text(*queue->time_max_s) + "; an operator may raise it");
  else if (*limit_s > *queue->time_max_s)
    found.invalid(std::string(kPodPath) + "activeDeadlineSeconds", *limit_s,
                  "must not be above the time limit of queue " + name + ", " +
                      std::to_string(*queue->time_max_s) + " (" + seconds_text(*queue->time_max_s) +
                      "); an operator may raise it");
  const std::vector<int64_t> steps_s = retry_steps(meta.annotations).time_s;
  if (!steps_s.empty() && steps_s.back() > *queue->time_max_s)
    found.invalid("metadata.annotations[" + std::string(kRetryTimeKey) + "]",
                  meta.annotations.at(std::string(kRetryTimeKey)),
                  "`" + seconds_text(steps_s.back()) +
                      "`: must not be above the time limit of queue " + name + ", " +
                      seconds_text(*queue->time_max_s) + "; an operator may raise it");
}

std::vector<std::string> doubts_about(const Queue& queue, const QueueSet& all) {
  std::vector<std::string> doubts;
  for (size_t i = 0; i < std::min(queue.groups.size(), queue.group_names.size()); ++i)
    if (queue.groups[i] == kNoGroup)
      doubts.push_back("spec.groups: there is no group " + queue.group_names[i] +
                       " now; it has no members");
  for (const std::string& other : queue.preempts.value_or(std::vector<std::string>()))
    if (other != kDefaultQueue && !all.find(other))
      doubts.push_back("spec.preemption.queues: there is no queue " + other + " now");
  return doubts;
}

std::optional<std::string> lacks_rights(const JobMeta& meta, const JobSpec& spec,
                                        const QueueSet& queues, int32_t priority_max) {
  const std::string name = queue_of(meta.annotations);
  const Queue* const queue = queues.find(name);
  if (queue && !open_to(*queue, owner_of(meta.annotations)))
    return "queue " + name + " is only for " + admitted(*queue) +
           "; an operator may add you (muster queue " + name + " --users or --groups)";
  const std::string& named = spec.pod.priority_class_name;
  if (named.starts_with(kSystemPrefix))
    return kPodPath + ("priorityClassName: " + named) + " is for operators' jobs; leave it out";
  const int32_t most = queue ? queue->priority_max.value_or(priority_max) : priority_max;
  const std::string limit =
      queue && queue->priority_max ? "of queue " + name : "(--user-priority-max)";
  const auto beyond = [&](const std::string& field, const std::string& what) {
    return kPodPath + field + ": " + what + " is above the maximum for users, " +
           std::to_string(most) + " " + limit + "; an operator may set more";
  };
  if (const auto one = priority_class(queues.classes, named); one && one->value > most)
    return beyond("priorityClassName", named + " (" + std::to_string(one->value) + ")");
  if (spec.pod.priority && *spec.pod.priority > most)
    return beyond("priority", std::to_string(*spec.pod.priority));
  return std::nullopt;
}

}  // namespace muster::core
