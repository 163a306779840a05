#include "tests/sim/operators.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

namespace muster::sim {

namespace {

// Which queues' pods each queue may preempt. Never those of "fast" and "deep".
const std::map<std::string, Json> kPreempts = {{"default", {"low"}},
                                               {"fast", {"low", "default"}},
                                               {"deep", Json::array()},
                                               {"low", Json::array()}};
constexpr const char* kVersion = "version";
constexpr const char* kCalm = "calm";

core::KeptPtr object_of(core::KeptKind kind, const std::string& name, Json json) {
  auto kept = std::make_shared<core::Kept>();
  kept->kind = kind;
  kept->name = name;
  char uid[37];
  std::snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012zu",
                std::hash<std::string>()(name) % 1'000'000'000'000);
  kept->uid = uid;
  json["metadata"]["name"] = name;
  json["metadata"]["uid"] = uid;
  kept->json = json.dump();
  return kept;
}

std::string annotation_of(const core::KeptPtr& kept, const char* key) {
  const Json json = Json::parse(kept->json);
  return json.at("metadata").at("annotations").value(key, "");
}

}  // namespace

const std::vector<std::string> Operators::kQueues = {"default", "fast", "deep", "low"};

void Operators::act(const std::vector<std::string>& jobs) {
  const std::string& job = jobs[below(jobs.size())];
  switch (below(8)) {
    case 0:
    case 1:
    case 2:
      return write(kQueues[below(kQueues.size())]);
    case 3:
      return write_class();
    case 4:
    case 5:
      return override_job(job);
    case 6:
      return world_.ask(job, core::HoldChange{0, true, "op", true, "to look at it"});
    default:
      return world_.ask(job, core::HoldChange{0, false, "op", true});
  }
}

void Operators::look(const std::vector<std::string>& jobs) {
  for (const std::string& name : kQueues) {
    const core::KeptPtr stored = world_.stored(core::KeptKind::queue, name);
    if (queues_[name].sent == 0) write(name);
    if (world_.calm() && (!stored || annotation_of(stored, kCalm).empty())) write(name);
  }
  if (!world_.calm()) return;
  for (const std::string& name : jobs)
    if (const core::Job* job = world_.shown(name); job && job->on_hold() && !job->finished())
      world_.ask(name, core::HoldChange{0, false, "op", true});
}

Json Operators::random_limits(uint32_t least) {
  Json limits = Json::object();
  if (one_in(2)) limits["pods"] = least + below(4);
  if (one_in(4)) limits["jobs"] = 2 + below(3);
  if (one_in(3)) limits["cpu"] = std::to_string(least + below(4));
  return limits;
}

Json Operators::random_spec(const std::string& queue) {
  const bool calm = world_.calm();
  Json spec = Json::object();
  spec["weight"] = 1 + below(3);
  spec["preemption"] = {{"queues", kPreempts.at(queue)}};
  // In the calm, "default" has room for anything.
  if (!calm || queue != "default") {
    if (one_in(2)) spec["nodeSelector"] = {{"pool", one_in(2) ? "a" : "b"}};
    spec["limits"] = random_limits(calm ? slots_ : 1);
    spec["userLimits"] = random_limits(calm ? slots_ : 1);
  }
  if (one_in(3)) spec["priority"]["default"] = below(3);
  if (one_in(3)) spec["priority"]["max"] = 2;
  if (calm) return spec;
  if (one_in(8)) spec["users"] = {"ada", "bob"};
  if (one_in(6)) spec["timeLimit"]["max"] = "20s";
  return spec;
}

void Operators::write(const std::string& queue) {
  const core::KeptPtr seen = world_.stored(core::KeptKind::queue, queue);
  const int version = ++queues_[queue].sent;
  auto done = [this, queue, version](Status status) {
    if (status.ok()) queues_[queue].answered = std::max(queues_[queue].answered, version);
  };
  if (seen && !world_.calm() && queue != "default" && one_in(8)) {
    queues_[queue].deletions.insert(version);
    return world_.store(seen, nullptr, done);
  }
  Json annotations = {{kVersion, std::to_string(version)}};
  if (world_.calm()) annotations[kCalm] = "true";
  world_.store(seen,
               object_of(core::KeptKind::queue, queue,
                         {{"apiVersion", "muster.dev/v1"},
                          {"kind", "Queue"},
                          {"metadata", {{"annotations", annotations}}},
                          {"spec", random_spec(queue)}}),
               done);
}

void Operators::write_class() {
  const core::KeptPtr seen = world_.stored(core::KeptKind::priority_class, "urgent");
  world_.store(seen,
               object_of(core::KeptKind::priority_class, "urgent",
                         {{"apiVersion", "scheduling.k8s.io/v1"},
                          {"kind", "PriorityClass"},
                          {"metadata", {{"annotations", Json::object()}}},
                          {"value", 1 + below(5)},
                          {"globalDefault", one_in(8)}}),
               nullptr);
}

// The time limit tells one change from another; it is longer than any pod runs.
void Operators::override_job(const std::string& name) {
  const core::Job* job = world_.shown(name);
  if (!job || job->finished()) return;
  const auto& set = job->state().overrides;
  Given& given = overrides_[name];
  core::Overrides next;
  next.time_limit_s = 600 + static_cast<int64_t>(given.sent.size());
  if (one_in(2)) next.queue = kQueues[below(kQueues.size())];
  if (one_in(3)) next.priority = static_cast<int32_t>(below(5));
  given.sent.push_back(next);
  world_.ask(name, core::OverridesChange{0, set ? set->overrides : core::Overrides{}, next, "op"},
             [this, name, number = given.sent.size()](Status status) {
               Given& to = overrides_[name];
               if (status.ok()) to.answered = std::max(to.answered, number);
             });
}

std::vector<std::string> Operators::check() const {
  std::vector<std::string> gone;
  for (const auto& [name, changes] : queues_) {
    const int answered = changes.answered;
    if (answered == 0) continue;
    const core::KeptPtr stored = world_.stored(core::KeptKind::queue, name);
    const bool deleted = changes.deletions.lower_bound(answered) != changes.deletions.end();
    const int shown = stored ? std::stoi(annotation_of(stored, kVersion)) : 0;
    if (stored ? shown < answered : !deleted)
      gone.push_back("an answered change of queue " + name + " is gone");
  }
  for (const auto& [name, given] : overrides_) {
    const core::Job* job = world_.shown(name);
    if (given.answered == 0 || !job || job->finished()) continue;  // its end drops them
    const auto& set = job->state().overrides;
    const bool known =
        set &&
        std::any_of(given.sent.begin() + static_cast<ptrdiff_t>(given.answered) - 1,
                    given.sent.end(), [&set](const auto& one) { return one == set->overrides; });
    if (!known)
      gone.push_back("an answered override is gone: " + name + " has " +
                     core::overrides_words(set ? set->overrides : core::Overrides{}) + ", not " +
                     core::overrides_words(given.sent[given.answered - 1]));
  }
  return gone;
}

}  // namespace muster::sim
