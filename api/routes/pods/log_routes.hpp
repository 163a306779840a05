// The logs of pods.
#pragma once

#include "api/request/route_base.hpp"

#include <string>

namespace muster::api {

class LogRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit LogRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise get(Exchange& exchange, const Target& target);
  // The log of a pod, which may have disappeared from the View; `name` is the pod's.
  Promise of_pod(Exchange& exchange, const Shown& shown, const std::string& name);
};

}  // namespace muster::api
