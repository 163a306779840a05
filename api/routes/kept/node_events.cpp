#include "api/routes/kept/node_events.hpp"

#include "api/kube/objects/event_object.hpp"
#include "base/log.hpp"
#include "base/text/json.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace muster::api {
namespace {

constexpr auto kNodesPause = 1 * kj::SECONDS;
constexpr Millis kNodesHourMs = 3'600'000;
constexpr const char* kNodesNamespace = "default";

}  // namespace

std::shared_ptr<core::Kept> node_event(const core::NodeInfo& node, const std::string& unique,
                                       const NodeEventText& text, Millis now) {
  auto event = std::make_shared<core::Kept>();
  event->kind = core::KeptKind::event;
  event->ns = kNodesNamespace;
  event->name = node.name + "." + unique;
  event->uid = node.work_dir_id + "." + unique;
  event->json = dumped(event_object(
      *event, {.kind = "Node", .api_version = "v1", .name = node.name, .uid = node.work_dir_id},
      {.warning = text.warning,
       .reason = text.reason,
       .message = text.message,
       .first = now,
       .last = now}));
  return event;
}

void NodeEvents::start() {
  if (std::exchange(running_, true)) return;
  work_ = rounds().eagerlyEvaluate([this](kj::Exception&& failed) {
    running_ = false;
    log::error("events of nodes are no longer written: {}", failed.getDescription().cStr());
  });
}

kj::Promise<void> NodeEvents::rounds() {
  return timer_.afterDelay(kNodesPause).then([this] {
    look();
    return rounds();
  });
}

void NodeEvents::look() {
  const Millis now = now_();
  while (!made_.empty() && made_.front() + kNodesHourMs <= now) made_.pop_front();
  view_.each(Kind::node, "", nullptr, [this](const Shown& shown) {
    const core::NodeInfo& node = *shown.node;
    if (node.gone) {  // the next incarnation begins anew
      starts_failing_.erase(node.name);
      unhealthy_.erase(node.name);
      return;
    }
    tell(starts_failing_, node, !node.starts_failing.empty(), "StartsFailing", node.starts_failing,
         "StartsSucceeding", "the node gets pods again");
    tell(unhealthy_, node, node.check.fails(), "HealthCheckFailed", node.check.failure,
         "HealthCheckPassed", "the health check passes");
  });
}

void NodeEvents::tell(std::set<std::string>& told, const core::NodeInfo& node, bool is_so,
                      const char* reason, const std::string& message, const char* over,
                      const char* over_message) {
  if (is_so == told.contains(node.name) || made_.size() >= kNewInAnHour) return;
  if (is_so) {
    told.insert(node.name);
    write(node, true, reason, message);
  } else {
    told.erase(node.name);
    write(node, false, over, over_message);
  }
}

void NodeEvents::write(const core::NodeInfo& node, bool warning, const char* reason,
                       const std::string& message) {
  const Millis now = now_();
  made_.push_back(now);
  // As Kubernetes' clients name events, from the time; two of one millisecond differ in the rest.
  char unique[24];
  std::snprintf(unique, sizeof unique, "%016" PRIx64,
                static_cast<uint64_t>(now) * 1'000'000 + ++last_ % 1'000'000);
  auto event = node_event(node, unique, {warning, reason, message}, now);
  backend_.write_kept(nullptr, std::move(event), {}, [name = node.name](const Status& written) {
    if (!written.ok())
      log::debug("an event of node {} was not written: {}", name, written.error().message);
  });
}

}  // namespace muster::api
