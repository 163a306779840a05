// The part of the group muster.dev/v1 about the coordinators of a cluster: which there are, which
// one leads, and changes of that (docs/standby.md).
//
//   GET    …/coordinators                  CoordinatorList; of one that is alone, that one
//   POST   …/coordinators/NAME/promotion   hands over the lead to it
//   POST   …/coordinators/NAME/demotion    hands over the lead that it has, to any
//   DELETE …/coordinators/NAME             forgets one that is not connected
#pragma once

#include "api/request/route_base.hpp"

#include <optional>
#include <string>

namespace muster::api {

class CoordinatorRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit CoordinatorRoutes(const RouteContext& context) : RouteBase(context) {}

  static bool serves(const MusterTarget& target) {
    return target.what == "coordinators" || target.what == "coordinators/promotion" ||
           target.what == "coordinators/demotion";
  }
  Promise list(Exchange& exchange);
  Promise promote(Exchange& exchange, const Target& coordinator, const std::string& body);
  Promise demote(Exchange& exchange, const Target& coordinator, const std::string& body);
  Promise remove(Exchange& exchange, const Target& coordinator, const std::string& body);

 private:
  OrderedJson alone() const;
  Promise change(Exchange& exchange, core::standby::LeadChange change, const std::string& name);
};

}  // namespace muster::api
