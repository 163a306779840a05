// Bundle: all that a member of a cluster needs for its links, as one file: lines of comment, its
// certificate, its private key, the authority's certificate; PEM (RFC 7468).
#pragma once

#include "base/result.hpp"
#include "tls/certificates.hpp"

#include <cstddef>
#include <string>

namespace muster::tls {

struct Bundle {
  KeyPair own;
  std::string authority;  // its certificate
};

// `comment`: without line breaks; empty: none.
std::string bundle_text(const Bundle& bundle, const std::string& comment);
// `invalid`: parts are missing, or the key is not that of the first certificate.
Result<Bundle> read_bundle(const std::string& text);

// Text of the first part of this kind ("CERTIFICATE") from `at` on, which moves behind it; empty:
// there is none.
std::string pem_part(const std::string& text, const std::string& kind, size_t& at);

}  // namespace muster::tls
