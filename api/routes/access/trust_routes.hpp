// The part of the group muster.dev/v1 about links to other machines: tokens, revocations, and the
// authority, which is public.
#pragma once

#include "api/request/route_base.hpp"

#include <string>

namespace muster::api {

// A token without its secret.
OrderedJson token_json(const core::Token& token);
// Responds to a request that made a token. Only this response contains its secret.
kj::Promise<void> send_made(Exchange& exchange, const TokenMade& token);

// What a token says about who made it, if it was made for the web page by a link that the token of
// this id has asked for (empty: no token has).
inline std::string web_token_maker(const std::string& parent) {
  return "muster web" + (parent.empty() ? "" : " of " + parent);
}

class TrustRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit TrustRoutes(const RouteContext& context) : RouteBase(context) {}

  static bool serves(const MusterTarget& target);
  Promise links(Exchange& exchange);
  Promise list(Exchange& exchange);  // the caller's tokens; for an admin, all
  Promise make_for_user(Exchange& exchange, const Target& user, const std::string& body);
  Promise make_for_node(Exchange& exchange, const Target& node, const std::string& body);
  Promise make_for_pool(Exchange& exchange, const Target& pool, const std::string& body);
  Promise make_for_coordinator(Exchange& exchange, const Target& coordinator,
                               const std::string& body);
  Promise claims(Exchange& exchange, const Target& node);
  Promise allow(Exchange& exchange, const Target& node, const std::string& body);
  Promise revoke(Exchange& exchange, const Target& token, const std::string& body);
  Promise revoke_node(Exchange& exchange, const Target& node, const std::string& body);

 private:
  Promise make(Exchange& exchange, TokenWanted wanted);
  Promise make_login(Exchange& exchange, const TokenWanted& wanted);
};

}  // namespace muster::api
