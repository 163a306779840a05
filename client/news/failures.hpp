// Failures: which pods of a job failed, where and why, the last lines they printed, and the rule by
// which the job failed.
#pragma once

#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct Failure {
  std::string pod, node, cause;
  std::optional<int64_t> index;         // of an Indexed job
  std::optional<int64_t> attempt;       // if it is known
  std::string ended;                    // RFC 3339
  std::vector<std::string> last_lines;  // of stderr, or of stdout if stderr is empty
  std::string runs{};                   // before its end (runs_of()); usually empty
  std::string input{};                  // of the index, on one line; empty: none, or unknown
  std::optional<int64_t> task{};        // of the index, if the job is an array
};

struct Failures {
  std::vector<Failure> shown;  // the first of them
  size_t all = 0;
};

// "exit 1", "SIGKILL (exit 137), OOMKilled", "exit 127: exec ./run: No such file or directory",
// "DeletionByTaintManager: …".
std::string cause_of(const Json& pod);

// Reads a Pod object; leaves last_lines empty.
Failure failure_of(const Json& pod);

// The first `max` failures of a job, with the last `lines` lines of each. For an Indexed job that
// has Failed, the last attempt of each index that made it fail; otherwise all failed pods, in the
// order in which they ended. A log that cannot be read (its node is unreachable) is left out.
Result<Failures> failures_of(ApiClient& client, const std::string& ns, const Json& job, size_t max,
                             size_t lines);

// Which spec field made a job fail: "it was active longer than spec.activeDeadlineSeconds (5)
// allows"; empty if the message of the condition says enough.
std::string rule_text(const Json& job);

// Where to find more: "more: muster logs job/J --index 7 --attempt 1"; an array has --task.
std::string more_text(const Failures& failures, const std::string& job, const std::string& ns);

// A table with each failure's last lines below its row; ends with "... and N more".
std::string failures_text(const Failures& failures, const std::string& indent);

// The last lines that a pod wrote to stderr, or to stdout if stderr is empty.
std::vector<std::string> last_words(ApiClient& client, const std::string& ns,
                                    const std::string& pod, size_t lines);

}  // namespace muster::cli
