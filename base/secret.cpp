#include "base/secret.hpp"

#include "base/check.hpp"
#include "base/hex.hpp"

#include <cerrno>
#include <sys/random.h>

namespace muster {

std::string random_hex(size_t bytes) {
  std::string raw(bytes, 0);
  MUSTER_CHECK(getrandom(raw.data(), bytes, 0) == static_cast<ssize_t>(bytes), errno);
  return to_hex(raw);
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.empty() || a.size() != b.size()) return false;
  unsigned differs = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return differs == 0;
}

}  // namespace muster
