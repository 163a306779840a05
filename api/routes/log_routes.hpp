// The logs of pods.
#pragma once

#include "api/routes/resource.hpp"

#include <string>

namespace muster::api {

class LogRoutes final : private Resource {
 public:
  using Resource::Promise;
  explicit LogRoutes(const RouteContext& context) : Resource(context) {}
  Promise get(Exchange& exchange, const Target& target);
  // The log of a pod, which may have disappeared from the View; `name` is the pod's.
  Promise of_pod(Exchange& exchange, const Shown& shown, const std::string& name);
};

}  // namespace muster::api
