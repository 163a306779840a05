// muster run, embedded: a coordinator and an agent as threads of this process, for one job.
#pragma once

#include "cli/options.hpp"
#include "cli/run_identity.hpp"

namespace muster::cli {

// `text`: the manifest as it was written; empty when it was made here.
int run_here(const RunOptions& options, const std::string& ns, RunIdentity job,
             const std::string& text);

// The CPUs that this process may use.
int cpu_count();

}  // namespace muster::cli
