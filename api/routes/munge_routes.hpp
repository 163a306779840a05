// MungeRoutes: a munge credential in exchange for a token, for callers of other machines whom
// nobody knows yet.
//
//   GET /apis/muster.dev/v1/munge: whom a credential must be made for
//   POST: {"credential": "MUNGE:…:"}; answers with a token of the user who made it
//
// Always holds: a caller learns nothing of why a credential is refused, and is in the audit log
// only once munge has said who it is.
#pragma once

#include "api/request/route_base.hpp"
#include "base/seldom.hpp"

#include <string>

namespace muster::api {

class MungeRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit MungeRoutes(const RouteContext& context) : RouteBase(context) {}

  // Whether a request without a token is one of these; not if munge is not used.
  bool serves(const Exchange& exchange) const;
  Promise answer(Exchange& exchange);

 private:
  Promise log_in(Exchange& exchange, const std::string& body);
  Promise make(Exchange& exchange, uid_t uid);
  Promise refuse(Exchange& exchange, const Error& error);

  Seldom silent_;
};

}  // namespace muster::api
