#include "standby/credentials.hpp"

#include "base/clock.hpp"
#include "trust/store/trust_store.hpp"
#include "trust/tls/link.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace muster::standby {

Result<PeerCredentials> PeerCredentials::of_token(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return invalid("--join-token " + file + ": " + std::strerror(errno));
  auto bundle = tls::read_bundle(text);
  if (!bundle) return invalid("--join-token " + file + ": " + bundle.error().message);
  const auto facts = tls::read_certificate(bundle->own.certificate);
  const auto who = facts ? tls::Identity::parse(facts->common_name) : std::nullopt;
  if (!who || who->kind != tls::Identity::Kind::coordinator)
    return invalid("--join-token " + file +
                   ": it is not a coordinator's: make one with `muster token create --coordinator "
                   "NAME`, where the leader runs");
  PeerCredentials made;
  made.authority_ = bundle->authority;
  made.client_ = bundle->own;
  return made;
}

PeerCredentials PeerCredentials::of_authority(const tls::Authority& authority) {
  const tls::Identity who{tls::Identity::Kind::coordinator, "", "", 0};
  PeerCredentials made;
  made.authority_ = authority.pems().certificate;
  made.client_ = authority.issue(
      {who.common_name(), {}, false, wall_now(), coordinator::kServerCertificateMs});
  made.server_ = coordinator::server_certificate(authority, {}, wall_now());
  return made;
}

kj::Own<kj::TlsContext> PeerCredentials::client() const {
  return tls::client_context(client_, authority_);
}

kj::Own<kj::TlsContext> PeerCredentials::server() const {
  return tls::server_context(*server_, authority_, true);
}

std::optional<tls::Identity> peer_identity(kj::AuthenticatedStream& stream) {
  auto& peer = kj::downcast<kj::TlsPeerIdentity>(*stream.peerIdentity);
  if (!peer.hasCertificate() || tls::valid_until_ms(peer) < wall_now()) return std::nullopt;
  const kj::String name = peer.getCommonName();
  auto who = tls::Identity::parse(std::string_view(name.begin(), name.size()));
  if (!who || who->kind != tls::Identity::Kind::coordinator) return std::nullopt;
  return who;
}

}  // namespace muster::standby
