#include "trust/tls/proof.hpp"

#include "base/check.hpp"
#include "base/hex.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace muster::tls {

std::string proof_of_key(std::string_view key, std::string_view cluster_id,
                         std::string_view challenge) {
  const std::string text = "muster coordinator 1 " + std::string(cluster_id) + " " +
                           to_hex({challenge.data(), challenge.size()});
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  MUSTER_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac,
                    &size) != nullptr);
  return to_hex({reinterpret_cast<const char*>(mac), size});
}

}  // namespace muster::tls
