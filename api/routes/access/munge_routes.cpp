#include "api/routes/access/munge_routes.hpp"

#include "api/request/call.hpp"
#include "api/routes/access/trust_routes.hpp"
#include "base/log.hpp"
#include "core/trust.hpp"

#include <kj/debug.h>

#include <unistd.h>
#include <utility>

namespace muster::api {
namespace {

constexpr size_t kMungeBodyMax = 8 * 1024;  // bytes; our credentials have 300

}  // namespace

bool MungeRoutes::serves(const Exchange& exchange) const {
  const std::vector<std::string>& p = exchange.url.path;
  return options_.munge && p.size() == 4 && p[0] == "apis" && p[1] == "muster.dev" &&
         p[2] == "v1" && p[3] == "munge";
}

kj::Promise<void> MungeRoutes::answer(Exchange& exchange) {
  if (exchange.method == kj::HttpMethod::POST)
    return exchange.read_body(kMungeBodyMax)
        .then([this, &exchange](kj::Maybe<std::string> body) -> kj::Promise<void> {
          KJ_IF_MAYBE (text, body) return log_in(exchange, *text);
          return kj::READY_NOW;  // an error has already been sent
        });
  if (exchange.method != kj::HttpMethod::GET) {
    exchange.headers.push_back({"Allow", "GET, POST"});
    return exchange.send_status(405, "MethodNotAllowed",
                                "the server does not allow this method here");
  }
  const auto audience = backend_.munge_audience();
  if (!audience) return refuse(exchange, {Errc::unavailable, "", {}});
  const OrderedJson json = {{"kind", "MungeAudience"},
                            {"apiVersion", "muster.dev/v1"},
                            {"cluster", audience->cluster},
                            {"start", audience->start},
                            {"uid", geteuid()}};
  return exchange.send(200, dumped(json) + "\n");
}

kj::Promise<void> MungeRoutes::log_in(Exchange& exchange, const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  const auto it = json.is_object() ? json.find("credential") : json.end();
  if (!json.is_object() || it == json.end() || !it->is_string() || json.size() != 1)
    return exchange.bad(R"(the body must be {"credential": "MUNGE:..."})");
  auto call = new_call<Result<uint32_t>>();
  backend_.judge_munge(it->get<std::string>(), exchange.peer.source, std::move(call.done));
  return streams_.timer.timeoutAfter(options_.munge_patience, kj::mv(call.promise))
      .catch_([](kj::Exception&& failure) -> Result<uint32_t> {
        if (failure.getType() == kj::Exception::Type::OVERLOADED)
          return Error{Errc::unavailable, "munged is not responding", {}};
        kj::throwFatalException(kj::mv(failure));
      })
      .then([this, &exchange](Result<uint32_t> uid) {
        return uid.ok() ? make(exchange, *uid) : refuse(exchange, uid.error());
      });
}

kj::Promise<void> MungeRoutes::refuse(Exchange& exchange, const Error& error) {
  if (error.code == Errc::overloaded)
    return exchange.send_status(429, "TooManyRequests",
                                "too many munge logins at once; try again later",
                                OrderedJson{{"retryAfterSeconds", 1}});
  if (error.code != Errc::invalid) {
    if (const auto more = silent_.due(boot_now()); more && !error.message.empty())
      log::warn("munge logins fail: {}{}", error.message, *more);
    return exchange.send_status(503, "ServiceUnavailable",
                                "munged on the coordinator's machine is not responding",
                                OrderedJson{{"retryAfterSeconds", 1}});
  }
  exchange.unknown_why = "its munge credential is refused: " + error.message;
  exchange.headers.push_back({"WWW-Authenticate", "Bearer"});
  return exchange.send_status(401, "Unauthorized", "the munge credential is not accepted");
}

kj::Promise<void> MungeRoutes::make(Exchange& exchange, uid_t uid) {
  return streams_.timer.timeoutAfter(kAccountPatience, directory_.find(uid))
      .then([this, &exchange, uid](Caller caller) -> kj::Promise<void> {
        exchange.caller = std::move(caller);
        exchange.caller.distinguished = true;
        if (!quotas_.take_request(exchange.caller, boot_now()))
          return exchange.send_status(429, "TooManyRequests",
                                      "more requests than one user may send in a second",
                                      OrderedJson{{"retryAfterSeconds", 1}});
        // Any machine's root could make such a credential, and agents may run as our own user.
        if (uid == 0 || uid == geteuid())
          return exchange.send_status(
              403, "Forbidden", "root and the coordinator's own user cannot log in with munge");
        if (exchange.caller.role == Role::none)
          return exchange.send_status(403, "Forbidden",
                                      "user " + exchange.caller.who.name + " has no role here");
        auto call = new_call<Result<TokenMade>>();
        backend_.make_token({core::TokenKind::user, exchange.caller.who.name, uid, "munge",
                             options_.munge_token_life},
                            std::move(call.done));
        return call.promise.then([&exchange](Result<TokenMade> token) {
          if (token.ok()) return send_made(exchange, *token);
          return exchange.send_error(token.error(), "tokens", exchange.caller.who.name);
        });
      });
}

}  // namespace muster::api
