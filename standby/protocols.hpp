// Which versions of the protocol between coordinators (schema/standby.capnp) understand each other.
#pragma once

#include <cstdint>
#include <string>

namespace muster::standby {

struct Spoken {
  uint32_t oldest = 0, newest = 0;  // and all between
};

// Why a leader that speaks `ours` refuses a follower that speaks `theirs`: no version is common.
// Empty: there is one. In an upgrade, either of them may be the newer one.
inline std::string refused_protocol(Spoken ours, Spoken theirs) {
  if (theirs.newest >= ours.oldest && theirs.oldest <= ours.newest) return "";
  const auto range = [](Spoken one) {
    const std::string newest = std::to_string(one.newest);
    return one.oldest == one.newest ? "version " + newest
                                    : "versions " + std::to_string(one.oldest) + " to " + newest;
  };
  return "it speaks " + range(theirs) + " of the protocol between coordinators, this one speaks " +
         range(ours) + ": run neighbouring versions of muster on both machines";
}

}  // namespace muster::standby
