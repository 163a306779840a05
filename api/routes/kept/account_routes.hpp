// Service accounts: each namespace in use has one, `default`, for clients that look for it. They
// can be read, listed and watched; nothing is stored for them.
//
// An account comes and goes with its namespace. Its version is that of the moment at which it is
// shown, so that versions grow and a watch can continue from any of them.
#pragma once

#include "api/request/route_base.hpp"

namespace muster::api {

class AccountRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit AccountRoutes(const RouteContext& context) : RouteBase(context) {}
  static bool serves(const Url& url);
  Promise answer(Exchange& exchange);
};

}  // namespace muster::api
