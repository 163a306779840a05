// Authentication: who sends a request, decided before anything else is asked of it.
//
// On this machine the kernel says who is at the other end; on another machine, a token does. The
// port for metrics identifies nobody. Without roles, everybody whom this machine's ports admit is
// an admin.
#pragma once

#include "api/request/route_base.hpp"

#include <functional>

namespace muster::api {

class Authentication final : private RouteBase {
 public:
  using RouteBase::Promise;
  struct Connections {
    std::function<void(uint64_t connection)> busy;   // keep it when others make room
    std::function<void(uint64_t connection)> close;  // at once
  };
  Authentication(const RouteContext& context, Connections connections)
      : RouteBase(context), connections_(std::move(connections)) {}

  static bool bears_token(const Exchange& exchange);
  // The valid token that a request from another machine bears, if any.
  static std::optional<core::Token> token_of(const Exchange& exchange, Backend& backend);

  // Sets the caller and answers by `answer`, or refuses.
  using Answer = std::function<Promise(Exchange& exchange)>;
  Promise pass(Exchange& exchange, Answer answer);

 private:
  Promise identified(Exchange& exchange, uid_t uid);
  Promise pass_remote(Exchange& exchange, Answer answer);
  Promise end_with_token(Exchange& exchange);

  const Connections connections_;
};

}  // namespace muster::api
