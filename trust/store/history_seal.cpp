#include "trust/store/history_seal.hpp"

#include "base/check.hpp"
#include "base/hex.hpp"
#include "base/secret.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace muster::coordinator {

std::string HistorySeal::of(const core::KnownHistory& history) const {
  if (key_.empty()) return "";
  const std::string text = "muster history 1 " + std::to_string(history.epoch) + " " +
                           std::to_string(history.nonce) + " " + std::to_string(history.commit) +
                           " " + cluster_id_;
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  MUSTER_CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac,
                    &size) != nullptr);
  return to_hex({reinterpret_cast<const char*>(mac), size});
}

bool HistorySeal::is_of(const core::KnownHistory& history, std::string_view seal) const {
  return same_secret(of(history), seal);
}

}  // namespace muster::coordinator
