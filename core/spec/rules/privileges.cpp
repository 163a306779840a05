#include "core/spec/rules/privileges.hpp"

namespace muster::core {

std::optional<std::string> needs_privilege(const JobSpec& spec, int32_t priority_max) {
  constexpr const char* kPath = "spec.template.spec.";
  const PodTemplate& pod = spec.pod;
  // All classes that exist are the system's (api/kube/objects/refused_fields.cpp).
  if (!pod.priority_class_name.empty())
    return kPath + ("priorityClassName: " + pod.priority_class_name) +
           " is for operators' jobs; leave it out";
  const int32_t priority = pod.priority.value_or(0);
  if (priority > priority_max)
    return kPath + ("priority: " + std::to_string(priority)) + " is above the maximum for users, " +
           std::to_string(priority_max) + " (--user-priority-max); an operator may set more";
  return std::nullopt;
}

}  // namespace muster::core
