// Failures: which pods of a job failed, where, why, and what they said last.
#pragma once

#include "cli/http.hpp"
#include "cli/json.hpp"

#include <string>
#include <vector>

namespace muster::cli {

struct Failure {
  std::string pod, node, cause;
  int64_t index = -1;                   // -1: NonIndexed
  int64_t attempt = -1;                 // -1: unknown
  std::string ended;                    // RFC 3339
  std::vector<std::string> last_lines;  // of its stderr, else of its stdout
};

struct Failures {
  std::vector<Failure> shown;  // the first ones, by their end
  size_t all = 0;
};

// "exit 1", "signal 9 (exit 137), OOMKilled", "exit 127: exec ./run: No such file or directory",
// "DeletionByTaintManager: …".
std::string cause_of(const Json& pod);

// Of a Pod object, without its last lines.
Failure failure_of(const Json& pod);

// The first `max` failures of a job with their last `lines` lines. A log that cannot be had (its
// node is away) is left out.
Result<Failures> failures_of(ApiClient& client, const std::string& ns, const std::string& job,
                             size_t max, size_t lines);

// A table, each failure's last lines below it; ends with "… and N more".
std::string failures_text(const Failures& failures, const std::string& indent);

// The end of what a pod wrote to stderr, else to stdout.
std::vector<std::string> last_words(ApiClient& client, const std::string& ns,
                                    const std::string& pod, size_t lines);

}  // namespace muster::cli
