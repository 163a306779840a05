// Pods: delete, evict; labels and annotations by PUT, PATCH and apply; conditions through their
// status.
#pragma once

#include "api/request/route_base.hpp"
#include "base/text/json.hpp"

#include <functional>

namespace muster::api {

class PodRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit PodRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise write(Exchange& exchange, const Target& target, const std::string& body);
  Promise apply(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);
  Promise evict(Exchange& exchange, const Target& target, const std::string& body);

 private:
  // Makes the pod that a request asks for from the current one.
  using MakePod = std::function<Result<Json>(const Json& base)>;
  Promise change(Exchange& exchange, const Target& target, const Shown& shown, bool dry,
                 const MakePod& make);
  Promise delete_pod(Exchange& exchange, const Target& target, const DeleteOptions& options,
                     bool evict);
  Promise pod_or_success(Exchange& exchange, const Target& target, const std::string& uid);
};

}  // namespace muster::api
