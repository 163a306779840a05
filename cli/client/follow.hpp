// Following one job to its end, and what is said about it then. Shared by both forms of `muster
// run`; `muster wait` says the same of a job that failed.
#pragma once

#include "cli/client/failures.hpp"
#include "cli/client/http.hpp"
#include "cli/client/objects.hpp"
#include "cli/client/pod_output.hpp"
#include "cli/client/signals.hpp"
#include "cli/output/color.hpp"
#include "cli/output/json.hpp"

#include <functional>
#include <string>

namespace muster::cli {

enum class Followed { complete, failed, interrupted, timeout, gone, unreachable };

struct Follow {
  Followed how = Followed::unreachable;
  Json job;     // as last seen
  Error error;  // of gone and unreachable
};

struct FollowWishes {
  Millis timeout_ms = 0;  // 0: none
  When color = When::automatic;
  PodOutput* output = nullptr;              // null: what pods print is not shown
  std::function<bool()> stopped = nullptr;  // what served it here has left; ends it as unreachable
};

// Shows progress, what pods print, and the first failure of each kind, until the job has ended, a
// signal came, the time has passed or the coordinator stayed away. It may restart meanwhile.
Follow follow(ApiClient& client, Signals& signals, const std::string& ns, const std::string& name,
              const FollowWishes& wishes);

// Says where to read on: one line.
using Hint = std::function<std::string(const Failures& failures)>;

// Counts, duration, failed indexes; for a failed job by which rule, and the first failures.
std::string summary_text(ApiClient& client, const std::string& ns, const Json& job,
                         const Paint& paint, const Hint& hint);

// Of a failed job, below its first line.
std::string failure_details(ApiClient& client, const std::string& ns, const Json& job,
                            const Hint& hint);

}  // namespace muster::cli
