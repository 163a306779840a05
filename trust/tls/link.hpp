// Link: TLS 1.3 over KJ's streams.
//
// A member trusts the cluster's authority and nothing else. It expects the coordinator's
// certificate to have the name kServerName, at whichever address it connects to.
#pragma once

#include "base/clock.hpp"
#include "trust/tls/certificates.hpp"
#include "trust/tls/identity.hpp"

#include <kj/async-io.h>
#include <kj/compat/tls.h>

#include <optional>
#include <string>

namespace muster::tls {

// `clients`: require a certificate from the authority. Throws a kj::Exception if a PEM text is
// invalid.
kj::Own<kj::TlsContext> server_context(const KeyPair& own, const std::string& authority,
                                       bool clients);
// `own` may be absent.
kj::Own<kj::TlsContext> client_context(const std::optional<KeyPair>& own,
                                       const std::string& authority);

// An address whose connections are encrypted.
kj::Own<kj::NetworkAddress> encrypted(kj::Own<kj::NetworkAddress> address, kj::TlsContext& context);

// When the peer's certificate expires (wall clock). The peer must have one.
Millis valid_until_ms(kj::TlsPeerIdentity& peer);

// A readable explanation; nullopt if it is not a known TLS failure.
std::optional<std::string> explained(const kj::Exception& exception);

}  // namespace muster::tls
