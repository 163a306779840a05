// Pods: delete, evict, labels and annotations, and conditions through their status.
#pragma once

#include "api/request/route_base.hpp"

namespace muster::api {

class PodRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit PodRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise write(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);
  Promise evict(Exchange& exchange, const Target& target, const std::string& body);

 private:
  Promise delete_pod(Exchange& exchange, const Target& target, const DeleteOptions& options,
                     bool evict);
  Promise pod_or_success(Exchange& exchange, const Target& target, const std::string& uid);
};

}  // namespace muster::api
