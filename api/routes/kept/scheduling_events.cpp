#include "api/routes/kept/scheduling_events.hpp"

#include "api/kube/objects/event_object.hpp"
#include "base/log.hpp"
#include "base/text/json.hpp"
#include "base/text/time_text.hpp"
#include "core/pod_name.hpp"
#include "core/spec/fields/owner.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <utility>

namespace muster::api {
namespace {

constexpr const char* kScheduler = "default-scheduler";

// As Kubernetes' clients name events, from the time of the first; here of the pod's creation, which
// a restarted coordinator knows.
std::string name_of(const std::string& pod_name, const core::Pod& pod) {
  char text[24];
  std::snprintf(text, sizeof text, ".%016" PRIx64,
                static_cast<uint64_t>(pod.created_ms) * 1'000'000);
  return pod_name + text;
}

// What an earlier coordinator wrote.
SchedulingEvent read(const core::Kept& kept) {
  const Json json = Json::parse(kept.json, nullptr, false);
  if (!json.is_object()) return {};
  const auto first = parse_time(member_text(json, "firstTimestamp")),
             last = parse_time(member_text(json, "lastTimestamp"));
  const auto count = json.find("count");
  return {member_text(json, "message"),
          count != json.end() && count->is_number_integer() ? count->get<int64_t>() : 1,
          first.value_or(0), last.value_or(0)};
}

}  // namespace

bool is_due(const SchedulingEvent& event, const std::string& message, Millis now) {
  if (event.count == 0) return true;
  const Millis pause =
      event.message == message ? SchedulingEvents::kAgainMs : SchedulingEvents::kChangedMs;
  return now - event.last >= pause || now < event.last;
}

void SchedulingEvents::start() {
  pace_.start([this] { look(); });
}

void SchedulingEvents::look() {
  const Millis now = now_();
  std::erase_if(jobs_, [this](const auto& one) {
    const JobView* job = view_.jobs().in_memory(one.first);
    return job == nullptr || job->job.finished() || job->job.hidden();
  });
  view_.jobs().each_active([&](const core::Job& job) {
    if (!job.pending().empty()) look_at(job, now);
  });
}

void SchedulingEvents::look_at(const core::Job& job, Millis now) {
  OfJob& told = jobs_[job.id()];
  std::erase_if(told.pods, [&job](const auto& one) { return !job.pending().contains(one.first); });
  size_t looked_at = 0;
  for (const PodKey key : job.pending()) {
    if (asked_.size() >= kWritesAtOnce || ++looked_at > kPodsOfJob) return;
    const core::Pod* pod = job.pod(key);
    if (pod == nullptr) continue;
    const std::string message(renderer_.unplaced({.kind = Kind::pod, .job = &job, .pod = pod}));
    // Nor for its other pods, which are no older, unless some require more.
    if (message.empty() && job.raised().empty()) return;
    if (message.empty()) continue;
    auto known = told.pods.find(key);
    if (known == told.pods.end()) {
      if (told.made >= kPodsOfJob || pace_.in_an_hour(now) >= kNewInAnHour) return;
      ++told.made;
      pace_.count(now);
      known = told.pods.emplace(key, SchedulingEvent{}).first;
    }
    write(job, key, known->second, message, now);
  }
}

void SchedulingEvents::write(const core::Job& job, PodKey pod, SchedulingEvent& event,
                             const std::string& message, Millis now) {
  if (!is_due(event, message, now)) return;
  const core::JobMeta& meta = job.object().meta;
  const std::string pod_name = core::pod_name(meta.name, meta.uid, job.indexed(), pod);
  const std::string name = name_of(pod_name, *job.pod(pod));
  if (asked_.contains(name)) return;
  const auto seen = view_.kept(core::KeptKind::event, meta.ns, name);
  if (seen && event.count == 0) {
    event = read(*seen->kept->kept);
    if (!is_due(event, message, now)) return;
  }
  if (event.count == 0) event.first = now;
  event.last = now;
  event.message = message;
  ++event.count;
  auto next = std::make_shared<core::Kept>();
  if (seen) *next = *seen->kept->kept;
  next->kind = core::KeptKind::event;
  next->ns = meta.ns;
  next->name = name;
  if (!seen) next->uid = core::pod_uid(meta.uid + "/scheduling", pod);
  next->owner = core::owner_uid(meta.annotations);
  next->json = event_object(*next, {"Pod", "v1", meta.ns, pod_name, core::pod_uid(meta.uid, pod)},
                            {.warning = true,
                             .reason = "FailedScheduling",
                             .message = event.message,
                             .component = kScheduler,
                             .first = event.first,
                             .last = event.last,
                             .count = event.count})
                   .dump();
  asked_.insert(name);
  backend_.write_kept(seen ? seen->kept->kept : nullptr, std::move(next), {},
                      [this, name, job = job.id(), pod](const Status& written) {
                        asked_.erase(name);
                        if (written.ok() || !jobs_.contains(job)) return;
                        jobs_[job].pods[pod].last = 0;  // due again
                      });
}

}  // namespace muster::api
