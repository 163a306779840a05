// The history of a job's attempts, their logs, what they have used, and explanations of why a job
// or an index is in its state. Attempts are read from disk, so their Pods need not exist any more.
#pragma once

#include "api/request/route_base.hpp"
#include "api/routes/pods/log_routes.hpp"
#include "api/view/render/attempt_json.hpp"

#include <cstdint>
#include <optional>

namespace muster::api {

class AttemptRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  AttemptRoutes(const RouteContext& context, LogRoutes& logs) : RouteBase(context), logs_(logs) {}
  Promise list(Exchange& exchange, const Shown& job);
  // Likewise, of a job that need not exist any more; `now`: as it is, if it does.
  Promise list(Exchange& exchange, JobId id, const AttemptOf& job, const core::Job* now = nullptr);
  Promise log(Exchange& exchange, const Shown& job);
  Promise why(Exchange& exchange, const Shown& job);
  Promise usage(Exchange& exchange, const Shown& job);

 private:
  Result<std::optional<core::Pod>> last_attempt(const core::Job& job, uint32_t index);

  LogRoutes& logs_;
};

}  // namespace muster::api
