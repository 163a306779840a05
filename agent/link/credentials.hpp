// Credentials: how an agent proves to the coordinator which node it is, over TLS.
//
// A join token (a file) is good for one certificate of one node, a pool's for those of several
// nodes. With it, the agent gets a certificate for its own key, which it keeps in the work-dir
// (credentials.pem) and renews after two thirds of its life. An agent that has either always uses
// TLS.
#pragma once

#include "agent/files/work_dir.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "trust/tls/bundle.hpp"

#include <kj/compat/tls.h>

#include <optional>
#include <string>

namespace muster::agent {

// The pool whose token this file is; empty: it is not one, or cannot be read.
std::string pool_of(const std::string& token_file);

class Credentials {
 public:
  // `token_file` empty: none. `invalid`: it cannot be read, or is another node's.
  static Result<Credentials> load(WorkDir& work_dir, const std::string& token_file);

  bool encrypted() const { return own_ || token_; }
  // The agent must get a certificate before it can register.
  bool must_join() const { return token_ && !own_; }
  Millis renew_ms() const { return renew_ms_; }  // wall clock: when to renew the certificate
  Millis renew_again_ms() const { return renew_again_ms_; }  // pause between two renewals
  bool expired(Millis now_ms) const { return own_ && now_ms >= until_ms_; }

  // When its certificate expires, wall clock; nullopt: it has none.
  std::optional<Millis> until_ms() const { return own_ ? std::optional(until_ms_) : std::nullopt; }

  // For the next connection; valid until the next call.
  kj::TlsContext& context();
  // A signing request (PKCS #10, DER) for a new key. An agent that joins stores the key first: if
  // it does not get the answer, its token is good for this key only.
  Result<std::string> request();
  // Stores the answer durably. `invalid`: it is not a certificate for that key.
  Status accept(const std::string& certificate);

 private:
  explicit Credentials(WorkDir& work_dir) : work_dir_(&work_dir) {}
  Status load_token(const std::string& file);
  void learn(const tls::Facts& facts);

  WorkDir* work_dir_;
  std::optional<tls::Bundle> own_, token_;
  std::string token_id_, used_token_;
  Millis renew_ms_ = 0, renew_again_ms_ = 0, until_ms_ = 0;  // wall clock
  std::string key_;
  kj::Own<kj::TlsContext> context_;
};

}  // namespace muster::agent
