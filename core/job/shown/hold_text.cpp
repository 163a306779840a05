#include "core/job/shown/hold_text.hpp"

namespace muster::core {

std::string hold_text(const JobHeld& hold) {
  return hold.by + " holds the job" + (hold.reason.empty() ? "" : ": " + hold.reason) +
         (hold.by_operator ? "; only operators can release it" : "");
}

std::string priority_text(const PrioritySet& set) {
  return set.by + " set the priority of its pods to " + std::to_string(set.priority.value_or(0));
}

}  // namespace muster::core
