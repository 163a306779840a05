#include "trust/tls/site.hpp"

#include <kj/exception.h>
#include <kj/vector.h>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string_view>
#include <utility>

namespace muster::tls {
namespace {

// As in link.cpp: an explicit instantiation may name private members.
template <auto Member>
struct ShowsContext {
  friend void* openssl_of(kj::TlsContext& context) { return context.*Member; }
};
void* openssl_of(kj::TlsContext& context);
template struct ShowsContext<&kj::TlsContext::ctx>;

// KJ expects each host to be the name of a host, so OpenSSL does not compare it with the addresses
// in the certificate.
int accept_address(int ok, X509_STORE_CTX* checking) {
  if (ok == 1 || X509_STORE_CTX_get_error(checking) != X509_V_ERR_HOSTNAME_MISMATCH) return ok;
  const char* host = X509_VERIFY_PARAM_get0_host(X509_STORE_CTX_get0_param(checking), 0);
  if (host == nullptr || X509_check_ip_asc(X509_STORE_CTX_get0_cert(checking), host, 0) != 1)
    return 0;
  X509_STORE_CTX_set_error(checking, X509_V_OK);
  return 1;
}

kj::Array<kj::TlsCertificate> each_of(const std::string& authorities) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  kj::Vector<kj::TlsCertificate> all;
  for (size_t at = authorities.find(kBegin); at != std::string::npos;) {
    const size_t next = authorities.find(kBegin, at + kBegin.size());
    const std::string one = authorities.substr(at, next == std::string::npos ? next : next - at);
    all.add(kj::TlsCertificate(kj::StringPtr(one.c_str())));
    at = next;
  }
  if (all.empty()) all.add(kj::TlsCertificate(kj::StringPtr(authorities.c_str())));  // throws
  return all.releaseAsArray();
}

}  // namespace

kj::Own<kj::TlsContext> site_context(const std::optional<KeyPair>& own,
                                     const std::string& authorities) {
  kj::TlsContext::Options options;
  kj::Array<kj::TlsCertificate> trusted;
  if (!authorities.empty()) {
    trusted = each_of(authorities);
    options.useSystemTrustStore = false;
    options.trustedCertificates = trusted;
  }
  options.minVersion = kj::TlsVersion::TLS_1_2;
  std::optional<kj::TlsKeypair> pair;
  if (own) {
    pair.emplace(kj::TlsKeypair{kj::TlsPrivateKey(kj::StringPtr(own->key)),
                                kj::TlsCertificate(kj::StringPtr(own->certificate))});
    options.defaultKeypair = *pair;
  }
  auto context = kj::heap<kj::TlsContext>(kj::mv(options));
  // KJ looks at the result of the verification itself, before anything is sent.
  SSL_CTX_set_verify(static_cast<SSL_CTX*>(openssl_of(*context)), SSL_VERIFY_NONE, accept_address);
  return context;
}

std::optional<std::string> explained_of_site(const kj::Exception& exception) {
  const std::string text(exception.getDescription().cStr());
  if (text.find("certificate is not trusted") != text.npos) {
    const size_t at = text.find("reason = ");
    if (at == text.npos) return "its certificate is not trusted";
    return "its certificate is not trusted: " + text.substr(at + 9, text.find('\n', at) - at - 9);
  }
  if (text.find("alert") != text.npos && text.find("certificate") != text.npos)
    return "it rejects our certificate, or requires one";
  for (const char* plain : {"wrong version number", "http request", "packet length too long"})
    if (text.find(plain) != text.npos) return "it does not use TLS";
  return std::nullopt;
}

}  // namespace muster::tls
