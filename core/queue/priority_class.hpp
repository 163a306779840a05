// PriorityClass: a name for a priority (scheduling.k8s.io/v1). Besides those that operators store,
// there are Kubernetes' two for the system.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

struct PriorityClass {
  int32_t value = 0;
  bool global_default = false;  // of pods without a priority and a class
  bool preempts = true;         // preemptionPolicy
  bool operator==(const PriorityClass&) const = default;
};
using PriorityClasses = std::map<std::string, PriorityClass>;  // by name, without the system's

constexpr int32_t kPriorityClassMax = 1'000'000'000;  // of those that operators store
constexpr std::string_view kSystemPrefix = "system-";

// The class of this name, one of the system's included; nothing: there is none.
std::optional<PriorityClass> priority_class(const PriorityClasses& classes,
                                            const std::string& name);
// The default of all pods: of several classes the one with the lowest value, as in Kubernetes.
std::optional<PriorityClass> default_class(const PriorityClasses& classes);

}  // namespace muster::core
