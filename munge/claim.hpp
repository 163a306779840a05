// Claim: the payload of a munge credential that logs its maker in to one coordinator. Pure.
//
//   claim: "muster" " " cluster " " start " " nonce
//
// The cluster's id and a random number of the coordinator's present run say whom it is for, so it
// is of no use with another cluster, nor after a restart that has forgotten which nonces were used.
// The nonce, 32 hexadecimal digits, is the maker's.
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
  // Nothing: it is none.
  static std::optional<Claim> parse(std::string_view text);
};

}  // namespace muster::munge
