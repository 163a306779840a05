// Collections of jobs and pods: deletes all selected objects. For lists, see read_routes.hpp.
#pragma once

#include "api/request/route_base.hpp"

namespace muster::api {

class CollectionRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit CollectionRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);
};

}  // namespace muster::api
