// Verify: does the journal hold what it says?
//
// Reads every byte, folds each job from its rows, and holds the result against what must always be
// true of a job, and against the history of its attempts, which is written beside the counters and
// read by no fold.
#pragma once

#include "storage/recovery.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::storage {

struct Verified {
  uint64_t commit = 0;
  uint64_t jobs = 0;
  uint64_t attempts = 0;
  uint64_t counted = 0;                 // jobs whose whole history was there to be counted
  std::vector<std::string> mismatches;  // a line each; at most kMismatchesMax
};
constexpr size_t kMismatchesMax = 1'000;

// Of a journal that may be written meanwhile; from any thread.
Verified verify(Journal& journal, const LoadObject& load_object);

// Of a data-dir that nobody has open, or of a backup, whose files are compared with its manifest.
// An error: it can't be opened at all.
Result<Verified> verify_dir(const std::string& dir, const LoadObject& load_object);

// What of this fold and its attempts does not fit, as sentences. `whole`: set when each pod that
// was ever created is among them, so that they were counted.
std::vector<std::string> recount(const core::Job& job, const std::vector<core::Pod>& attempts,
                                 bool& whole);

}  // namespace muster::storage
