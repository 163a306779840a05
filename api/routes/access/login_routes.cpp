#include "api/routes/access/login_routes.hpp"

#include "api/request/call.hpp"
#include "api/routes/access/trust_routes.hpp"
#include "core/trust.hpp"

#include <utility>

namespace muster::api {
namespace {

constexpr size_t kLoginBodyMax = 1024;  // bytes

kj::Promise<void> refuse_login(Exchange& exchange, const char* why) {
  exchange.unknown_why = why;
  exchange.headers.push_back({"WWW-Authenticate", "Bearer"});
  return exchange.send_status(
      401, "Unauthorized", "the link has been used or is too old: `muster web` prints another one");
}

}  // namespace

bool LoginRoutes::serves(const Exchange& exchange) {
  const std::vector<std::string>& p = exchange.url.path;
  return exchange.method == kj::HttpMethod::POST && p.size() == 4 && p[0] == "apis" &&
         p[1] == "muster.dev" && p[2] == "v1" && p[3] == "login";
}

kj::Promise<void> LoginRoutes::answer(Exchange& exchange) {
  return exchange.read_body(kLoginBodyMax)
      .then([this, &exchange](kj::Maybe<std::string> body) -> kj::Promise<void> {
        KJ_IF_MAYBE (text, body) return log_in(exchange, *text);
        return kj::READY_NOW;  // an error has already been sent
      });
}

kj::Promise<void> LoginRoutes::log_in(Exchange& exchange, const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  const std::string code = json.is_object() ? member_text(json, "code") : "";
  if (code.empty()) return exchange.bad(R"(the body must be {"code": "..."})");
  auto login = logins_.take(code, options_.now());
  if (!login || (!login->parent.empty() && !backend_.token(login->parent)))
    return refuse_login(exchange, "its code for the page is unknown or too old");
  return make(exchange, *login);
}

kj::Promise<void> LoginRoutes::make(Exchange& exchange, const Logins::Login& login) {
  return streams_.timer.timeoutAfter(kAccountPatience, directory_.find(login.uid))
      .then([this, &exchange, login](Caller caller) -> kj::Promise<void> {
        // The uid may have been reassigned to another user.
        if (caller.who.name != login.name || caller.role == Role::none)
          return refuse_login(exchange, "its code for the page is of a user without a role");
        exchange.caller = std::move(caller);
        exchange.caller.distinguished = true;
        const Millis life = login.token_until_ms - options_.now();
        if (life < core::kTokenLifeMin)
          return refuse_login(exchange, "the token that made its code for the page expires");
        auto call = new_call<Result<TokenMade>>();
        backend_.make_token(
            {core::TokenKind::user, login.name, login.uid, web_token_maker(login.parent), life, {}},
            std::move(call.done));
        return call.promise.then([&exchange](Result<TokenMade> token) {
          if (token.ok()) return send_made(exchange, *token);
          return exchange.send_error(token.error(), "tokens", exchange.caller.who.name);
        });
      });
}

}  // namespace muster::api
