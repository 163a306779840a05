// Checked address: an address whose connections are used only if a trusted user serves them.
//
// For connections without TLS, in which the server has nothing else to identify itself with.
#pragma once

#include "base/peer/trusted_servers.hpp"

#include <kj/async-io.h>

#include <string>

namespace muster::tls {

// connect() throws, before anything is sent, if `trusted` rejects the server. `trusted` outlives
// the address. `name`: the address as configured, for messages.
kj::Own<kj::NetworkAddress> checked(kj::Own<kj::NetworkAddress> address, TrustedServers& trusted,
                                    std::string name);

}  // namespace muster::tls
