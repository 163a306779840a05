#include "core/cluster/nodes/epoch_line.hpp"

#include <algorithm>
#include <iterator>

namespace muster::core {

std::vector<EpochEntry> EpochLine::add(EpochEntry entry) {
  entries_.push_back(entry);
  std::vector<EpochEntry> dropped;
  if (entries_.size() <= kMax) return dropped;
  auto kept = entries_.end() - static_cast<std::ptrdiff_t>(kMax);
  dropped.assign(entries_.begin(), kept);
  entries_.erase(entries_.begin(), kept);
  return dropped;
}

EpochLine::Standing EpochLine::judge(const KnownHistory& known, uint64_t last_commit) const {
  if (known.epoch == 0) return known.commit <= last_commit ? Standing::ours : Standing::older;
  auto later =
      std::upper_bound(entries_.begin(), entries_.end(), known.epoch,
                       [](uint64_t epoch, const EpochEntry& entry) { return epoch < entry.epoch; });
  if (std::any_of(later, entries_.end(), [](const EpochEntry& e) { return e.restored; }))
    return Standing::restored;
  if (later == entries_.begin()) {
    // From before the first entry: only the commit number can be compared.
    if (later == entries_.end()) return Standing::older;
    bool possible = later->first_commit == 0 || known.commit < later->first_commit;
    return possible ? Standing::ours : Standing::older;
  }
  const EpochEntry& entry = *std::prev(later);
  if (entry.epoch != known.epoch)
    return later == entries_.end() ? Standing::older : Standing::diverged;
  if (known.nonce != 0 && known.nonce != entry.nonce) return Standing::diverged;
  uint64_t end = later == entries_.end() ? last_commit : later->first_commit - 1;
  return known.commit <= end ? Standing::ours : Standing::older;
}

std::string EpochLine::broken() const {
  for (size_t i = 1; i < entries_.size(); ++i) {
    const EpochEntry &before = entries_[i - 1], &entry = entries_[i];
    if (entry.epoch <= before.epoch || entry.first_commit <= before.first_commit)
      return "epoch " + std::to_string(entry.epoch) + " (first commit " +
             std::to_string(entry.first_commit) + ") follows epoch " +
             std::to_string(before.epoch) + " (first commit " +
             std::to_string(before.first_commit) + ")";
  }
  return "";
}

}  // namespace muster::core
