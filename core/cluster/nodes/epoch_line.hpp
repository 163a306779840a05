// EpochLine: the starts of the coordinator that this journal has seen. Tells whether what an agent
// has seen is part of that history.
//
// Each start that serves adds an entry: its epoch, a random number and the number of its first
// commit. An agent keeps the last start that it served and the highest commit that it has seen.
// Epochs and commits alone prove nothing: an older copy of a data-dir reaches the same numbers if
// it is started often enough, but it cannot have the same random number. So a history contains what
// an agent saw if it has the same start, and that start reached the agent's commit here too.
//
// A restore is a separate entry: the history deliberately continues from a backup, and what agents
// have seen in earlier epochs no longer contradicts it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::core {

struct EpochEntry {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  uint64_t first_commit = 0;  // 0: unknown, written by a version without this history
  bool restored = false;
  bool operator==(const EpochEntry&) const = default;
};

// What an agent says it has seen. Epoch 0: it has never served a coordinator.
struct KnownHistory {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  uint64_t commit = 0;
};

class EpochLine {
 public:
  static constexpr size_t kMax = 10'000;  // entries; the oldest are dropped

  enum class Standing {
    ours,      // our history contains it
    restored,  // it is from before a restore: pods of the agent may be unknown here
    older,     // our history ends before what the agent has seen
    diverged,  // our history took another branch
  };

  EpochLine() = default;
  explicit EpochLine(std::vector<EpochEntry> entries) : entries_(std::move(entries)) {}

  const std::vector<EpochEntry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  // The entry of the current or last start. Requires !empty().
  const EpochEntry& last() const { return entries_.back(); }
  // Adds this start and returns the entries dropped because they exceed kMax.
  std::vector<EpochEntry> add(EpochEntry entry);

  // `last_commit`: the current one of this journal.
  Standing judge(const KnownHistory& known, uint64_t last_commit) const;

  // Why the entries are not a valid line (epochs and first commits must rise); empty: they are.
  std::string broken() const;

 private:
  std::vector<EpochEntry> entries_;  // by epoch
};

}  // namespace muster::core
