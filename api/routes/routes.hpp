// Routes: dispatches requests to the resources' routes by path and method.
#pragma once

#include "api/routes/access/trust_routes.hpp"
#include "api/routes/coordinator_routes.hpp"
#include "api/routes/history_routes.hpp"
#include "api/routes/jobs/apply_routes.hpp"
#include "api/routes/jobs/cancel_routes.hpp"
#include "api/routes/jobs/collection_routes.hpp"
#include "api/routes/jobs/hold_routes.hpp"
#include "api/routes/jobs/job_routes.hpp"
#include "api/routes/jobs/scale_routes.hpp"
#include "api/routes/jobs/status_routes.hpp"
#include "api/routes/kept/account_routes.hpp"
#include "api/routes/kept/kept_routes.hpp"
#include "api/routes/kept/node_routes.hpp"
#include "api/routes/kept/read_routes.hpp"
#include "api/routes/muster_routes.hpp"
#include "api/routes/pods/attempt_routes.hpp"
#include "api/routes/pods/exec_routes.hpp"
#include "api/routes/pods/log_routes.hpp"
#include "api/routes/pods/pod_routes.hpp"

#include <optional>
#include <string>

namespace muster::api {

class Routes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit Routes(const RouteContext& context)
      : RouteBase(context),
        reads_(context),
        jobs_(context),
        apply_(context),
        scale_(context),
        holds_(context),
        cancels_(context),
        status_(context),
        pods_(context),
        nodes_(context),
        kept_(context),
        accounts_(context),
        collections_(context),
        logs_(context),
        attempts_(context, logs_),
        history_(context, attempts_),
        exec_(context),
        muster_(context),
        trust_(context),
        coordinators_(context) {}

  Promise answer(Exchange& exchange, const Target& target);
  Promise answer_own(Exchange& exchange, const MusterTarget& target);
  Promise answer_accounts(Exchange& exchange) { return accounts_.answer(exchange); }

 private:
  template <class R>
  using Handler = Promise (R::*)(Exchange&, const Target&, const std::string& body);
  // Calls the handler with the body once it has been read.
  template <class R>
  Promise with_body(Exchange& exchange, const Target& target, R& routes, Handler<R> handler,
                    size_t most = kBodyMax, BodyType type = BodyType::object);
  Promise answer_exec(Exchange& exchange, const MusterTarget& target);
  Promise answer_hold(Exchange& exchange, const MusterTarget& target);
  Promise answer_trust(Exchange& exchange, const MusterTarget& target);
  Promise answer_coordinators(Exchange& exchange, const MusterTarget& target);
  Promise write(Exchange& exchange, const Target& target);
  // Whether nothing may be added to the namespace by this caller, because it is being deleted.
  bool is_closed(const Exchange& exchange, const std::string& ns) const;
  Promise remove(Exchange& exchange, const Target& target);
  Promise not_allowed(Exchange& exchange, std::string methods);
  std::optional<std::string> damage(const Target& target, bool reads) const;

  ReadRoutes reads_;
  JobRoutes jobs_;
  ApplyRoutes apply_;
  ScaleRoutes scale_;
  HoldRoutes holds_;
  CancelRoutes cancels_;
  StatusRoutes status_;
  PodRoutes pods_;
  NodeRoutes nodes_;
  KeptRoutes kept_;
  AccountRoutes accounts_;
  CollectionRoutes collections_;
  LogRoutes logs_;
  AttemptRoutes attempts_;
  HistoryRoutes history_;
  ExecRoutes exec_;
  MusterRoutes muster_;
  TrustRoutes trust_;
  CoordinatorRoutes coordinators_;
};

}  // namespace muster::api
