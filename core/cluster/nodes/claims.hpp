// Claims: what the agent of another machine may say that its node has. Pure.
//
// Labels, slots and named resources attract jobs, so what a stolen node says about itself must not
// bring it the jobs of others: an operator decides, with the node's join token or later. What an
// agent claims beyond that is shown under kClaimedPrefix, where no job looks for it by mistake.
#pragma once

#include "core/spec/fields/job_spec.hpp"
#include "core/trust.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::core {

inline constexpr char kClaimedPrefix[] = "claimed.muster.dev/";
// Of nodes that joined with the token of a pool: its name.
inline constexpr char kPoolLabel[] = "muster.dev/pool";
inline constexpr size_t kClaimPatternsMax = 100;

// What an agent says that its node has.
struct Offer {
  uint32_t slots = 0;
  std::map<std::string, int64_t> resources;
  StringMap labels;

  bool operator==(const Offer&) const = default;
};

// What is wrong with a pattern, count or name, and what would be right; empty: nothing.
std::string claims_error(const NodeClaims& claims);

// Whether the whole text is what the pattern stands for.
bool matches(std::string_view pattern, std::string_view text);

// Exactly what this offer has: a node that is held to it keeps what it has.
NodeClaims claims_of(const Offer& offer);

// Holds an offer to the claims. Returns what it claimed beyond them, for a log; empty: nothing.
// Any node may say that it is hollow, which keeps jobs off, or mounts volumes, as agents do.
std::string hold(Offer& offer, const NodeClaims& claims);

}  // namespace muster::core
