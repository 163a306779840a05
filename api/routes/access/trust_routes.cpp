#include "api/routes/access/trust_routes.hpp"

#include "api/request/body.hpp"
#include "api/request/writes.hpp"
#include "api/routes/access/authentication.hpp"
#include "base/text/time_text.hpp"
#include "core/cluster/nodes/claims.hpp"
#include "core/spec/values/names.hpp"
#include "core/trust.hpp"

#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace muster::api {
namespace {

// The lifetime that {"ttlSeconds": N} asks for.
Result<Millis> life_of(const Json& json, Millis usual, Millis most) {
  const auto it = json.find("ttlSeconds");
  if (it == json.end()) return usual;
  const int64_t seconds = it->is_number_integer() ? it->get<int64_t>() : -1;
  if (seconds < core::kTokenLifeMin / 1000 || seconds > most / 1000)
    return invalid("ttlSeconds: must be a whole number, " +
                   std::to_string(core::kTokenLifeMin / 1000) + " to " +
                   std::to_string(most / 1000));
  return seconds * 1000;
}

constexpr std::string_view kLabels = "labels", kSlotsMax = "slotsMax", kResources = "resources";

// The claims that {"labels": […], "slotsMax": N, "resources": {…}} allows.
Result<core::NodeClaims> claims_in(const Json& json) {
  core::NodeClaims claims;
  const Json labels = json.value(kLabels, Json::array());
  if (!labels.is_array()) return invalid("labels: must be a list of patterns");
  for (const Json& pattern : labels) {
    if (!pattern.is_string()) return invalid("labels: must be a list of patterns");
    claims.labels.push_back(pattern.get<std::string>());
  }
  if (const auto it = json.find(kSlotsMax); it != json.end()) {
    const int64_t most = it->is_number_integer() ? it->get<int64_t>() : 0;
    claims.slots_max = static_cast<uint32_t>(std::clamp<int64_t>(most, 0, UINT32_MAX));
  }
  const Json resources = json.value(kResources, Json::object());
  if (!resources.is_object()) return invalid("resources: must be an object of names and counts");
  for (const auto& [name, count] : resources.items())
    claims.resources_max[name] = count.is_number_integer() ? count.get<int64_t>() : -1;
  if (std::string wrong = core::claims_error(claims); !wrong.empty()) return invalid(wrong);
  return claims;
}

OrderedJson claims_json(const std::string& node, const std::optional<core::NodeClaims>& claims) {
  OrderedJson json = {{"kind", "NodeClaims"}, {"apiVersion", "muster.dev/v1"}, {"node", node}};
  json["asRegistered"] = !claims;
  if (!claims) return json;
  json[std::string(kLabels)] = claims->labels;
  json[std::string(kSlotsMax)] = claims->slots_max;
  json[std::string(kResources)] = claims->resources_max;
  if (!claims->pool.empty()) json["pool"] = claims->pool;
  return json;
}

OrderedJson headed(const char* kind) {
  return {{"kind", kind}, {"apiVersion", "muster.dev/v1"}};
}

bool is_coordinator_name(const std::string& name) {
  constexpr size_t kMost = 260;  // a host name, a colon and a port
  return !name.empty() && name.size() <= kMost &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) ||
                  std::string_view("-._:[]").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

kj::Promise<void> succeeded(Exchange& exchange) {
  return exchange.send(200, dumped(success_json()) + "\n");
}

}  // namespace

