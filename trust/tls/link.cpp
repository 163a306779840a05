#include "trust/tls/link.hpp"

#include "base/check.hpp"

#include <string_view>
#include <utility>

namespace muster::tls {
namespace {

// KJ keeps the peer's certificate but exposes only its names. An explicit instantiation may name
// private members, so this one hands it out.
template <auto Member>
struct Shows {
  friend void* certificate_of(kj::TlsPeerIdentity& peer) { return peer.*Member; }
};
void* certificate_of(kj::TlsPeerIdentity& peer);
template struct Shows<&kj::TlsPeerIdentity::cert>;

// KJ cannot require a version above 1.2. With a pre-shared-key cipher, for which nobody has keys,
// no version before 1.3 finds a cipher. TLS 1.3 has a separate list.
constexpr char kNoCipherBefore13[] = "PSK-AES256-GCM-SHA384";

kj::TlsContext::Options options_of(kj::ArrayPtr<const kj::TlsCertificate> trusted) {
  kj::TlsContext::Options options;
  options.useSystemTrustStore = false;
  options.trustedCertificates = trusted;
  options.minVersion = kj::TlsVersion::TLS_1_2;
  options.cipherList = kNoCipherBefore13;
  return options;
}

kj::TlsKeypair keypair_of(const KeyPair& own) {
  return {kj::TlsPrivateKey(kj::StringPtr(own.key)),
          kj::TlsCertificate(kj::StringPtr(own.certificate))};
}

class Encrypted final : public kj::NetworkAddress {
 public:
  Encrypted(kj::Own<kj::NetworkAddress> inner, kj::TlsContext& context)
      : inner_(kj::mv(inner)), context_(context) {}

  kj::Promise<kj::Own<kj::AsyncIoStream>> connect() override {
    return inner_->connect().then([this](kj::Own<kj::AsyncIoStream> stream) {
      return context_.wrapClient(kj::mv(stream), kServerName);
    });
  }
  kj::Own<kj::ConnectionReceiver> listen() override { return inner_->listen(); }
  kj::Own<kj::NetworkAddress> clone() override {
    return kj::heap<Encrypted>(inner_->clone(), context_);
  }
  kj::String toString() override { return inner_->toString(); }

 private:
  kj::Own<kj::NetworkAddress> inner_;
  kj::TlsContext& context_;
};

struct Known {
  std::string_view said;
  const char* meant;
};
constexpr Known kKnown[] = {
    {"certificate verify failed",
     "its certificate was not issued by this cluster's authority, or has expired"},
    {"self-signed certificate", "its certificate was not issued by this cluster's authority"},
    {"self signed certificate", "its certificate was not issued by this cluster's authority"},
    {"unable to get local issuer", "its certificate was not issued by this cluster's authority"},
    {"certificate has expired", "its certificate has expired"},
    {"not yet valid", "its certificate is not valid yet: check the clocks"},
    {"unsuitable certificate purpose", "its certificate is not the coordinator's"},
    {"ostname mismatch", "its certificate is not the coordinator's"},
    {"ssl connection ended", "it closed the encrypted connection; see its log"},
    {"peer did not return a certificate", "it has no certificate"},
    {"alert certificate required", "it requires a certificate"},
    {"alert bad certificate", "it rejects our certificate"},
    {"alert unknown ca",
     "it rejects our certificate: it was issued by another cluster's authority"},
    {"alert certificate expired", "it rejects our certificate: it has expired"},
    {"alert certificate unknown", "it rejects our certificate"},
    {"wrong version number", "the other end does not use TLS"},
    {"http request", "the other end does not use TLS"},
    {"unsupported protocol", "it does not support TLS 1.3"},
    {"alert protocol version", "it does not support TLS 1.3"},
    {"alert handshake failure", "it does not support TLS 1.3"},
};

}  // namespace

kj::Own<kj::TlsContext> server_context(const KeyPair& own, const std::string& authority,
                                       bool clients) {
  const kj::TlsCertificate trusted{kj::StringPtr(authority)};
  const kj::TlsKeypair pair = keypair_of(own);
  auto options = options_of(kj::arrayPtr(&trusted, 1));
  options.verifyClients = clients;
  options.defaultKeypair = pair;
  return kj::heap<kj::TlsContext>(kj::mv(options));
}

kj::Own<kj::TlsContext> client_context(const std::optional<KeyPair>& own,
                                       const std::string& authority) {
  const kj::TlsCertificate trusted{kj::StringPtr(authority)};
  auto options = options_of(kj::arrayPtr(&trusted, 1));
  if (!own) return kj::heap<kj::TlsContext>(kj::mv(options));
  const kj::TlsKeypair pair = keypair_of(*own);
  options.defaultKeypair = pair;
  return kj::heap<kj::TlsContext>(kj::mv(options));
}

kj::Own<kj::NetworkAddress> encrypted(kj::Own<kj::NetworkAddress> address,
                                      kj::TlsContext& context) {
  return kj::heap<Encrypted>(kj::mv(address), context);
}

Millis valid_until_ms(kj::TlsPeerIdentity& peer) {
  MUSTER_CHECK(peer.hasCertificate());
  return facts_of(*static_cast<x509_st*>(certificate_of(peer))).until_ms;
}

std::optional<std::string> explained(const kj::Exception& exception) {
  const std::string_view text(exception.getDescription().cStr());
  for (const Known& known : kKnown)
    if (text.find(known.said) != text.npos) return known.meant;
  return std::nullopt;
}

}  // namespace muster::tls
