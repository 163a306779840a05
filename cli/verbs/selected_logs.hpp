// muster logs -l: what all pods with some labels print, each line with its pod.
#pragma once

#include "cli/client/http.hpp"
#include "cli/settings/options.hpp"

namespace muster::cli {

// With -f until the jobs of all these pods are over; pods that start meanwhile are followed, too.
// The coordinator may restart meanwhile. Returns the exit code.
int selected_logs(const LogsOptions& options, ApiClient& client);

}  // namespace muster::cli
