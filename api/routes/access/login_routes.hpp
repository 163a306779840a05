// LoginRoutes: lets the web page log in, by a code that works once.
//
//   POST /apis/muster.dev/v1/users/NAME/token {"login": true}: a code for that user, from somebody
//   who could make a token (trust_routes.hpp)
//   POST /apis/muster.dev/v1/login {"code": "…"}: over HTTPS and without a token; responds with a
//   token for the code's user
//
// A code is 256 random bits, so it cannot be guessed. It is kept in memory only: after a restart,
// `muster web` makes another one.
#pragma once

#include "api/access/logins.hpp"
#include "api/request/route_base.hpp"

#include <string>

namespace muster::api {

class LoginRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit LoginRoutes(const RouteContext& context) : RouteBase(context) {}

  // Whether a request without a token is one of these.
  static bool serves(const Exchange& exchange);
  Promise answer(Exchange& exchange);

 private:
  Promise log_in(Exchange& exchange, const std::string& body);
  Promise make(Exchange& exchange, const Logins::Login& login);
};

}  // namespace muster::api
