#include "core/job/shown/hold_text.hpp"

namespace muster::core {

std::string hold_text(const JobHeld& hold) {
  return hold.by + " holds the job" + (hold.reason.empty() ? "" : ": " + hold.reason) +
         (hold.by_operator ? "; only operators can release it" : "");
}

std::string overrides_text(const OverridesSet& set) {
  return "set by " + set.by + ": " + overrides_words(set.overrides);
}

}  // namespace muster::core
