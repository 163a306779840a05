#include "trust/store/trust_store.hpp"

#include "base/check.hpp"
#include "base/printable.hpp"
#include "base/secret.hpp"
#include "core/job/fold/text.hpp"
#include "core/spec/values/names.hpp"
#include "storage/rows/rows.hpp"
#include "trust/tls/bundle.hpp"

#include <algorithm>
#include <utility>

namespace muster::coordinator {
namespace {

bool over(const core::Token& token, Millis now_ms) {
  return now_ms >= token.until_ms;
}

tls::Identity::Kind identity_of(core::TokenKind kind) {
  using Kind = tls::Identity::Kind;
  return kind == core::TokenKind::node   ? Kind::join
         : kind == core::TokenKind::pool ? Kind::pool
                                         : Kind::coordinator;
}

// What the holder of a token may do, for people.
std::string use_of(const core::Token& token) {
  if (token.kind == core::TokenKind::node) return "lets node " + token.subject + " join, once";
  if (token.kind == core::TokenKind::pool)
    return "lets nodes called " + token.subject + "-... join, " + std::to_string(token.uses_max) +
           " at most";
  return "lets coordinator " + token.subject + " copy the whole journal";
}

}  // namespace

TrustStore::TrustStore(core::Trust trust, tls::Authority authority, Millis certificate_ms,
                       std::function<Millis()> now)
    : authority_(std::move(authority)),
      certificate_ms_(certificate_ms),
      now_(std::move(now)),
      trust_(std::move(trust)) {}

tls::KeyPair server_certificate(const tls::Authority& authority,
                                const std::vector<std::string>& names, Millis now) {
  tls::Issue issue{tls::kServerName, {tls::kServerName}, true, now, kServerCertificateMs};
  issue.names.insert(issue.names.end(), names.begin(), names.end());
  return authority.issue(issue);
}

tls::KeyPair TrustStore::server_certificate(const std::vector<std::string>& names) const {
  return coordinator::server_certificate(authority_, names, now_());
}

void TrustStore::make(NewToken wanted, std::function<void(Result<Made>)> done) {
  const Millis now = now_();
  core::Token token{.id = random_hex(core::kTokenIdDigits / 2),
                    .kind = wanted.kind,
                    .subject = std::move(wanted.subject),
                    .uid = wanted.uid,
                    .hash = "",
                    .by = std::move(wanted.by),
                    .made_ms = now,
                    .until_ms = now + wanted.life_ms,
                    .used_keys = {},
                    .uses_max = wanted.uses_max,
                    .claims = std::move(wanted.claims)};
  if (token.kind == core::TokenKind::pool) token.claims.pool = token.subject;
  Made made;
  if (token.kind == core::TokenKind::user) {
    const std::string secret = random_hex(core::kTokenSecretDigits / 2);
    token.hash = tls::sha256_hex(secret);
    made.text = token.id + "." + secret + "\n" + authority();
  } else {
    const bool joins = token.kind != core::TokenKind::coordinator;
    const tls::Identity who{identity_of(token.kind), joins ? token.subject : "", token.id, 0};
    const tls::KeyPair pair = authority_.issue({who.common_name(), {}, false, now, wanted.life_ms});
    made.text = tls::bundle_text({pair, authority()},
                                 use_of(token) + ", until " + core::instant_text(token.until_ms));
  }
  made.token = token;
  std::unique_lock lock(mutex_);
  std::vector<storage::Row> rows{storage::token_row(token)};
  for (const auto& [id, old] : trust_.tokens)
    if (over(old, now)) rows.push_back(storage::forget_token_row(id));
  const size_t living = trust_.tokens.size() + 1 - rows.size();
  std::string full;
  std::string refused;
  if (token.kind == core::TokenKind::pool)
    for (const auto& [id, other] : trust_.tokens)
      if (!over(other, now) && other.kind == core::TokenKind::pool &&
          (tls::is_in_pool(other.subject, token.subject) ||
           tls::is_in_pool(token.subject, other.subject)))
        refused = "nodes of pool " + token.subject + " could take names of pool " + other.subject +
                  ", or the reverse: choose a name that does not begin with the other's";
  if (!refused.empty()) {
    lock.unlock();
    return done(Error{Errc::conflict, refused, {}});
  }
  if (living >= core::kTokensMax)
    full = "there are already " + std::to_string(living) + " tokens, the maximum; revoke some";
  else if (token.kind == core::TokenKind::user &&
           trust_.living(token.uid, now) >= core::kTokensOfOneMax)
    full = token.subject + " has " + std::to_string(core::kTokensOfOneMax) +
           " tokens, the maximum per user; revoke some";
  if (!full.empty()) {
    lock.unlock();
    return done(Error{Errc::overloaded, full, {}});
  }
  std::erase_if(trust_.tokens, [now](const auto& one) { return over(one.second, now); });
  append_(std::move(rows), [this, made = std::move(made), done = std::move(done)]() mutable {
    {
      const std::lock_guard lock(mutex_);
      trust_.tokens[made.token.id] = made.token;
    }
    done(std::move(made));
  });
}

std::vector<core::Token> TrustStore::list() const {
  const Millis now = now_();
  const std::lock_guard lock(mutex_);
  std::vector<core::Token> tokens;
  for (const auto& [id, token] : trust_.tokens)
    if (!over(token, now)) tokens.push_back(token);
  return tokens;
}

std::optional<core::Token> TrustStore::find(const std::string& id) const {
  const Millis now = now_();
  const std::lock_guard lock(mutex_);
  const auto it = trust_.tokens.find(id);
  if (it == trust_.tokens.end() || over(it->second, now)) return std::nullopt;
  return it->second;
}

void TrustStore::revoke(const std::string& id, std::function<void(Status)> done) {
  const std::lock_guard lock(mutex_);
  if (trust_.tokens.erase(id) == 0)  // its removal may not be on disk yet
    return append_({}, [done = std::move(done)] { done(Error{Errc::not_found, "", {}}); });
  append_({storage::forget_token_row(id)}, [done = std::move(done)] { done(Nothing{}); });
}

void TrustStore::revoke_node(const std::string& node, std::function<void(Status)> done) {
  {
    const std::lock_guard lock(mutex_);
    // Not a plain counter: a restored backup must not readmit what was revoked after it was made.
    const uint64_t generation =
        std::max(trust_.generation(node) + 1, static_cast<uint64_t>(now_() / 1000));
    trust_.generations[node] = generation;
    std::vector<storage::Row> rows{storage::revoked_row(node, generation)};
    std::erase_if(trust_.tokens, [&](const auto& one) {
      const bool of_node = one.second.kind == core::TokenKind::node && one.second.subject == node;
      if (of_node) rows.push_back(storage::forget_token_row(one.first));
      return of_node;
    });
    append_(std::move(rows), [done = std::move(done)] { done(Nothing{}); });
  }
  if (drop_) drop_(node);
}

void TrustStore::know_node(const std::string& node) {
  const std::lock_guard lock(mutex_);
  nodes_.insert(node);
}

std::optional<core::NodeClaims> TrustStore::claims_of(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const auto it = trust_.claims.find(node);
  return it == trust_.claims.end() ? std::nullopt : std::optional(it->second);
}

void TrustStore::allow(const std::string& node, core::NodeClaims claims,
                       std::function<void(Status)> done) {
  const std::lock_guard lock(mutex_);
  if (const auto before = trust_.claims.find(node); before != trust_.claims.end())
    claims.pool = before->second.pool;
  std::vector<storage::Row> rows{storage::claims_row(node, claims)};
  append_(std::move(rows),
          [this, node, claims = std::move(claims), done = std::move(done)]() mutable {
            {
              const std::lock_guard durable(mutex_);
              trust_.claims[node] = std::move(claims);
            }
            if (drop_) drop_(node);
            done(Nothing{});
          });
}

std::optional<core::Token> TrustStore::token_of(std::string_view text) const {
  const core::Bearer bearer = core::Bearer::parse(text);
  if (bearer.id.empty()) return std::nullopt;
  const std::string hash = tls::sha256_hex(bearer.secret);
  const Millis now = now_();
  const std::lock_guard lock(mutex_);
  const auto it = trust_.tokens.find(bearer.id);
  if (it == trust_.tokens.end() || it->second.kind != core::TokenKind::user ||
      over(it->second, now) || !same_secret(it->second.hash, hash))
    return std::nullopt;
  return it->second;
}

std::optional<std::string> TrustStore::refuses(const tls::Identity& who) const {
  const std::lock_guard lock(mutex_);
  return refuses_locked(who);
}

std::optional<std::string> TrustStore::refuses_locked(const tls::Identity& who) const {
  if (who.kind == tls::Identity::Kind::node) {
    if (who.generation == trust_.generation(who.node)) return std::nullopt;
    return "its certificate has been revoked; to let it rejoin, run `muster token create --node " +
           who.node + "`";
  }
  const bool joins = who.kind != tls::Identity::Kind::coordinator;
  if (!joins && who.token.empty()) return std::nullopt;  // it has the authority's key
  const auto it = trust_.tokens.find(who.token);
  if (it == trust_.tokens.end() || it->second.kind == core::TokenKind::user ||
      identity_of(it->second.kind) != who.kind || (joins && it->second.subject != who.node))
    return "its join token is unknown, or was revoked";
  if (over(it->second, now_())) return "its join token has expired";
  return std::nullopt;
}

Result<std::string> TrustStore::sign(const std::string& node, uint64_t generation,
                                     const std::string& request) const {
  const tls::Identity who{tls::Identity::Kind::node, node, "", generation};
  return authority_.sign(request, {who.common_name(), {}, false, now_(), certificate_ms_});
}

std::string TrustStore::refuses_locked(const core::Token& token, const std::string& node,
                                       const std::string& use) const {
  if (token.kind == core::TokenKind::pool) {
    if (!tls::is_in_pool(node, token.subject) || !core::dns_subdomain_errors(node).empty())
      return "its join token is for nodes called " + token.subject + "-..., not for " +
             on_one_line(node);
    // Otherwise the pool could take over a node whose name happens to look like that.
    const auto known = trust_.claims.find(node);
    const bool of_pool = known != trust_.claims.end() && known->second.pool == token.subject;
    if (!of_pool && (known != trust_.claims.end() || nodes_.contains(node)))
      return "there is a node called " + node + " that has not joined with a token of this pool";
    if (static_cast<Millis>(trust_.generation(node)) * 1000 > token.made_ms)
      return "node " + node + " has been revoked since its join token was made";
  }
  if (token.has_certified(use) || token.used_keys.size() < token.uses_max) return "";
  return token.kind == core::TokenKind::node
             ? "its join token has been used"
             : "its join token has already been used by " + std::to_string(token.uses_max) +
                   " nodes, its limit";
}

void TrustStore::certify(const tls::Identity& who, const std::string& node,
                         const std::string& request,
                         std::function<void(Result<std::string>)> done) {
  const bool renews = who.kind == tls::Identity::Kind::node;
  const std::string& name = who.kind == tls::Identity::Kind::pool ? node : who.node;
  auto key = tls::request_key_hash(request);
  if (!key.ok()) return done(key.error());
  // A key is one use for each node of a pool.
  if (who.kind == tls::Identity::Kind::pool) *key = tls::sha256_hex(name + "\n" + *key);
  const auto refuses_now = [&]() -> std::string {
    if (who.kind == tls::Identity::Kind::coordinator) return "it is not a node";
    // Check again: it may have been revoked since the connection was made.
    const auto refused = refuses_locked(who);
    if (refused || renews) return refused.value_or("");
    return refuses_locked(trust_.tokens.find(who.token)->second, name, *key);
  };
  uint64_t generation = 0;
  std::string refused;
  {
    const std::lock_guard lock(mutex_);
    refused = refuses_now();
    generation = trust_.generation(name);
  }
  if (!refused.empty()) return done(invalid(refused));
  auto certificate = sign(name, generation, request);
  if (!certificate.ok() || renews) return done(certificate);
  {
    const std::lock_guard lock(mutex_);
    refused = refuses_now();
    if (refused.empty()) {
      core::Token& token = trust_.tokens.find(who.token)->second;
      std::vector<storage::Row> rows;
      if (!token.has_certified(*key)) {  // once, so that it undoes no later change
        token.used_keys.push_back(*key);
        trust_.claims[name] = token.claims;
        rows.push_back(storage::claims_row(name, token.claims));
      }
      rows.push_back(storage::token_row(token));
      return append_(std::move(rows), [certificate = std::move(certificate),
                                       done = std::move(done)] { done(certificate); });
    }
  }
  done(invalid(refused));
}

}  // namespace muster::coordinator
