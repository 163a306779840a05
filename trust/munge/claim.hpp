// Claim: the payload of a munge credential that logs its creator in to one coordinator. Pure.
//
//   claim: "muster" " " cluster " " start " " nonce
//
// The cluster's id and a random number of the coordinator's current run name the audience, so a
// claim is useless to another cluster, and after a restart, which forgets the nonces already used.
// The creator chooses the nonce, 32 hexadecimal digits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster::munge {

inline constexpr size_t kNonceDigits = 32;

struct Audience {
  std::string cluster, start;

  bool operator==(const Audience&) const = default;
};

struct Claim {
  Audience audience;
  std::string nonce;

  std::string text() const;
  // nullopt: not a claim.
  static std::optional<Claim> parse(std::string_view text);
};

}  // namespace muster::munge
