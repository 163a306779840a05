// MungeRoutes: exchanges a munge credential for a token, for callers on other machines who have not
// been identified yet.
//
//   GET /apis/muster.dev/v1/munge: the audience that a credential must name
//   POST: {"credential": "MUNGE:…:"}; responds with a token for the user who made it
//
// Invariants: a caller never learns why a credential is refused, and appears in the audit log only
// once munge has identified it.
#pragma once

#include "api/request/route_base.hpp"
#include "base/seldom.hpp"

#include <string>

namespace muster::api {

class MungeRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit MungeRoutes(const RouteContext& context) : RouteBase(context) {}

  // Whether a request without a token is one of these; false if munge is not used.
  bool serves(const Exchange& exchange) const;
  Promise answer(Exchange& exchange);

 private:
  Promise log_in(Exchange& exchange, const std::string& body);
  Promise make(Exchange& exchange, uid_t uid);
  Promise refuse(Exchange& exchange, const Error& error);

  Seldom silent_;
};

}  // namespace muster::api
