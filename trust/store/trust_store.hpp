// TrustStore: the cluster's authority, its tokens and its revocations (core/trust.hpp).
//
// The API makes, lists and revokes tokens; the agents' port asks who may connect and has
// certificates signed. Any thread may call it. Invariants: a change of a token or a revocation is
// durable before `done` is called and before it takes effect for others, except that a revocation
// takes effect at once; rows are handed over in the order of the changes.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/trust.hpp"
#include "storage/journal/journal.hpp"
#include "trust/tls/certificates.hpp"
#include "trust/tls/identity.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::coordinator {

inline constexpr Millis kDayMs = 86'400'000;
// The life of the coordinator's own certificates, which are made at each start.
inline constexpr Millis kServerCertificateMs = 10 * 365 * kDayMs;

// The certificate of a coordinator under these names, besides kServerName.
tls::KeyPair server_certificate(const tls::Authority& authority,
                                const std::vector<std::string>& names, Millis now);

struct NewToken {
  core::TokenKind kind = core::TokenKind::node;
  std::string subject;
  uint32_t uid = 0;  // of a user
  std::string by;    // who asks
  Millis life_ms = 0;
  core::NodeClaims claims{};  // of a node or a pool's nodes
  uint32_t uses_max = 1;      // of a pool
};

class TrustStore {
 public:
  // Called with the store locked, so it must not call `durable` before it returns.
  using Append = std::function<void(std::vector<storage::Row> rows, std::function<void()> durable)>;

  // `certificate_ms`: the life of a node's certificate, which agents renew at two thirds of it.
  TrustStore(core::Trust trust, tls::Authority authority, Millis certificate_ms,
             std::function<Millis()> now);
  // Call this before any change.
  void write_with(Append append) { append_ = std::move(append); }
  // Called with the name of each node that is revoked, or whose claims have changed.
  void on_revoked(std::function<void(const std::string& node)> drop) { drop_ = std::move(drop); }

  const std::string& authority() const { return authority_.pems().certificate; }  // PEM
  tls::KeyPair server_certificate(const std::vector<std::string>& names) const;

  struct Made {
    core::Token token;
    std::string text;  // the holder's token file; not stored here
  };
  // overloaded: the maximum number exists. conflict: two pools could take each other's names.
  void make(NewToken wanted, std::function<void(Result<Made>)> done);
  std::vector<core::Token> list() const;  // by id
  std::optional<core::Token> find(const std::string& id) const;
  void revoke(const std::string& id, std::function<void(Status)> done);  // not_found
  // Refuses all certificates of this node, and tokens for it alone, that were issued so far.
  void revoke_node(const std::string& node, std::function<void(Status)> done);

  // A node of this name exists, or did, however it joined.
  void know_node(const std::string& node);

  // What this node's agent may claim; nothing: what it had at its last registration.
  std::optional<core::NodeClaims> claims_of(const std::string& node) const;
  // Changes it, and closes the node's connections, so that its agent registers again.
  void allow(const std::string& node, core::NodeClaims claims, std::function<void(Status)> done);

  // The valid user token with this text; nothing: there is none.
  std::optional<core::Token> token_of(std::string_view bearer) const;

  // Why the holder of a certificate may not connect; nothing if it may.
  std::optional<std::string> refuses(const tls::Identity& who) const;
  // Signs the request (PKCS #10, DER) of a holder that may connect; the answer is a certificate in
  // PEM. `node`: for which the holder of a pool's token asks; not one that exists and joined
  // otherwise, nor one that has been revoked since the token was made.
  void certify(const tls::Identity& who, const std::string& node, const std::string& request,
               std::function<void(Result<std::string>)> done);

 private:
  std::optional<std::string> refuses_locked(const tls::Identity& who) const;
  // Why this token is not good for a certificate of the node by this use (Token::used_keys); empty:
  // it is.
  std::string refuses_locked(const core::Token& token, const std::string& node,
                             const std::string& use) const;
  Result<std::string> sign(const std::string& node, uint64_t generation,
                           const std::string& request) const;

  const tls::Authority authority_;
  const Millis certificate_ms_;
  const std::function<Millis()> now_;
  Append append_;
  std::function<void(const std::string&)> drop_;
  mutable std::mutex mutex_;  // guards what follows
  core::Trust trust_;
  std::set<std::string, std::less<>> nodes_;
};

}  // namespace muster::coordinator
