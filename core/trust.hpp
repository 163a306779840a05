// Trust: the issued tokens, and the nodes whose certificates were revoked. Pure.
//
// A token is shown once, when it is created; the stored form is not enough to use it. A node's
// token lets its agent fetch a certificate, once, and says what the node may claim; a pool's token
// does so for a number of nodes whose names begin with the pool's. A user's token authenticates the
// user until it expires or is revoked. A coordinator's token lets a follower copy the journal, with
// all that it keeps secret, until it expires or is revoked.
//
// A node's certificates belong to a generation: the time of the last revocation, in seconds since
// 1970, or 0. Only certificates of the current generation are accepted.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

enum class TokenKind : uint8_t { node = 0, user = 1, coordinator = 2, pool = 3 };

constexpr std::string_view kind_name(TokenKind kind) {
  switch (kind) {
    case TokenKind::node:
      return "node";
    case TokenKind::user:
      return "user";
    case TokenKind::coordinator:
      return "coordinator";
    case TokenKind::pool:
      return "pool";
  }
  return "";
}

// Minimum, maximum and default lifetimes of tokens.
constexpr Millis kTokenLifeMin = 60'000;
constexpr Millis kNodeTokenLifeMax = Millis{7} * 86'400'000, kNodeTokenLife = 3'600'000;
constexpr Millis kUserTokenLifeMax = Millis{30} * 86'400'000,
                 kUserTokenLife = Millis{12} * 3'600'000;
// For the token that a munge credential is exchanged for; users can get a new one at no cost.
constexpr Millis kMungeTokenLifeMax = Millis{12} * 3'600'000, kMungeTokenLife = 3'600'000;

constexpr size_t kTokensMax = 10'000;     // stored at a time
constexpr size_t kTokensOfOneMax = 100;   // unexpired tokens of one user
constexpr uint32_t kPoolUsesMax = 1'000;  // nodes that join with one token
constexpr size_t kPoolNameMax = 63;       // as of a label's value
constexpr size_t kTokenIdDigits = 16, kTokenSecretDigits = 64;

// What the agent of a node on another machine may claim (core/cluster/nodes/claims.hpp).
struct NodeClaims {
  static constexpr uint32_t kSlots = 1024;  // unless an operator says otherwise

  // "KEY=VALUE", or "KEY" for any value; in both, * stands for any number of characters.
  std::vector<std::string> labels;
  uint32_t slots_max = kSlots;
  std::map<std::string, int64_t> resources_max;  // named resources; none of the others
  std::string pool{};  // of the token with which the node joined; empty: it was its own

  bool operator==(const NodeClaims&) const = default;
};

struct Token {
  std::string id;  // hexadecimal
  TokenKind kind = TokenKind::node;
  std::string subject;               // the name of the node, user, coordinator or pool
  uint32_t uid = 0;                  // of the user
  std::string hash;                  // of a user's secret: SHA-256, in hexadecimal
  std::string by;                    // the name of the user who created it
  Millis made_ms = 0, until_ms = 0;  // wall clock
  // Node: SHA-256 of the public key that was certified. Pool: of each node's name with its key. And
  // how many there may be.
  std::vector<std::string> used_keys{};
  uint32_t uses_max = 1;
  NodeClaims claims{};  // node and pool

  // An agent that did not get its certificate asks again, with the same key.
  bool has_certified(const std::string& key) const {
    return std::find(used_keys.begin(), used_keys.end(), key) != used_keys.end();
  }
  bool operator==(const Token&) const = default;
};

struct Trust {
  std::map<std::string, Token, std::less<>> tokens;          // by id
  std::map<std::string, uint64_t, std::less<>> generations;  // by node; only those above 0
  // By node. One without an entry joined when tokens did not say it: it may claim what it had at
  // its last registration.
  std::map<std::string, NodeClaims, std::less<>> claims;

  uint64_t generation(std::string_view node) const {
    const auto it = generations.find(node);
    return it == generations.end() ? 0 : it->second;
  }
  // How many tokens of this user have not expired.
  size_t living(uint32_t uid, Millis now_ms) const {
    size_t count = 0;
    for (const auto& [id, token] : tokens)
      if (token.kind == TokenKind::user && token.uid == uid && now_ms < token.until_ms) ++count;
    return count;
  }
};

// The two parts of a user's token, "ID.SECRET"; both empty if the text is not one.
struct Bearer {
  std::string_view id, secret;

  static Bearer parse(std::string_view text) {
    const size_t dot = text.find('.');
    const bool hex = text.find_first_not_of("0123456789abcdef.") == text.npos;
    if (!hex || dot != kTokenIdDigits || text.size() != kTokenIdDigits + 1 + kTokenSecretDigits)
      return {};
    return {text.substr(0, dot), text.substr(dot + 1)};
  }
};

}  // namespace muster::core
