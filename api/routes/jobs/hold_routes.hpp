// Holds of a job, and what operators set in place of what its object says. Neither is part of the
// object, so its owner's writes do not change them (core/job/rules/owner.cpp).
//
//   PUT    /apis/muster.dev/v1/namespaces/NS/jobs/J/hold       {"reason": TEXT}
//   DELETE /apis/muster.dev/v1/namespaces/NS/jobs/J/hold
//   PATCH  /apis/muster.dev/v1/namespaces/NS/jobs/J/overrides  {"priority": N, "queue": NAME,
//          "timeLimitSeconds": N (0: none)}; null: as in the object; what is absent stays
#pragma once

#include "api/request/route_base.hpp"

#include <optional>
#include <string>

namespace muster::api {

class HoldRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit HoldRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise hold(Exchange& exchange, const Target& job, const std::string& body);
  Promise release(Exchange& exchange, const Target& job, const std::string& body);
  Promise set_overrides(Exchange& exchange, const Target& job, const std::string& body);

 private:
  Promise change(Exchange& exchange, const Target& job, core::HoldChange change, int tries);
  Promise set_overrides(Exchange& exchange, const Target& job, nlohmann::json wanted, int tries);
  // Changes `overrides` as the request wants; an error if its values are wrong.
  Status apply(const nlohmann::json& wanted, core::Overrides& overrides) const;
  // The error for a job that nothing can be held of, or that is gone.
  std::optional<Promise> refuse_ended(Exchange& exchange, const Target& target) const;
};

}  // namespace muster::api
