#include "api/routes/kept/reach_events.hpp"

#include "api/kube/objects/event_object.hpp"
#include "base/log.hpp"
#include "base/text/json.hpp"
#include "core/spec/fields/owner.hpp"

#include <memory>

namespace muster::api {

void ReachEvents::start() {
  pace_.start([this] { look(); });
}

void ReachEvents::look() {
  std::erase_if(told_, [this](const auto& one) { return !view_.unreached().contains(one.first); });
  for (const auto& [id, pairs] : view_.unreached()) tell(id, core::reach_text(pairs));
}

// Without a text, its nodes reach each other.
void ReachEvents::tell(JobId id, const std::string& text) {
  const auto told = told_.find(id);
  if (text == (told == told_.end() ? "" : told->second)) return;
  if (pace_.in_an_hour(now_()) >= kNewInAnHour) return;
  const JobView* view = view_.jobs().in_memory(id);
  if (view == nullptr || view->job.hidden()) return;
  if (text.empty()) {
    told_.erase(told);
    write(view->job, false, "NodesReachable", "the nodes of the job reach each other again");
  } else {
    told_[id] = text;
    write(view->job, true, "NodesUnreachable", text);
  }
}

void ReachEvents::write(const core::Job& job, bool warning, const char* reason,
                        const std::string& message) {
  const Millis now = now_();
  pace_.count(now);
  const core::JobMeta& meta = job.object().meta;
  const std::string unique = "." + pace_.unique(now);
  auto event = std::make_shared<core::Kept>();
  event->kind = core::KeptKind::event;
  event->ns = meta.ns;
  event->name = meta.name + unique;
  event->uid = meta.uid + unique;
  event->owner = core::owner_uid(meta.annotations);
  event->json = dumped(event_object(
      *event,
      {.kind = "Job", .api_version = "batch/v1", .ns = meta.ns, .name = meta.name, .uid = meta.uid},
      {.warning = warning, .reason = reason, .message = message, .first = now, .last = now}));
  backend_.write_kept(nullptr, std::move(event), {}, [name = meta.name](const Status& written) {
    if (!written.ok())
      log::debug("an event of job {} was not written: {}", name, written.error().message);
  });
}

}  // namespace muster::api
