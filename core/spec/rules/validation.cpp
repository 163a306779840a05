#include "core/spec/rules/validation.hpp"

#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/limit_signal.hpp"
#include "core/spec/fields/process_settings.hpp"
#include "core/spec/fields/selector.hpp"
#include "core/spec/rules/begin.hpp"
#include "core/spec/rules/retry_steps.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/well_known.hpp"

namespace muster::core {
namespace {

constexpr int32_t kParallelismMax = 100'000;  // of an Indexed job
constexpr int32_t kMaxFailedIndexesMax = 100'000;
constexpr int32_t kHighCompletions =
    100'000;  // above this, the next two limits apply with backoffLimitPerIndex
constexpr int32_t kHighParallelismMax = 10'000;
constexpr int32_t kHighMaxFailedIndexesMax = 10'000;
constexpr size_t kManagedByMax = 63;  // bytes

void validate_meta(const JobMeta& meta, Violations& found) {
  // The prefix may end in a dash, because five characters follow it in the name.
  if (!meta.generate_name.empty())
    for (std::string& reason : dns_subdomain_errors(meta.generate_name + "x"))
      found.invalid("metadata.generateName", meta.generate_name, std::move(reason));
  if (meta.name.empty()) {
    found.required("metadata.name", "name or generateName is required");
  } else {
    for (std::string& reason : dns_subdomain_errors(meta.name))
      found.invalid("metadata.name", meta.name, std::move(reason));
  }
  if (meta.ns.empty()) {
    found.required("metadata.namespace");
  } else {
    for (std::string& reason : dns_label_errors(meta.ns))
      found.invalid("metadata.namespace", meta.ns, std::move(reason));
  }
  validate_labels("metadata.labels", meta.labels, found);
  validate_annotation_map("metadata.annotations", meta.annotations, found);
  validate_annotations(meta.annotations, found);
  validate_after(meta, found);
  if (meta.finalizers.size() > kFinalizersMax)
    found.too_many("metadata.finalizers", meta.finalizers.size(), kFinalizersMax);
  for (size_t i = 0; i < meta.finalizers.size(); ++i)
    for (std::string& reason : qualified_name_errors(meta.finalizers[i]))
      found.invalid("metadata.finalizers[" + std::to_string(i) + "]", meta.finalizers[i],
                    std::move(reason));
}

// Rows 2 to 4.
void validate_generated_selector(const JobMeta& meta, const JobSpec& spec, Violations& found) {
  if (spec.manual_selector.value_or(false)) return;
  if (meta.uid.empty()) {
    found.required("metadata.uid");
    return;
  }
  StringMap expected;
  auto expect = [&expected, &spec, &found](std::string_view key, const std::string& value) {
    std::string path = "spec.template.metadata.labels[" + std::string(key) + "]";
    auto label = spec.pod.labels.find(std::string(key));
    if (label == spec.pod.labels.end()) {
      found.required(std::move(path), "must be '" + value + "'");
    } else if (label->second != value) {
      found.invalid(std::move(path), label->second, "must be '" + value + "'");
    }
    expected.emplace(key, value);
  };
  expect(kControllerUidLabel, meta.uid);
  expect(kLegacyControllerUidLabel, meta.uid);
  expect(kJobNameLabel, meta.name);
  expect(kLegacyJobNameLabel, meta.name);
  if (spec.selector && !matches(*spec.selector, expected))
    found.invalid_object("spec.selector", "`selector` not auto-generated");
}

// Rows 5 to 12.
void validate_numbers(const JobSpec& spec, Violations& found) {
  auto nonnegative = [&found](const char* path, const auto& value) {
    if (value) found.nonnegative(path, *value);
  };
  nonnegative("spec.parallelism", spec.parallelism);
  nonnegative("spec.completions", spec.completions);
  nonnegative("spec.activeDeadlineSeconds", spec.active_deadline_s);
  nonnegative("spec.backoffLimit", spec.backoff_limit);
  nonnegative("spec.ttlSecondsAfterFinished", spec.ttl_s);
  nonnegative("spec.backoffLimitPerIndex", spec.backoff_limit_per_index);
  nonnegative("spec.maxFailedIndexes", spec.max_failed_indexes);
  if (spec.max_failed_indexes && !spec.backoff_limit_per_index)
    found.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified");
}

// Rows 13 and 14.
void validate_managed_by(const JobSpec& spec, Violations& found) {
  if (!spec.managed_by) return;
  if (spec.managed_by->empty()) {
    found.required("spec.managedBy");
  } else {
    for (std::string& reason : domain_path_errors(*spec.managed_by))
      found.invalid("spec.managedBy", *spec.managed_by, std::move(reason));
  }
  if (spec.managed_by->size() > kManagedByMax) found.too_long("spec.managedBy", kManagedByMax);
}

// Rows 16 to 22.
void validate_indexed(const JobSpec& spec, Violations& found) {
  if (!spec.completions) found.required("spec.completions", "when completion mode is Indexed");
  if (spec.parallelism && *spec.parallelism > kParallelismMax)
    found.invalid("spec.parallelism", *spec.parallelism,
                  "must be less than or equal to 100000 when completion mode is Indexed");
  const auto& most = spec.max_failed_indexes;
  if (most && spec.completions && *most > *spec.completions)
    found.invalid("spec.maxFailedIndexes", *most, "must be less than or equal to completions");
  if (most && *most > kMaxFailedIndexesMax)
    found.invalid("spec.maxFailedIndexes", *most, "must be less than or equal to 100000");
  if (!spec.backoff_limit_per_index || !spec.completions || *spec.completions <= kHighCompletions)
    return;
  constexpr const char* kLess =
      "must be less than or equal to 10000 when completions are above 100000 and used with backoff "
      "limit per index";
  if (!most)
    found.required("spec.maxFailedIndexes", "must be specified when completions is above 100000");
  if (spec.parallelism && *spec.parallelism > kHighParallelismMax)
    found.invalid("spec.parallelism", *spec.parallelism, kLess);
  if (most && *most > kHighMaxFailedIndexesMax)
    found.invalid("spec.maxFailedIndexes", *most, kLess);
}

// Rows 15 to 24.
void validate_completion_mode(const JobSpec& spec, Violations& found) {
  if (spec.completion_mode == "Indexed") {
    validate_indexed(spec, found);
  } else if (spec.completion_mode == "NonIndexed") {
    constexpr const char* kRequires = "requires indexed completion mode";
    if (spec.backoff_limit_per_index)
      found.invalid("spec.backoffLimitPerIndex", *spec.backoff_limit_per_index, kRequires);
    if (spec.max_failed_indexes)
      found.invalid("spec.maxFailedIndexes", *spec.max_failed_indexes, kRequires);
  } else {
    found.not_supported("spec.completionMode", spec.completion_mode, {"Indexed", "NonIndexed"});
  }
}

// Row 50.
void validate_replacement_policy(const JobSpec& spec, Violations& found) {
  const std::string& policy = spec.pod_replacement_policy;
  if (spec.pod_failure_policy) {
    if (policy != "Failed") found.not_supported("spec.podReplacementPolicy", policy, {"Failed"});
  } else if (policy != "Failed" && policy != "TerminatingOrFailed") {
    found.not_supported("spec.podReplacementPolicy", policy, {"Failed", "TerminatingOrFailed"});
  }
}

// Rows 52 to 54.
void validate_restart_policy(const JobSpec& spec, Violations& found) {
  const std::string path = "spec.template.spec.restartPolicy";
  const std::string& policy = spec.pod.restart_policy;
  if (policy.empty() || policy == "Always") {
    found.required(path, "valid values: \"OnFailure\", \"Never\"");
  } else if (policy != "OnFailure" && policy != "Never") {
    found.not_supported(path, policy, {"OnFailure", "Never"});
  } else if (spec.pod_failure_policy && policy == "OnFailure") {
    found.invalid(path, policy, "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

// Row 57: the last index's pod must have a valid host name.
void validate_hostname(const JobMeta& meta, const JobSpec& spec, Violations& found) {
  if (!spec.indexed() || spec.completions.value_or(0) <= 0 || meta.name.empty()) return;
  std::string hostname = meta.name + "-" + std::to_string(*spec.completions - 1);
  for (const std::string& reason : dns_label_errors(hostname))
    found.invalid(
        "metadata.name", meta.name,
        "will not able to create pod with invalid DNS label: " + hostname + ": " + reason);
}

}  // namespace

void validate_spec(const JobSpec& spec, Violations& found) {
  validate_numbers(spec, found);
  validate_managed_by(spec, found);
  validate_completion_mode(spec, found);
  validate_failure_policy(spec, found);
  validate_success_policy(spec, found);
  validate_replacement_policy(spec, found);
  validate_template(spec.pod, found);
  validate_restart_policy(spec, found);
  if (spec.selector) {
    validate_selector("spec.selector", *spec.selector, found);
  } else {
    found.required("spec.selector");
  }
  if (!spec.selector || !matches(*spec.selector, spec.pod.labels))
    found.invalid_object("spec.template.metadata.labels",
                         "`selector` does not match template `labels`");
}

Violations validate_create(const JobMeta& meta, const JobSpec& spec) {
  Violations found;
  validate_meta(meta, found);
  validate_generated_selector(meta, spec, found);
  validate_spec(spec, found);
  validate_hostname(meta, spec, found);
  validate_mpi(meta.annotations, spec, found);
  validate_gang(meta.annotations, spec, found);
  validate_each(meta.annotations, spec, found);
  validate_restart(meta.annotations, spec, found);
  validate_disruptions_max(meta.annotations, spec, found);
  validate_retry_steps(meta.annotations, spec, found);
  validate_begin(meta.annotations, found);
  validate_process_settings(meta.annotations, spec, found);
  validate_limit_signal(meta.annotations, spec, found);
  validate_indexes(meta.annotations, spec, found);
  validate_inputs(meta.annotations, spec, found);
  return found;
}

}  // namespace muster::core
