// PeerCredentials: how the coordinators of a cluster prove to each other that they are that.
//
// A coordinator with the cluster's journal has the key of the authority and issues certificates to
// itself. One whose data-dir is empty joins with a token (`muster token create --coordinator`).
#pragma once

#include "base/result.hpp"
#include "trust/tls/bundle.hpp"
#include "trust/tls/identity.hpp"

#include <kj/async-io.h>
#include <kj/compat/tls.h>

#include <optional>
#include <string>

namespace muster::standby {

class PeerCredentials {
 public:
  // None: no connection can be made or accepted yet.
  PeerCredentials() = default;
  // With the token in this file. `invalid`: it is not one.
  static Result<PeerCredentials> of_token(const std::string& file);
  static PeerCredentials of_authority(const tls::Authority& authority);

  bool any() const { return !authority_.empty(); }
  bool serves() const { return server_.has_value(); }
  // Both are made anew; the context must outlive what is wrapped with it.
  kj::Own<kj::TlsContext> client() const;
  kj::Own<kj::TlsContext> server() const;  // requires serves()

 private:
  std::string authority_;  // PEM
  std::optional<tls::KeyPair> client_, server_;
};

// Who is at the other end; nullopt: not a coordinator of this cluster.
std::optional<tls::Identity> peer_identity(kj::AuthenticatedStream& stream);

}  // namespace muster::standby
