// NodeEvents: writes an event when a node stops getting pods because they cannot start there or
// because it fails its health check, and when that is over.
//
// An event is a stored object in the namespace `default`, as for Kubernetes' nodes, and its node is
// its involvedObject. A restarted coordinator may write one again.
//
// Bounded: kNewInAnHour an hour. A node without an event still has its condition.
//
// Belongs to the API thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/routes/kept/event_pace.hpp"
#include "api/view/model/view.hpp"

#include <kj/timer.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

namespace muster::api {

struct NodeEventText {
  bool warning = false;  // otherwise normal
  std::string reason, message;
};
// An event about the node, to be stored; `unique` tells it from others of the node.
std::shared_ptr<core::Kept> node_event(const core::NodeInfo& node, const std::string& unique,
                                       const NodeEventText& text, Millis now);

class NodeEvents {
 public:
  static constexpr size_t kNewInAnHour = 500;

  NodeEvents(kj::Timer& timer, const View& view, Backend& backend, WallClock now)
      : pace_(timer, "events of nodes"), view_(view), backend_(backend), now_(std::move(now)) {}
  // Looks once a second from now on.
  void start();
  void look();

 private:
  // `told`: the nodes of which the event was written that they are so.
  void tell(std::set<std::string>& told, const core::NodeInfo& node, bool is_so, const char* reason,
            const std::string& message, const char* over, const char* over_message);
  void write(const core::NodeInfo& node, bool warning, const char* reason,
             const std::string& message);

  EventPace pace_;
  const View& view_;
  Backend& backend_;
  const WallClock now_;
  std::set<std::string> starts_failing_, unhealthy_;
};

}  // namespace muster::api