OrderedJson token_json(const core::Token& token) {
  OrderedJson json = {{"id", token.id}};
  json[std::string(core::kind_name(token.kind))] = token.subject;
  json["madeBy"] = token.by;
  json["creationTimestamp"] = time_text(token.made_ms);
  json["expirationTimestamp"] = time_text(token.until_ms);
  if (token.kind == core::TokenKind::node) json["used"] = !token.used_keys.empty();
  if (token.kind == core::TokenKind::pool) {
    json["uses"] = token.used_keys.size();
    json["usesMax"] = token.uses_max;
  }
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
  auto json = own_fields(body, {"ttlSeconds", "login"});
  if (!json.ok()) return exchange.bad(json.error().message);
  const bool login = json->value("login", Json(false)) == Json(true);
  auto life =
      life_of(*json, core::kUserTokenLife, login ? core::kUserTokenLife : core::kUserTokenLifeMax);
  if (!life.ok()) return exchange.bad(life.error().message);
  // Otherwise a stolen token could be renewed forever.
  if (exchange.peer.remote && !login)
    return AccessGate::forbid(
        exchange, "a token cannot be used to create tokens; run this on the coordinator's machine");
  TokenWanted wanted{core::TokenKind::user, user.name, 0, exchange.caller.called(), *life, {}};
  return streams_.timer.timeoutAfter(kAccountPatience, directory_.find_name(user.name))
      .then([this, &exchange, wanted = std::move(wanted),
             login](Result<uid_t> uid) mutable -> kj::Promise<void> {
        if (!uid.ok() && uid.error().code == Errc::not_found)
          return exchange.send_status(404, "NotFound", uid.error().message);
        if (!uid.ok()) return exchange.send_error(uid.error(), "users", wanted.subject);
        // Users in different databases may have the same name.
        if (exchange.caller.role != Role::admin && *uid != exchange.caller.who.uid)
          return AccessGate::forbid(exchange, "another user has the same name");
        if (exchange.peer.remote && *uid != exchange.caller.who.uid)
          return AccessGate::forbid(exchange, "a token makes links for its own user only");
        wanted.uid = *uid;
        return directory_.find(*uid).then([this, &exchange, wanted = std::move(wanted), login](
                                              const Caller& holder) mutable -> kj::Promise<void> {
          if (holder.role == Role::none)
            return exchange.send_status(
                422, "Invalid",
                "user " + wanted.subject + " has no role here, so a token would be useless");
          return login ? make_login(exchange, wanted) : make(exchange, std::move(wanted));
        });
      });
}

// A code by which the web page logs in. Of a caller with a token, the page's token expires no later
// than that.
kj::Promise<void> TrustRoutes::make_login(Exchange& exchange, const TokenWanted& wanted) {
  const Millis now = options_.now();
  if (backend_.links().api.empty())
    return exchange.send_error(
        invalid("the page is served here without a log-in: the coordinator runs without --api-tls"),
        "users", wanted.subject);
  Millis until = now + wanted.life_ms;
  std::string parent;
  if (const auto own = Authentication::token_of(exchange, backend_)) {
    until = std::min(until, own->until_ms);
    parent = own->id;
  }
  std::string code;
  for (int words = 0; words < 4; ++words) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016" PRIx64, options_.random());
    code += digits;
  }
  const Millis expires = now + Logins::kLifeMs;
  if (!logins_.add(code, {wanted.uid, wanted.subject, expires, until, std::move(parent)}, now))
    return exchange.send_status(429, "TooManyRequests",
                                "too many links that nobody has used; they expire in 5 minutes",
                                OrderedJson{{"retryAfterSeconds", 60}});
  OrderedJson json = headed("Login");
  json["user"] = wanted.subject;
  json["code"] = code;
  json["expirationTimestamp"] = time_text(expires);
  return exchange.send(201, dumped(json) + "\n");
}

kj::Promise<void> TrustRoutes::make_for_node(Exchange& exchange, const Target& node,
                                             const std::string& body) {
  auto json = own_fields(body, {"ttlSeconds", kLabels, kSlotsMax, kResources});
  if (!json.ok()) return exchange.bad(json.error().message);
  auto life = life_of(*json, core::kNodeTokenLife, core::kNodeTokenLifeMax);
  if (!life.ok()) return exchange.bad(life.error().message);
  auto claims = claims_in(*json);
  if (!claims.ok()) return exchange.bad(claims.error().message);
  if (const core::Reasons wrong = core::dns_subdomain_errors(node.name); !wrong.empty())
    return exchange.send_status(422, "Invalid", "the name of a node: " + wrong.front());
  return make(exchange, {core::TokenKind::node, node.name, 0, exchange.caller.called(), *life,
                         std::move(*claims)});
}

