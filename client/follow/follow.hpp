// Follow: follows one job to its end and summarizes it. Shared by both forms of `muster run`;
// `muster wait` prints the same details of a failed job.
#pragma once

#include "client/connect/http.hpp"
#include "client/connect/objects.hpp"
#include "client/follow/pod_output.hpp"
#include "client/follow/signals.hpp"
#include "client/news/failures.hpp"
#include "client/terminal/color.hpp"
#include "client/terminal/json.hpp"

#include <functional>
#include <optional>
#include <string>

namespace muster::cli {

// interrupted: by a signal, or the reader of standard output has left.
enum class Followed { complete, failed, interrupted, timeout, gone, unreachable };

struct Follow {
  Followed how = Followed::unreachable;
  Json job;     // as last seen
  Error error;  // if gone or unreachable
};

struct FollowWishes {
  std::optional<Millis> timeout_ms{};
  When color = When::automatic;
  PodOutput* output = nullptr;              // null: do not show what pods print
  std::function<bool()> stopped = nullptr;  // the local agent is gone: end as unreachable
  KnownObject known{};                      // of the job, if its object was seen before
  bool quiet = false;                       // no progress, no failures
  // Called at each look with what erases the progress line, so that it can print.
  std::function<void(const std::function<void()>& clear)> also = nullptr;
  std::function<bool(const Json&)> enough = nullptr;  // end as complete, whatever the job does
};

// Shows progress, what pods print, and the first failure of each kind, until the job ends, a signal
// arrives, nobody reads standard output any more (if the verb called outlive_reader()), the timeout
// expires or the coordinator stays unreachable. The coordinator may restart meanwhile.
Follow follow(ApiClient& client, Signals& signals, const std::string& ns, const std::string& name,
              const FollowWishes& wishes);

// Why following ended before the job, for Followed::interrupted and timeout.
std::string stop_text(Followed how);

// Where to find more, in one line.
using Hint = std::function<std::string(const Failures& failures)>;

// Counts, duration and failed indexes; for a failed job also the rule and the first failures.
std::string summary_text(ApiClient& client, const std::string& ns, const Json& job,
                         const Paint& paint, const Hint& hint);

// The lines of a failed job's summary below the first.
std::string failure_details(ApiClient& client, const std::string& ns, const Json& job,
                            const Hint& hint);

}  // namespace muster::cli
