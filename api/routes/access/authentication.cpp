#include "api/routes/access/authentication.hpp"

#include "base/check.hpp"

#include <string_view>
#include <utility>

namespace muster::api {
namespace {

constexpr std::string_view kBearer = "Bearer ";

std::string_view bearer_of(const Exchange& exchange) {
  return std::string_view(exchange.authorization).substr(kBearer.size());
}

bool is_health(const Exchange& exchange) {
  const std::vector<std::string>& path = exchange.url.path;
  return path.size() == 1 && (path[0] == "healthz" || path[0] == "livez" || path[0] == "readyz");
}

kj::Promise<void> unauthorized(Exchange& exchange, bool bears) {
  exchange.headers.push_back({"WWW-Authenticate", "Bearer"});
  return exchange.send_status(
      401, "Unauthorized",
      bears ? "the token is unknown, has expired or was revoked"
            : "no token: create one with `muster token create` on the coordinator's machine");
}

}  // namespace

bool Authentication::bears_token(const Exchange& exchange) {
  return exchange.authorization.starts_with(kBearer);
}

std::optional<core::Token> Authentication::token_of(const Exchange& exchange, Backend& backend) {
  if (!exchange.peer.remote || !bears_token(exchange)) return std::nullopt;
  return backend.token_of(bearer_of(exchange));
}

kj::Promise<void> Authentication::pass(Exchange& exchange, Answer answer) {
  if (exchange.peer.remote) return pass_remote(exchange, std::move(answer));
  if (exchange.peer.collector) {
    exchange.caller.role = Role::metrics;
    if (exchange.wants.resource.empty()) return answer(exchange);
    return exchange.send_status(403, "Forbidden", "this port serves metrics and health only");
  }
  if (!options_.roles.any()) {
    exchange.caller.role = Role::admin;  // our own user or root, unless insecure
    return answer(exchange);
  }
  MUSTER_CHECK(exchange.peer.uid.has_value());
  return identified(exchange, *exchange.peer.uid).then([&exchange, answer = std::move(answer)] {
    return answer(exchange);
  });
}

kj::Promise<void> Authentication::identified(Exchange& exchange, uid_t uid) {
  return streams_.timer.timeoutAfter(kAccountPatience, directory_.find(uid))
      .then([this, &exchange](Caller caller) {
        exchange.caller = std::move(caller);
        exchange.caller.distinguished = options_.roles.any();
      });
}

// Without a token, only health is served.
kj::Promise<void> Authentication::pass_remote(Exchange& exchange, Answer answer) {
  const bool bears = bears_token(exchange);
  const std::optional<core::Token> token = token_of(exchange, backend_);
  if (!token) {
    if (!bears && is_health(exchange)) return answer(exchange);
    return unauthorized(exchange, bears);
  }
  return identified(exchange, token->uid)
      .then([this, &exchange, name = token->subject, answer = std::move(answer)] {
        // The uid may have been reassigned to another user.
        if (exchange.caller.who.name != name) return unauthorized(exchange, true);
        connections_.busy(exchange.connection);
        return answer(exchange).exclusiveJoin(end_with_token(exchange));
      });
}

// Ends a request that outlives its token. A watch ends as if its time were up; its client comes
// back and is refused. For everything else the connection is closed: KJ completes a response that
// is dropped, and a truncated response must not pass for complete.
kj::Promise<void> Authentication::end_with_token(Exchange& exchange) {
  return streams_.timer.afterDelay(streams_.token_gap).then([this, &exchange]() -> Promise {
    if (backend_.token_of(bearer_of(exchange))) return end_with_token(exchange);
    exchange.expired = true;
    streams_.wake();
    return streams_.timer.afterDelay(streams_.token_gap)
        .then([this, id = exchange.connection]() -> Promise {
          connections_.close(id);
          return kj::NEVER_DONE;
        });
  });
}

}  // namespace muster::api
