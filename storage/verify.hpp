// Verify: checks that the journal is sound and consistent.
//
// Reads every block, folds each job from its rows, and checks the result against the invariants of
// a job and against the history of its attempts, which is written alongside the counters but not
// read by any fold.
#pragma once

#include "core/journal_facts.hpp"
#include "storage/recovery.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::storage {

using core::Verified;
constexpr size_t kMismatchesMax = 1'000;

// Verifies a journal that may be written concurrently. Any thread may call it.
Verified verify(Journal& journal, const LoadObject& load_object);

// Verifies a data-dir that no process has open, or a backup, whose files are compared with its
// manifest. Fails only if it can't be opened at all.
Result<Verified> verify_dir(const std::string& dir, const LoadObject& load_object);

// Contradictions between this fold and its attempts, as sentences. `whole` is set if every pod ever
// created is accounted for, so that the counts must match.
std::vector<std::string> recount(const core::Job& job, const std::vector<core::Pod>& attempts,
                                 bool& whole);

}  // namespace muster::storage
