// Attempts: the history of what a job ran, as the coordinator keeps it on disk.
#pragma once

#include "cli/http.hpp"
#include "cli/json.hpp"

#include <functional>
#include <string>

namespace muster::cli {

// /apis/muster.dev/v1/namespaces/NS/jobs/J/WHAT
std::string own_path(const std::string& ns, const std::string& job, const std::string& what);

// Calls `take` with each attempt that is over, in the order in which they were closed, a page at a
// time. `query`: "index=3,7-9", "failed=true", joined by "&"; empty: all.
Status each_attempt(ApiClient& client, const std::string& ns, const std::string& job,
                    const std::string& query, const std::function<void(const Json&)>& take);

// "exit 1", "SIGKILL (exit 137), DeletionByTaintManager", "exit 127: exec ./run: …".
std::string attempt_cause(const Json& attempt);

// "failure (FailIndex)", "success", "not counted (Ignore)", "not counted (removed)".
std::string attempt_counted(const Json& attempt);

}  // namespace muster::cli
