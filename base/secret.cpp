#include "base/secret.hpp"

#include "base/check.hpp"

#include <cerrno>
#include <sys/random.h>

namespace muster {

std::string random_hex(size_t bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string raw(bytes, 0);
  MUSTER_CHECK(getrandom(raw.data(), bytes, 0) == static_cast<ssize_t>(bytes), errno);
  std::string out;
  out.reserve(2 * bytes);
  for (char c : raw) {
    auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.empty() || a.size() != b.size()) return false;
  unsigned differs = 0;
  for (size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return differs == 0;
}

}  // namespace muster
