#include "core/job/fold/restored.hpp"

#include <algorithm>

namespace muster::core {

uint32_t restored_base(Millis now_ms) {
  constexpr Millis kYear2020Ms = 1'577'836'800'000;
  return static_cast<uint32_t>(std::max<Millis>(0, now_ms - kYear2020Ms) / 1000);
}

JobState restored(JobState state, bool indexed, uint32_t base) {
  if (indexed) {
    state.attempt_floor = state.attempt_max = std::max(state.attempt_max, base);
    state.attempts.clear();  // all start at the floor
  } else {
    state.next_number = std::max(state.next_number, base);
  }
  std::map<PodKey, Pod> open;
  for (auto& [key, pod] : state.open) {
    if (!pod.bound()) {
      if (indexed) {
        uint32_t& next = state.attempts.try_emplace(key.index, state.attempt_floor).first->second;
        pod.key.attempt = next++;
        state.attempt_max = std::max(state.attempt_max, next);
      } else {
        pod.key.index = state.next_number++;
      }
    }
    open.emplace(pod.key, std::move(pod));
  }
  state.open = std::move(open);
  return state;
}

}  // namespace muster::core
