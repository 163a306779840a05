// Holds of a job and the priority that operators give it. Neither is part of the job's object, so
// its owner's writes do not change them (core/job/rules/owner.cpp).
//
//   PUT    /apis/muster.dev/v1/namespaces/NS/jobs/J/hold      {"reason": TEXT}
//   DELETE /apis/muster.dev/v1/namespaces/NS/jobs/J/hold
//   PUT    /apis/muster.dev/v1/namespaces/NS/jobs/J/priority  {"priority": N}
//   DELETE /apis/muster.dev/v1/namespaces/NS/jobs/J/priority
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
  Promise set_priority(Exchange& exchange, const Target& job, const std::string& body);
  Promise drop_priority(Exchange& exchange, const Target& job, const std::string& body);

 private:
  Promise change(Exchange& exchange, const Target& job, core::HoldChange change, int tries);
  Promise change(Exchange& exchange, const Target& job, std::optional<int32_t> priority);
  // The error for a job that nothing can be held of, or that is gone.
  std::optional<Promise> refuse_ended(Exchange& exchange, const Target& target) const;
};

}  // namespace muster::api
