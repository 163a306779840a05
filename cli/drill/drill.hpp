// Drill: the operator's failover test. Injects faults into a cluster while a canary runs, and
// compares what the canary's own witnesses wrote with what the coordinator says.
#pragma once

#include "cli/drill/report.hpp"
#include "cli/settings/options.hpp"

namespace muster::cli::drill {

// Runs it; returns the exit code: 0 HELD, 1 BROKEN, 2 INCONCLUSIVE or refused, 130 interrupted.
int run_drill(const DrillOptions& options);

}  // namespace muster::cli::drill
