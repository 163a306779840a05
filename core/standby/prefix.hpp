// Whether one journal is the beginning of another, and what is lost if it is replaced by it.
#pragma once

#include "core/cluster/nodes/epoch_line.hpp"

#include <cstdint>
#include <optional>

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

// Commits of one journal, from the first one of this epoch on.
struct GivenUp {
  uint64_t epoch = 0;
  uint64_t first = 0, last = 0;
  bool operator==(const GivenUp&) const = default;
};

// What is given up if a journal with this line and last commit is replaced by one with the line
// `by`: from the first epoch that `by` lacks, although it reaches back far enough. nullopt: no
// whole epoch. Commits of a common epoch that only this one has were never acknowledged.
inline std::optional<GivenUp> given_up(const EpochLine& line, uint64_t last_commit,
                                       const EpochLine& by) {
  const auto has = [&by](const EpochEntry& one) {
    for (const EpochEntry& entry : by.entries())
      if (entry.epoch == one.epoch && entry.nonce == one.nonce) return true;
    return false;
  };
  for (const EpochEntry& one : line.entries()) {
    const bool reaches = by.empty() || one.epoch >= by.entries().front().epoch;
    if (reaches && one.first_commit != 0 && one.first_commit <= last_commit && !has(one))
      return GivenUp{one.epoch, one.first_commit, last_commit};
  }
  return std::nullopt;
}

}  // namespace muster::core::standby
