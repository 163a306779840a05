// Certificates: a cluster's authority, and the keys and certificates of its members (X.509, ECDSA
// P-256).
//
// A certificate's common name says who its holder is (identity.hpp). Everything in a signing
// request except its public key is ignored. Members' certificates are valid only for clients, the
// coordinator's only for a server, so neither can impersonate the other.
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct x509_st;  // OpenSSL's X509

namespace muster::tls {

struct KeyPair {
  std::string key, certificate;  // PEM
};

// Certificates are backdated by this much, to tolerate clocks that differ.
inline constexpr Millis kClockSkewMs = 3'600'000;

struct Issue {
  std::string common_name;         // up to 300 bytes
  std::vector<std::string> names;  // host names and IP addresses (subjectAltName)
  bool server = false;             // for a server; otherwise for a client
  Millis now_ms = 0, life_ms = 0;  // wall clock
};

class Authority {
 public:
  static Authority make(const std::string& common_name, Millis now_ms);
  // `invalid`: not in PEM, not matching, or not those of a self-signed authority.
  static Result<Authority> load(const KeyPair& pems);

  const KeyPair& pems() const { return pems_; }
  // With a new key.
  KeyPair issue(const Issue& issue) const;
  // For the key of a signing request (PKCS #10, DER). `invalid`: it is not a request, its signature
  // does not match, or its key is not on P-256.
  Result<std::string> sign(std::string_view request, const Issue& issue) const;

 private:
  struct Parsed;
  explicit Authority(KeyPair pems);
  KeyPair pems_;
  std::shared_ptr<const Parsed> parsed_;
};

std::string make_key();                                      // PEM
Result<std::string> make_request(const std::string& key);    // PKCS #10, DER
Result<std::string> request_key_hash(std::string_view der);  // SHA-256 of its public key, in hex

struct Facts {
  std::string common_name;
  Millis from_ms = 0, until_ms = 0;  // wall clock
};
// Of the first certificate in this PEM text.
Result<Facts> read_certificate(const std::string& pem);
Facts facts_of(x509_st& certificate);
// Whether this private key belongs to the first certificate.
bool fits(const KeyPair& pair);

std::string sha256_hex(std::string_view bytes);
std::string base64(std::string_view bytes);  // RFC 4648, in one line

}  // namespace muster::tls
