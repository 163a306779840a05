#include "api/routes/access/trust_routes.hpp"

#include "api/request/writes.hpp"
#include "core/spec/values/names.hpp"
#include "core/trust.hpp"
#include "text/time_text.hpp"

#include <utility>

namespace muster::api {
namespace {

// The lifetime that a body {"ttlSeconds": N} asks for.
Result<Millis> life_of(const std::string& body, Millis usual, Millis most) {
  const Json json = body.empty() ? Json::object() : Json::parse(body, nullptr, false);
  if (!json.is_object()) return invalid("the body must be a JSON object");
  for (const auto& [key, value] : json.items())
    if (key != "ttlSeconds") return invalid("unknown field \"" + key + "\"");
  const auto it = json.find("ttlSeconds");
  if (it == json.end()) return usual;
  const int64_t seconds = it->is_number_integer() ? it->get<int64_t>() : -1;
  if (seconds < core::kTokenLifeMin / 1000 || seconds > most / 1000)
    return invalid("ttlSeconds: must be a whole number, " +
                   std::to_string(core::kTokenLifeMin / 1000) + " to " +
                   std::to_string(most / 1000));
  return seconds * 1000;
}

// Without roles, all callers count as one.
std::string maker(const Exchange& exchange) {
  const std::string& name = exchange.caller.who.name;
  return name.empty() ? "local" : name;
}

OrderedJson headed(const char* kind) {
  return {{"kind", kind}, {"apiVersion", "muster.dev/v1"}};
}

kj::Promise<void> succeeded(Exchange& exchange) {
  return exchange.send(200, dumped(success_json()) + "\n");
}

}  // namespace

OrderedJson token_json(const core::Token& token) {
  OrderedJson json = {{"id", token.id}};
  json[token.kind == core::TokenKind::user ? "user" : "node"] = token.subject;
  json["madeBy"] = token.by;
  json["creationTimestamp"] = time_text(token.made_ms);
  json["expirationTimestamp"] = time_text(token.until_ms);
  if (token.kind == core::TokenKind::node) json["used"] = !token.used_key.empty();
  return json;
}

kj::Promise<void> send_made(Exchange& exchange, const TokenMade& token) {
  OrderedJson json = headed("Token");
  json.update(token_json(token.token));
  json["text"] = token.text;
  return exchange.send(201, dumped(json) + "\n");
}

bool TrustRoutes::serves(const MusterTarget& target) {
  return target.what == "links" || target.what == "tokens" ||
         target.what.find('/') != std::string::npos;
}

kj::Promise<void> TrustRoutes::links(Exchange& exchange) {
  const Links links = backend_.links();
  OrderedJson json = headed("Links");
  json["authority"] = links.authority;
  json["api"] = links.api;
  json["agents"] = links.agents;
  json["http"] = links.http;
  return exchange.send(200, dumped(json) + "\n");
}

kj::Promise<void> TrustRoutes::list(Exchange& exchange) {
  OrderedJson json = headed("TokenList");
  json["items"] = OrderedJson::array();
  const bool all = exchange.caller.role == Role::admin;
  for (const core::Token& token : backend_.tokens())
    if (all || (token.kind == core::TokenKind::user && token.uid == exchange.caller.who.uid))
      json["items"].push_back(token_json(token));
  return exchange.send(200, dumped(json) + "\n");
}

kj::Promise<void> TrustRoutes::make_for_user(Exchange& exchange, const Target& user,
                                             const std::string& body) {
  auto life = life_of(body, core::kUserTokenLife, core::kUserTokenLifeMax);
  if (!life.ok()) return exchange.bad(life.error().message);
  // Otherwise a stolen token could be renewed forever.
  if (exchange.peer.remote)
    return AccessGate::forbid(
        exchange, "a token cannot be used to create tokens; run this on the coordinator's machine");
  TokenWanted wanted{core::TokenKind::user, user.name, 0, maker(exchange), *life};
  return streams_.timer.timeoutAfter(kAccountPatience, directory_.find_name(user.name))
      .then([this, &exchange,
             wanted = std::move(wanted)](Result<uid_t> uid) mutable -> kj::Promise<void> {
        if (!uid.ok() && uid.error().code == Errc::not_found)
          return exchange.send_status(404, "NotFound", uid.error().message);
        if (!uid.ok()) return exchange.send_error(uid.error(), "users", wanted.subject);
        // Users in different databases may have the same name.
        if (exchange.caller.role != Role::admin && *uid != exchange.caller.who.uid)
          return AccessGate::forbid(exchange, "another user has the same name");
        wanted.uid = *uid;
        return directory_.find(*uid).then([this, &exchange, wanted = std::move(wanted)](
                                              const Caller& holder) mutable -> kj::Promise<void> {
          if (holder.role == Role::none)
            return exchange.send_status(
                422, "Invalid",
                "user " + wanted.subject + " has no role here, so a token would be useless");
          return make(exchange, std::move(wanted));
        });
      });
}

kj::Promise<void> TrustRoutes::make_for_node(Exchange& exchange, const Target& node,
                                             const std::string& body) {
  auto life = life_of(body, core::kNodeTokenLife, core::kNodeTokenLifeMax);
  if (!life.ok()) return exchange.bad(life.error().message);
  if (const core::Reasons wrong = core::dns_subdomain_errors(node.name); !wrong.empty())
    return exchange.send_status(422, "Invalid", "the name of a node: " + wrong.front());
  return make(exchange, {core::TokenKind::node, node.name, 0, maker(exchange), *life});
}

kj::Promise<void> TrustRoutes::make(Exchange& exchange, TokenWanted wanted) {
  auto call = new_call<Result<TokenMade>>();
  const std::string subject = wanted.subject;
  backend_.make_token(std::move(wanted), std::move(call.done));
  return call.promise.then([&exchange, subject](Result<TokenMade> token) {
    if (!token.ok()) return exchange.send_error(token.error(), "tokens", subject);
    return send_made(exchange, *token);
  });
}

kj::Promise<void> TrustRoutes::revoke(Exchange& exchange, const Target& token, const std::string&) {
  Call call = new_call();
  backend_.revoke_token(token.name, std::move(call.done));
  return call.promise.then([&exchange, id = token.name](const Status& status) {
    if (!status.ok()) return exchange.send_error(status.error(), "tokens", id);
    return succeeded(exchange);
  });
}

kj::Promise<void> TrustRoutes::revoke_node(Exchange& exchange, const Target& node,
                                           const std::string&) {
  if (const core::Reasons wrong = core::dns_subdomain_errors(node.name); !wrong.empty())
    return exchange.send_status(422, "Invalid", "the name of a node: " + wrong.front());
  Call call = new_call();
  backend_.revoke_node(node.name, std::move(call.done));
  return call.promise.then([&exchange, name = node.name](const Status& status) {
    if (!status.ok()) return exchange.send_error(status.error(), "nodes", name);
    return succeeded(exchange);
  });
}

}  // namespace muster::api
