#include "core/spec/unsupported.hpp"

#include "core/spec/well_known.hpp"

namespace muster::core {
namespace {

struct Row {
  const char* path;
  bool (*used)(const JobSpec&);
};

// A line a feature: it goes when the feature comes.
constexpr Row kRows[] = {
    {"spec.template.spec.restartPolicy",
     [](const JobSpec& s) { return s.pod.restart_policy == "OnFailure"; }},
    {"spec.template.spec.initContainers",
     [](const JobSpec& s) { return !s.pod.init_containers.empty(); }},
    {"spec.template.spec.containers[1]",
     [](const JobSpec& s) { return s.pod.containers.size() > 1; }},
    {"spec.template.spec.activeDeadlineSeconds",
     [](const JobSpec& s) { return s.pod.active_deadline_s.has_value(); }},
};

}  // namespace

Violations unsupported_fields(const JobSpec& spec) {
  Violations found;
  for (const Row& row : kRows)
    if (row.used(spec)) found.forbidden(row.path, kNotSupported);
  return found;
}

}  // namespace muster::core
