#include "core/spec/rules/update.hpp"

#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/rules/begin.hpp"
#include "core/spec/rules/validation.hpp"
#include "core/spec/values/inputs.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace muster::core {
namespace {

constexpr const char* kImmutable = "field is immutable";

// Whether the template's scheduling directives and resources may change: only while no pod can be
// running.
bool template_is_open(const JobSpec& old_spec, const ObservedStatus& observed) {
  return old_spec.suspend.value_or(false) &&
         (!observed.start_time_present || (observed.suspended_condition && observed.active == 0));
}

void take_resources(std::vector<Container>& to, const std::vector<Container>& from) {
  if (to.size() != from.size()) return;
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i].name == from[i].name) to[i].resources = from[i].resources;
}

void validate_completions(const JobSpec& old_spec, const JobSpec& new_spec, Violations& found) {
  if (old_spec.completions == new_spec.completions) return;
  if (!new_spec.indexed()) {
    if (new_spec.completions) {
      found.invalid("spec.completions", *new_spec.completions, kImmutable);
    } else {
      found.invalid_object("spec.completions", kImmutable);
    }
  } else if (new_spec.completions && new_spec.completions != new_spec.parallelism) {
    found.invalid("spec.completions", *new_spec.completions,
                  "can only be modified in tandem with spec.parallelism");
  }
}

void validate_template_change(const PodTemplate& old_pod, const PodTemplate& new_pod, bool open,
                              Violations& found) {
  if (!open) {
    if (old_pod != new_pod) found.invalid_object("spec.template", kImmutable);
    return;
  }
  // Reset everything that may change to its old value; a remaining difference is forbidden.
  // Metadata may change freely.
  PodTemplate rest = new_pod;
  rest.labels = old_pod.labels;
  rest.annotations = old_pod.annotations;
  rest.finalizers = old_pod.finalizers;
  rest.node_selector = old_pod.node_selector;
  rest.node_affinity = old_pod.node_affinity;
  rest.tolerations = old_pod.tolerations;
  rest.scheduling_gates = old_pod.scheduling_gates;
  take_resources(rest.containers, old_pod.containers);
  take_resources(rest.init_containers, old_pod.init_containers);
  if (rest != old_pod) found.invalid_object("spec.template.spec", kImmutable);
}

// The finalizers of the deletion itself are shown to clients, which send them back.
void validate_finalizers(const JobMeta& old_meta, const JobMeta& new_meta, Violations& found) {
  const auto& had = old_meta.finalizers;
  std::set<std::string> added;
  for (const std::string& name : new_meta.finalizers)
    if (name != kForegroundFinalizer && name != kOrphanFinalizer &&
        std::find(had.begin(), had.end(), name) == had.end())
      added.insert(name);
  if (added.empty()) return;
  std::string names;
  for (const std::string& name : added) names += (names.empty() ? "\"" : ", \"") + name + "\"";
  found.forbidden("metadata.finalizers",
                  "no new finalizers can be added if the object is being deleted, found new "
                  "finalizers []string{" +
                      names + "}");
}

}  // namespace

Violations validate_update(const JobMeta& old_meta, const JobSpec& old_spec,
                           const JobMeta& new_meta, const JobSpec& new_spec,
                           const ObservedStatus& observed) {
  Violations found = validate_create(new_meta, new_spec);
  if (old_meta.name != new_meta.name) found.invalid("metadata.name", new_meta.name, kImmutable);
  if (old_meta.ns != new_meta.ns) found.invalid("metadata.namespace", new_meta.ns, kImmutable);
  if (old_meta.uid != new_meta.uid) found.invalid("metadata.uid", new_meta.uid, kImmutable);

  if (observed.deleting) validate_finalizers(old_meta, new_meta, found);

  for (const std::string_view key : {kIndexesKey, kFenceAfterKey, kInputsKey, kInputsFileKey,
                                     kAfterKey, kRetryMemoryKey, kRetryTimeKey}) {
    auto value = [key](const JobMeta& meta) {
      auto set = meta.annotations.find(std::string(key));
      return set == meta.annotations.end() ? std::string_view() : std::string_view(set->second);
    };
    if (value(old_meta) == value(new_meta)) continue;
    const std::string path = "metadata.annotations[" + std::string(key) + "]";
    if (key == kAfterKey && !new_meta.annotations.contains(std::string(key)))
      continue;  // the job no longer waits
    if (key == kInputsKey)
      found.invalid_object(path, kImmutable);
    else
      found.invalid(path, value(new_meta), kImmutable);
  }

  validate_begin_change(old_meta.annotations, new_meta.annotations, observed.start_time_present,
                        found);
  validate_completions(old_spec, new_spec, found);
  if (old_spec.selector != new_spec.selector) found.invalid_object("spec.selector", kImmutable);
  validate_template_change(old_spec.pod, new_spec.pod, template_is_open(old_spec, observed), found);
  if (old_spec.completion_mode != new_spec.completion_mode)
    found.invalid("spec.completionMode", new_spec.completion_mode, kImmutable);
  if (old_spec.pod_failure_policy != new_spec.pod_failure_policy)
    found.invalid_object("spec.podFailurePolicy", kImmutable);
  if (old_spec.backoff_limit_per_index != new_spec.backoff_limit_per_index) {
    if (new_spec.backoff_limit_per_index) {
      found.invalid("spec.backoffLimitPerIndex", *new_spec.backoff_limit_per_index, kImmutable);
    } else {
      found.invalid_object("spec.backoffLimitPerIndex", kImmutable);
    }
  }
  if (old_spec.managed_by != new_spec.managed_by) {
    if (new_spec.managed_by) {
      found.invalid("spec.managedBy", *new_spec.managed_by, kImmutable);
    } else {
      found.invalid_object("spec.managedBy", kImmutable);
    }
  }
  if (old_spec.success_policy != new_spec.success_policy)
    found.invalid_object("spec.successPolicy", kImmutable);
  return found;
}

}  // namespace muster::core
