// Collections of jobs and pods: deletes all selected objects. For lists, see read_routes.hpp.
#pragma once

#include "api/routes/resource.hpp"

namespace muster::api {

class CollectionRoutes final : private Resource {
 public:
  using Resource::Promise;
  explicit CollectionRoutes(const RouteContext& context) : Resource(context) {}
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);
};

}  // namespace muster::api
