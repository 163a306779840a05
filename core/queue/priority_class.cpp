#include "core/queue/priority_class.hpp"

namespace muster::core {

std::optional<PriorityClass> priority_class(const PriorityClasses& classes,
                                            const std::string& name) {
  if (name == "system-cluster-critical") return PriorityClass{2'000'000'000};
  if (name == "system-node-critical") return PriorityClass{2'000'001'000};
  const auto found = classes.find(name);
  return found == classes.end() ? std::nullopt : std::optional(found->second);
}

std::optional<PriorityClass> default_class(const PriorityClasses& classes) {
  std::optional<PriorityClass> lowest;
  for (const auto& [name, one] : classes)
    if (one.global_default && (!lowest || one.value < lowest->value)) lowest = one;
  return lowest;
}

}  // namespace muster::core
