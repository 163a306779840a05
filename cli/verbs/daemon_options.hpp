// Options of `muster coordinator` and `muster agent`, from their settings.
//
// The error for a wrong value names its source: the flag, the variable, or file and line.
#pragma once

#include "base/result.hpp"
#include "cli/verbs/options.hpp"
#include "client/settings/config.hpp"

namespace muster::cli {

Result<CoordinatorOptions> coordinator_options(const Settings& settings);
Result<AgentOptions> agent_options(const Settings& settings);

}  // namespace muster::cli
