// Attempts: the history of a job, which the coordinator keeps on disk.
#pragma once

#include "client/connect/http.hpp"
#include "client/terminal/json.hpp"
#include "core/index_set.hpp"

#include <functional>
#include <string>

namespace muster::cli {

// Parses an index set as a coordinator sends it: "3,7-9".
core::IndexSet index_set(const std::string& text);
// The indexes that this job runs: those named by muster.dev/indexes, else all.
core::IndexSet own_indexes(const Json& job);
// Those that have failed; its status counts those that were cancelled among them (ADR 74).
core::IndexSet failed_indexes(const Json& job);
core::IndexSet cancelled_indexes(const Json& job);
// Those that have completed, failed or were cancelled: they get no more pods.
core::IndexSet settled_indexes(const Json& job);

// /apis/muster.dev/v1/namespaces/NS/jobs/J/WHAT
std::string own_path(const std::string& ns, const std::string& job, const std::string& what);

// Calls `take` for each closed attempt, in the order in which they were closed. `query`:
// "index=3,7-9", "failed=true", joined by "&"; empty: all.
Status each_attempt(ApiClient& client, const std::string& ns, const std::string& job,
                    const std::string& query, const std::function<void(const Json&)>& take);

// "exit 1", "SIGKILL (exit 137), DeletionByTaintManager", "exit 1, after 2 restarts",
// "exit 127: exec ./run: …".
std::string attempt_cause(const Json& attempt);

// Of an entry of its `runs`: "exit 3, run 0 of main".
std::string run_cause(const Json& run);
// "exit 3, run 0 of main; exit 3, run 1 of main", of a pod's annotation muster.dev/runs; empty: it
// has had no earlier runs.
std::string runs_of(const Json& pod);

// "failure (FailIndex)", "success", "not counted (Ignore)", "not counted (removed)".
std::string attempt_counted(const Json& attempt);

}  // namespace muster::cli
