// What is known of a whole journal: of a copy of it, and of one that was checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::core {

struct BackupInfo {
  std::string cluster_id;
  std::string origin{};  // the data-dir, as an absolute path; empty: unknown
  uint64_t epoch = 0;
  uint64_t commit = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// The result of recounting all jobs.
struct Verified {
  uint64_t commit = 0;
  uint64_t jobs = 0;
  uint64_t attempts = 0;
  uint64_t counted = 0;                 // jobs with a complete history, which was recounted
  std::vector<std::string> mismatches;  // one line each; a bounded number
};

}  // namespace muster::core
