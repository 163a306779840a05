#include "api/routes/kept/node_events.hpp"

#include "api/kube/objects/event_object.hpp"
#include "base/log.hpp"
#include "base/text/json.hpp"

#include <memory>

namespace muster::api {
namespace {

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
  pace_.start([this] { look(); });
}

void NodeEvents::look() {
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
  if (is_so == told.contains(node.name) || pace_.in_an_hour(now_()) >= kNewInAnHour) return;
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
  pace_.count(now);
  auto event = node_event(node, pace_.unique(now), {warning, reason, message}, now);
  backend_.write_kept(nullptr, std::move(event), {}, [name = node.name](const Status& written) {
    if (!written.ok())
      log::debug("an event of node {} was not written: {}", name, written.error().message);
  });
}

}  // namespace muster::api
