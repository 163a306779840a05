// Forecast: how a canary must come out, computed with the rules in core/. Pure.
//
// It runs the same job in virtual time. What an attempt does is known (canary.hpp); attempts that a
// fault disrupted, or that their node returned unstarted, end that way. The outcome according to
// decide() is the prediction that the judge compares with the coordinator's answer.
#pragma once

#include "core/index_set.hpp"
#include "drill/proof/canary.hpp"

#include <map>
#include <string>

namespace muster::cli::drill {

// An attempt that did not end by itself.
enum class Disturbance {
  disrupted,  // DisruptionTarget: its node or keeper was lost
  returned,   // its node returned it before it started; not in the history
};
using Disturbances = std::map<PodKey, Disturbance>;

struct Forecast {
  struct Attempt {
    std::string counted;  // as the coordinator's history spells it: "succeeded", "failed", …
    int32_t code = 0;
    Millis delay_ms = 0;  // minimum time after the end of the previous attempt
    bool operator==(const Attempt&) const = default;
  };
  core::IndexSet succeeded, failed;  // indexes
  uint64_t failed_pods = 0;          // status.failed
  std::string condition;             // "Complete" or "Failed"; empty: it does not finish
  std::map<PodKey, Attempt> attempts;
};

Forecast forecast(const Canary& canary, const Disturbances& disturbances = {});

}  // namespace muster::cli::drill
