// Proof: that a coordinator has the key of its cluster.
//
// Where there is no TLS, an agent asks for it before it registers, and so before it reveals its
// secret, its pods or that key.
#pragma once

#include <string>
#include <string_view>

namespace muster::tls {

// An HMAC-SHA256 of the challenge and the cluster's id under the cluster's key, in hex. The
// challenge is the agent's random bytes.
std::string proof_of_key(std::string_view key, std::string_view cluster_id,
                         std::string_view challenge);

}  // namespace muster::tls
