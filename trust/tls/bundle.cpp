#include "trust/tls/bundle.hpp"

namespace muster::tls {

std::string bundle_text(const Bundle& bundle, const std::string& comment) {
  return (comment.empty() ? "" : "# " + comment + "\n") + bundle.own.certificate + bundle.own.key +
         bundle.authority;
}

std::string pem_part(const std::string& text, const std::string& kind, size_t& at) {
  const std::string begin = "-----BEGIN " + kind + "-----", end = "-----END " + kind + "-----";
  const size_t from = text.find(begin, at);
  const size_t to = from == text.npos ? from : text.find(end, from);
  if (to == text.npos) return "";
  at = to + end.size();
  return text.substr(from, at - from) + "\n";
}

Result<Bundle> read_bundle(const std::string& text) {
  Bundle bundle;
  size_t at = 0, key_at = 0;
  bundle.own.certificate = pem_part(text, "CERTIFICATE", at);
  bundle.own.key = pem_part(text, "PRIVATE KEY", key_at);
  bundle.authority = pem_part(text, "CERTIFICATE", at);
  if (bundle.authority.empty() || bundle.own.key.empty())
    return invalid(
        "it is not a join token: it must contain a certificate, a private key and the authority's "
        "certificate");
  if (!read_certificate(bundle.authority).ok() || !fits(bundle.own))
    return invalid("its certificates and key are damaged or do not match");
  return bundle;
}

}  // namespace muster::tls
