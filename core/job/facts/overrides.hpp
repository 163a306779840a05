// Overrides: what operators set for a job's pods in place of what its object says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::core {

// What is absent is as the object says.
struct Overrides {
  std::optional<int32_t> priority{};
  std::optional<std::string> queue{};
  std::optional<int64_t> time_limit_s{};  // of a pod, from its first process; 0: none
  bool operator==(const Overrides&) const = default;
  bool any() const { return priority || queue || time_limit_s; }
};

// "priority 100, queue gpu, time limit 2h"; "nothing"
std::string overrides_words(const Overrides& overrides);

}  // namespace muster::core
