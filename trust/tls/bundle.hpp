// Bundle: one PEM file (RFC 7468) with everything that a member of a cluster needs for its links:
// comment lines, its certificate, its private key, the authority's certificate.
#pragma once

#include "base/result.hpp"
#include "trust/tls/certificates.hpp"

#include <cstddef>
#include <string>

namespace muster::tls {

struct Bundle {
  KeyPair own;
  std::string authority;  // its certificate
};

// `comment`: without line breaks; empty: none.
std::string bundle_text(const Bundle& bundle, const std::string& comment);
// `invalid`: parts are missing, or the key does not match the first certificate.
Result<Bundle> read_bundle(const std::string& text);

// The first part of this kind ("CERTIFICATE") from `at` on; moves `at` past it. Empty: none.
std::string pem_part(const std::string& text, const std::string& kind, size_t& at);

}  // namespace muster::tls
