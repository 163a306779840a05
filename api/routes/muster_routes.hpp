// The group muster.dev/v1 except attempts: the map of a job's indexes, pods per node, backups,
// verification.
#pragma once

#include "api/routes/resource.hpp"

#include <string>

namespace muster::api {

class MusterRoutes final : private Resource {
 public:
  using Resource::Promise;
  explicit MusterRoutes(const RouteContext& context) : Resource(context) {}
  Promise indexes(Exchange& exchange, const Shown& job);
  Promise node_use(Exchange& exchange);
  Promise back_up(Exchange& exchange, const Target&, const std::string& body);
  Promise verification(Exchange& exchange);
};

}  // namespace muster::api
