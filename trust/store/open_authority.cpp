#include "trust/store/open_authority.hpp"

#include "trust/tls/bundle.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <tuple>

namespace muster::coordinator {

Result<std::optional<tls::Authority>> open_authority(const AuthorityFiles& files,
                                                     const std::string& stored) {
  tls::KeyPair pems;
  if (!files.certificate.empty()) {
    for (const auto& [flag, path, text] :
         {std::tuple("--ca-cert", &files.certificate, &pems.certificate),
          std::tuple("--ca-key", &files.key, &pems.key)}) {
      std::ifstream in(*path, std::ios::binary);
      text->assign(std::istreambuf_iterator<char>(in), {});
      if (!in) return invalid(std::string(flag) + " " + *path + ": " + std::strerror(errno));
    }
    auto site = tls::Authority::load(pems);
    if (!site.ok()) return invalid("--ca-cert, --ca-key: " + site.error().message);
    return std::optional(std::move(*site));
  }
  if (stored.empty()) return std::optional<tls::Authority>();
  size_t key = 0, certificate = 0;
  pems = {tls::pem_part(stored, "PRIVATE KEY", key),
          tls::pem_part(stored, "CERTIFICATE", certificate)};
  auto authority = tls::Authority::load(pems);
  if (!authority.ok()) return invalid("journal: authority: " + authority.error().message);
  return std::optional(std::move(*authority));
}

}  // namespace muster::coordinator
