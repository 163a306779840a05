// Trace: the way of a pod, from its job's acceptance to the count of its end, with the time of each
// step. Pure: made from an attempt as the API has it (docs/api.md, `attempts`).
//
// Only what was recorded is a step. All times are on the coordinator's clock, since a node reports
// starts and ends as ages; these two are late by up to the delay of the report. So a step of the
// node may seem to precede the one before it, and then has no time since that one.
#pragma once

#include "base/clock.hpp"
#include "client/terminal/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct TraceStep {
  std::string name;  // "accepted", "created", "bound", "started", "restarted", "stopping", "ended",
                     // "counted"
  std::string at;    // the instant, as the API has it; empty: there was none, or it is not known
  bool by_node = false;              // as its report said; else recorded by the coordinator
  std::string what;                  // "on n1", "exit 1"; may be empty
  std::optional<Millis> since_ms{};  // since the step before it
  bool precedes = false;             // seems to precede the step before it
};
using TraceSteps = std::vector<TraceStep>;

// `job_created`: as the API has it; empty: unknown.
TraceSteps trace_steps(const Json& attempt, const std::string& job_created);

// A header and a row for each step.
std::vector<std::vector<std::string>> trace_rows(const TraceSteps& steps);
// A header and a row for each attempt, in short.
std::vector<std::vector<std::string>> short_rows(const std::vector<Json>& attempts);
// Objects with `step`, `at`, `sinceSeconds`, `by` and `what`, as far as they are known.
Json trace_json(const TraceSteps& steps);

}  // namespace muster::cli
