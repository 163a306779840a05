// Forecast: how a canary must come out, computed by the rules of core/ themselves. Pure.
//
// The same job is played in virtual time: what an attempt does is known (canary.hpp), and attempts
// that a fault disrupted, or that their node gave back unstarted, end as such. What decide() makes
// of that is the prediction which the judge compares with the coordinator's answer.
#pragma once

#include "cli/drill/canary.hpp"
#include "core/index_set.hpp"

#include <map>
#include <string>

namespace muster::cli::drill {

// An attempt that did not end by itself.
enum class Disturbance {
  disrupted,  // DisruptionTarget: its node or keeper was lost
  returned,   // its node gave it back before it started; not in the history
};
using Disturbances = std::map<PodKey, Disturbance>;

struct Forecast {
  struct Attempt {
    std::string counted;  // as the coordinator's history spells it: "succeeded", "failed", …
    int32_t code = 0;
    Millis delay_ms = 0;  // at least this long after the end of the attempt before it
    bool operator==(const Attempt&) const = default;
  };
  core::IndexSet succeeded, failed;  // indexes
  uint64_t failed_pods = 0;          // status.failed
  std::string condition;             // "Complete" or "Failed"; empty: it does not end
  std::map<PodKey, Attempt> attempts;
};

Forecast forecast(const Canary& canary, const Disturbances& disturbances = {});

}  // namespace muster::cli::drill