kj::Promise<void> TrustRoutes::make_for_pool(Exchange& exchange, const Target& pool,
                                             const std::string& body) {
  auto json = own_fields(body, {"ttlSeconds", "uses", kLabels, kSlotsMax, kResources});
  if (!json.ok()) return exchange.bad(json.error().message);
  auto life = life_of(*json, core::kNodeTokenLife, core::kNodeTokenLifeMax);
  if (!life.ok()) return exchange.bad(life.error().message);
  const Json uses = json->value("uses", Json());
  const int64_t most = uses.is_number_integer() ? uses.get<int64_t>() : 0;
  if (most < 1 || most > core::kPoolUsesMax)
    return exchange.bad("uses: must say how many nodes may join, 1 to " +
                        std::to_string(core::kPoolUsesMax));
  auto claims = claims_in(*json);
  if (!claims.ok()) return exchange.bad(claims.error().message);
  core::Reasons wrong = core::dns_subdomain_errors(pool.name);
  if (pool.name.size() > core::kPoolNameMax)
    wrong.push_back("must have at most " + std::to_string(core::kPoolNameMax) + " characters");
  if (!wrong.empty())
    return exchange.send_status(422, "Invalid", "the name of a pool: " + wrong.front());
  return make(exchange, {core::TokenKind::pool, pool.name, 0, exchange.caller.called(), *life,
                         std::move(*claims), static_cast<uint32_t>(most)});
}

// Its name is for display: the token lets its holder follow under any name.
kj::Promise<void> TrustRoutes::make_for_coordinator(Exchange& exchange, const Target& coordinator,
                                                    const std::string& body) {
  auto json = own_fields(body, {"ttlSeconds"});
  if (!json.ok()) return exchange.bad(json.error().message);
  auto life = life_of(*json, core::kNodeTokenLife, core::kNodeTokenLifeMax);
  if (!life.ok()) return exchange.bad(life.error().message);
  if (!is_coordinator_name(coordinator.name))
    return exchange.send_status(422, "Invalid",
                                "the name of a coordinator: must be HOST or HOST:PORT");
  // Otherwise a stolen token of an admin would lead to the key of the authority.
  if (exchange.peer.remote)
    return AccessGate::forbid(exchange,
                              "a token cannot be used to create one that copies the journal; run "
                              "this on a coordinator's machine");
  return make(
      exchange,
      {core::TokenKind::coordinator, coordinator.name, 0, exchange.caller.called(), *life, {}});
}

kj::Promise<void> TrustRoutes::claims(Exchange& exchange, const Target& node) {
  if (!view_.node(node.name))
    return exchange.send_error({Errc::not_found, "", {}}, "nodes", node.name);
  return exchange.send(200, dumped(claims_json(node.name, backend_.claims_of(node.name))) + "\n");
}

kj::Promise<void> TrustRoutes::allow(Exchange& exchange, const Target& node,
                                     const std::string& body) {
  const auto shown = view_.node(node.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "nodes", node.name);
  auto json = own_fields(body, {"freeze", kLabels, kSlotsMax, kResources});
  if (!json.ok()) return exchange.bad(json.error().message);
  const bool freezes = json->value("freeze", Json(false)) == Json(true);
  if (freezes && json->size() > 1)
    return exchange.bad("freeze: allows what the node has now, and so nothing else");
  auto claims = freezes ? Result<core::NodeClaims>(core::claims_of(core::Offer{
                              shown->node->slots, shown->node->resources, shown->node->labels}))
                        : claims_in(*json);
  if (!claims.ok()) return exchange.bad(claims.error().message);
  Call call = new_call();
  backend_.allow_claims(node.name, *claims, std::move(call.done));
  return call.promise.then([&exchange, name = node.name, claims = *claims](const Status& status) {
    if (!status.ok()) return exchange.send_error(status.error(), "nodes", name);
    return exchange.send(200, dumped(claims_json(name, claims)) + "\n");
  });
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
  return call.promise.then([this, &exchange, id = token.name](const Status& status) {
    if (!status.ok()) return exchange.send_error(status.error(), "tokens", id);
    // And those of the pages that it has logged in.
    for (const core::Token& other : backend_.tokens())
      if (other.by == web_token_maker(id)) backend_.revoke_token(other.id, [](const Status&) {});
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
