// Rlimits: resource limits, from the environment, of processes started as their owners.
//
//   MUSTER_KEEPER_LIMITS := limit (space limit)*
//   limit  := name=value | name=soft:hard           one value is both
//   value  := unlimited | digits [K | M | G | T]    in the unit of setrlimit(2); 1K is 1024
//   name   := one of kResourceNames (core/spec/values/rlimits.hpp)
//
// Only a process with CAP_SYS_RESOURCE may raise a hard limit, and the keeper gives that up. So it
// first raises its own hard limits to these; a child then only lowers what it inherits.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

namespace muster::keeper {

constexpr const char* kLimitsVariable = "MUSTER_KEEPER_LIMITS";

struct ResourceLimit {
  const char* name = "";  // as above
  int resource = 0;       // RLIMIT_…
  rlimit value{};
};

Result<std::vector<ResourceLimit>> read_rlimits(std::string_view text);
// Raises our own hard limits where these are higher. Empty, or why one cannot be raised.
std::string make_room_for(const std::vector<ResourceLimit>& limits);

}  // namespace muster::keeper
