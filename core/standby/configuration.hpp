// Configuration: who leads a cluster with several coordinators, and who may take over. It is the
// one value that the consensus store holds, and every change of it is a transaction there.
//
// Invariant: every replica in `in_sync` has every acknowledged commit, so only these may lead. The
// leader alone changes a configuration; taking the lead makes a new one with the next term.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace muster::core::standby {

// Where a coordinator can be reached; empty: not at all.
struct Place {
  std::string peers;               // by the other coordinators
  std::string api, api_tls;        // by clients
  std::string listen, listen_tls;  // by agents
  std::string version;
  bool operator==(const Place&) const = default;
};

struct Configuration {
  std::string cluster;
  uint64_t term = 0;   // the leader's epoch
  std::string leader;  // the name of a member
  // By member: its seat, a random text that its data-dir holds as well. It changes when a replica
  // is added again, so that an older copy of a data-dir is not mistaken for it.
  std::map<std::string, std::string> in_sync;
  std::map<std::string, Place> members;

  bool sits(const std::string& member, const std::string& seat) const {
    const auto it = in_sync.find(member);
    return it != in_sync.end() && it->second == seat;
  }
  bool operator==(const Configuration&) const = default;
};

}  // namespace muster::core::standby
