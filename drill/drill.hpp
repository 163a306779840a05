// Drill: the operator's failover test. Injects faults into a cluster while a canary runs, and
// compares what the canary's own witnesses wrote with what the coordinator says.
#pragma once

#include "drill/drill_options.hpp"
#include "drill/proof/report.hpp"

namespace muster::cli::drill {

// Runs the scenarios in order, up to one that is refused or interrupted. Returns the exit code:
// 0 HELD, 1 BROKEN, 3 INCONCLUSIVE (the worst of several), 130 interrupted, else that of the error.
int run_drills(const DrillOptions& options);

}  // namespace muster::cli::drill
