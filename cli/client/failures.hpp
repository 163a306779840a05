// Failures: which pods of a job failed, where, why, by which rule the job did, and what they said
// last.
#pragma once

#include "cli/client/http.hpp"
#include "cli/output/json.hpp"

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
  std::vector<Failure> shown;  // the first ones
  size_t all = 0;
};

// "SIGKILL"; of a number without a name "signal 42".
std::string signal_name(int64_t signal);

// "exit 1", "SIGKILL (exit 137), OOMKilled", "exit 127: exec ./run: No such file or directory",
// "DeletionByTaintManager: …".
std::string cause_of(const Json& pod);

// Of a Pod object, without its last lines.
Failure failure_of(const Json& pod);

// The first `max` failures of a Job object with their last `lines` lines: by their end as long as
// it goes on, and of a Failed one those that it failed of, the last attempt of each index. A log
// that cannot be had (its node is away) is left out.
Result<Failures> failures_of(ApiClient& client, const std::string& ns, const Json& job, size_t max,
                             size_t lines);

// Which field of its spec ended a Failed job: "spec.activeDeadlineSeconds: 5, the job was active
// for longer"; empty: its message says it.
std::string rule_text(const Json& job);

// Where to read on: "more: muster logs job/J --index 7 --attempt 1".
std::string more_text(const Failures& failures, const std::string& job, const std::string& ns);

// A table, each failure's last lines below it; ends with "… and N more".
std::string failures_text(const Failures& failures, const std::string& indent);

// The end of what a pod wrote to stderr, else to stdout.
std::vector<std::string> last_words(ApiClient& client, const std::string& ns,
                                    const std::string& pod, size_t lines);

}  // namespace muster::cli
