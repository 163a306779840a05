// Near miss: what may have been meant by a name that does not exist: a job in place of a pod, or an
// index or a task as Slurm writes them, such as sweep_7.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/settings/target.hpp"

#include <string>

namespace muster::cli {

// Whether the verb takes parts of jobs, by --index and --task.
enum class Parts { none, taken };

// Adds what exists and may have been meant to an error that says that `kind`/`name` does not exist;
// leaves any other error as it is. Asks the coordinator at most twice.
Error with_near_miss(ApiClient& client, const std::string& ns, Kind kind, const std::string& name,
                     Error error, Parts parts = Parts::taken);

}  // namespace muster::cli
