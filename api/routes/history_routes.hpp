// The history of jobs, running and deleted ones included, their attempts, and reports of what they
// used. A user sees only the own jobs (docs/users.md), in reports too.
//
// Jobs that have not ended are those of the read model; the entries of all others are read from
// disk. Both are visited by id in one pass, a bounded number per request, so that no job is missed
// or counted twice, whatever ends between two pages.
#pragma once

#include "api/request/route_base.hpp"
#include "api/routes/pods/attempt_routes.hpp"
#include "core/history/filter.hpp"

#include <functional>
#include <optional>
#include <string>

namespace muster::api {

class HistoryRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  HistoryRoutes(const RouteContext& context, AttemptRoutes& attempts)
      : RouteBase(context), attempts_(attempts) {}
  static bool serves(const MusterTarget& target);
  Promise answer(Exchange& exchange, const MusterTarget& target);

 private:
  Promise list(Exchange& exchange, const core::HistoryFilter& filter, JobId after);
  Promise report(Exchange& exchange, const core::HistoryFilter& filter, JobId after);
  Promise attempts(Exchange& exchange, const MusterTarget& target);
  // Visits the entries after this job until `visit` returns false or enough was read. Returns the
  // last job visited, if there may be more.
  Result<std::optional<JobId>> walk(JobId after,
                                    const std::function<bool(const core::HistoryEntry&)>& visit);
  core::HistoryFilter own_jobs(const Exchange& exchange, const std::string& ns) const;
  Result<core::HistoryFilter> filter_of(const Exchange& exchange, const std::string& ns) const;

  AttemptRoutes& attempts_;
};

}  // namespace muster::api
