// EpochLine: which starts of the coordinator this journal has seen, and whether what an agent was
// told is part of that history.
//
// Each start that serves adds an entry: its epoch, a random number, and the number of its first
// commit. An agent keeps the last start that it served and the highest commit that it was told of.
// Numbers alone prove nothing, since an older copy of a data-dir that is started often enough has
// them too; but it can't have the other's random number. So a history contains what an agent saw if
// it has the same start, and if that start lasted, here too, as long as the agent was told.
//
// A restore is an entry of its own: by a deliberate act the history goes on from a backup, and
// whatever agents were told in an earlier epoch no longer speaks against it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::core {

struct EpochEntry {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  uint64_t first_commit = 0;  // 0: not known, it was written by a version without a line
  bool restored = false;
  bool operator==(const EpochEntry&) const = default;
};

// What an agent was told, as it says itself. Epoch 0: it never served anybody.
struct ToldHistory {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  uint64_t commit = 0;
};

class EpochLine {
 public:
  static constexpr size_t kMax = 10'000;  // entries that are kept, newest first

  enum class Standing {
    ours,      // our history contains it
    restored,  // it is from before a restore: what the agent holds may be unknown here
    older,     // ours ends before what the agent was told
    diverged,  // ours went another way
  };

  EpochLine() = default;
  explicit EpochLine(std::vector<EpochEntry> entries) : entries_(std::move(entries)) {}

  const std::vector<EpochEntry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  // The present start's, or the last one's. Only when there is one.
  const EpochEntry& last() const { return entries_.back(); }
  // Goes on with this start; the entries that are too many by then are returned.
  std::vector<EpochEntry> add(EpochEntry entry);

  // `last_commit`: of this journal, now.
  Standing judge(const ToldHistory& told, uint64_t last_commit) const;

  // Why this is no line, or nothing: epochs and first commits rise.
  std::string broken() const;

 private:
  std::vector<EpochEntry> entries_;  // by epoch
};

}  // namespace muster::core
