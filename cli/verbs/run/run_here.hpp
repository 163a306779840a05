// muster run, embedded: a coordinator and an agent as threads of this process, for one job.
#pragma once

#include "cli/verbs/run/run_options.hpp"
#include "cli/verbs/run/wanted_job.hpp"
#include "client/follow/follow.hpp"
#include "client/follow/pod_files.hpp"
#include "client/follow/pod_output.hpp"
#include "client/inputs/run_identity.hpp"

#include <optional>

namespace muster::cli {

int run_here(const RunOptions& options, WantedJob job);

// Reruns the indexes that options.retry selects of the job in options.data_dir, whatever job that
// is.
int retry_here(const RunOptions& options);

// The files that the output of the pods is written to; absent: there are none.
std::optional<PodFiles> wanted_files(const RunOptions& options);
// How this job's output is shown. `files`: null if there are none.
OutputWishes output_wishes(const RunOptions& options, const Json& job, PodFiles* files);

// Call before creating a job: checks that its output can be shown or written as requested, and
// creates the directory of its files. invalid: says why not.
Status check_output(const RunOptions& options, const Json& job);

// Exit code of a finished run: 0 or 1; for a command with one index that failed, or for an MPI
// launcher, the exit code of its last attempt.
int exit_code_of(const RunOptions& options, ApiClient& client, const std::string& ns,
                 const Follow& end);

// The error line of a job that failed because its command could not be started.
std::optional<std::string> start_failure(const Json& job);

}  // namespace muster::cli
