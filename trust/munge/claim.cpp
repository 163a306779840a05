#include "trust/munge/claim.hpp"

#include <array>

namespace muster::munge {
namespace {

constexpr std::string_view kWord = "muster";

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

std::string Claim::text() const {
  return std::string(kWord) + " " + audience.cluster + " " + audience.start + " " + nonce;
}

std::optional<Claim> Claim::parse(std::string_view text) {
  std::array<std::string_view, 4> words;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t space = text.find(' ');
    if ((space == text.npos) != (i + 1 == words.size())) return std::nullopt;
    words[i] = text.substr(0, space);
    if (space != text.npos) text.remove_prefix(space + 1);
  }
  const auto& [word, cluster, start, nonce] = words;
  if (word != kWord || !is_hex(cluster) || !is_hex(start) || !is_hex(nonce) ||
      nonce.size() != kNonceDigits)
    return std::nullopt;
  return Claim{{std::string(cluster), std::string(start)}, std::string(nonce)};
}

}  // namespace muster::munge
