// muster run, embedded: a coordinator and an agent as threads of this process, for one job.
#pragma once

#include "cli/client/follow.hpp"
#include "cli/client/run_identity.hpp"
#include "cli/settings/options.hpp"

namespace muster::cli {

// `text`: the manifest as it was written; empty when it was made here.
int run_here(const RunOptions& options, const std::string& ns, RunIdentity job,
             const std::string& text);

// How a run that has ended exits: 0, 1, or with a command of one index the command's own code.
int exit_code_of(const RunOptions& options, ApiClient& client, const std::string& ns,
                 const Follow& end);

// Of a job that ended as its command cannot be started: one line that says so.
std::optional<std::string> start_failure(const Json& job);

// The CPUs that this process may use.
int cpu_count();

}  // namespace muster::cli
