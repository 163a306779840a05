// Cancels a job or some of its indexes (core/job/rules/owner.cpp, ADR 74).
//
//   PUT /apis/muster.dev/v1/namespaces/NS/jobs/J/cancel  {} or {"indexes": "3,7-9"}
#pragma once

#include "api/request/route_base.hpp"

#include <optional>
#include <string>

namespace muster::api {

class CancelRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit CancelRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise cancel(Exchange& exchange, const Target& job, const std::string& body);

 private:
  Promise answer(Exchange& exchange, const Target& target, const core::Cancellation& asked) const;
};

}  // namespace muster::api
