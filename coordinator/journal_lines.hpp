// Journal lines: what a data-dir or a backup holds, as a summary and as JSON lines, without serving
// or changing it. A coordinator may have it open.
//
// One line is one row, or one record of an append. Every line has "kind"; docs/formats.md lists the
// kinds and their members. Secrets are left out, and named in "withheld".
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::coordinator {

struct JournalSummary {
  std::string cluster_id;
  uint64_t format = 0, epoch = 0, commit = 0;
  std::optional<uint64_t> acknowledged;     // by the file `commit`; absent: there is none
  std::optional<uint64_t> pid;              // of the coordinator that serves it
  uint64_t files = 0, bytes = 0;            // of the database
  uint64_t unfinished = 0, finished = 0;    // jobs
  std::map<std::string, uint64_t> rows;     // by kind
  std::map<std::string, uint64_t> records;  // by kind
  std::vector<std::string> problems;        // empty: sound, as far as reading it tells
};
Result<JournalSummary> summarize_journal(const std::string& dir);

// Calls `line` for each line, in order, until it returns false. Returns how many rows could not be
// read; their lines have the kind "damaged".
Result<uint64_t> export_journal(const std::string& dir,
                                const std::function<bool(const std::string&)>& line);

}  // namespace muster::coordinator
