// muster logs -l: what all pods with certain labels print, each line with its pod.
#pragma once

#include "cli/verbs/show/logs_options.hpp"
#include "client/connect/http.hpp"

namespace muster::cli {

// With -f, continues until the jobs of all these pods are over, and follows pods that start
// meanwhile too. The coordinator may restart meanwhile. Returns the exit code.
int selected_logs(const LogsOptions& options, ApiClient& client);

}  // namespace muster::cli
