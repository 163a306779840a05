// muster run, embedded: a coordinator and an agent as threads of this process, for one job.
#pragma once

#include "cli/client/follow.hpp"
#include "cli/client/run_identity.hpp"
#include "cli/settings/options.hpp"
#include "cli/verbs/wanted_job.hpp"

namespace muster::cli {

int run_here(const RunOptions& options, WantedJob job);

// Runs what options.retry selects of the job in options.data_dir, whatever it is.
int retry_here(const RunOptions& options);

// Before a job is created: whether its output can be shown or written as wished. Makes the
// directory of its files. invalid: why not.
Status check_output(const RunOptions& options, const Json& job);

// Exit code of a finished run: 0 or 1; for a command with one index that failed, or a launcher of
// MPI, the exit code of its last attempt.
int exit_code_of(const RunOptions& options, ApiClient& client, const std::string& ns,
                 const Follow& end);

// The error line of a job that failed because its command cannot be started.
std::optional<std::string> start_failure(const Json& job);

// Number of CPUs this process may use.
int cpu_count();

}  // namespace muster::cli
