// Nodes: cordon, taints, labels and annotations; apply; delete.
#pragma once

#include "api/request/route_base.hpp"
#include "core/cluster/nodes/node_reasons.hpp"
#include "core/spec/values/window.hpp"

#include <functional>
#include <vector>

namespace muster::api {

class NodeRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit NodeRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise write(Exchange& exchange, const Target& target, const std::string& body);
  Promise apply(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);
  Promise end_unknown_pods(Exchange& exchange, const Target& target, const std::string& body);

 private:
  using MakeNode = std::function<Result<core::NodeSpec>(const Shown& seen)>;
  // `uncordons`: the request sets spec.unschedulable, so it matters even if it changes nothing.
  Promise change(Exchange& exchange, const Target& target, bool dry, bool uncordons, MakeNode make,
                 int tries);
  Promise doubt(Exchange& exchange, const Target& target, const std::vector<core::Window>& windows);
  void tell(const core::NodeInfo& node, const core::NodeNews& news);
};

}  // namespace muster::api
