// Whether one journal is the beginning of another.
#pragma once

#include "core/cluster/nodes/epoch_line.hpp"

#include <cstdint>

namespace muster::core::standby {

// Whether a journal that ends with `end` (its last epoch, that one's nonce, its last commit) is the
// beginning of ours, which has this line and this last commit. Unlike EpochLine::judge(), which
// accuses only on proof, it is true only on proof.
inline bool is_beginning(const EpochLine& line, uint64_t last_commit, const KnownHistory& end) {
  if (end.commit == 0) return true;
  if (end.nonce == 0) return false;
  for (const EpochEntry& entry : line.entries())
    if (entry.epoch == end.epoch)
      return entry.nonce == end.nonce && line.judge(end, last_commit) == EpochLine::Standing::ours;
  return false;
}

}  // namespace muster::core::standby
