#include "core/spec/rules/retry_steps.hpp"

#include "core/spec/fields/annotations.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/quantity.hpp"

#include <algorithm>
#include <string_view>

namespace muster::core {
namespace {

constexpr const char* kMemory = "memory";
constexpr int64_t kTimeMax = INT32_MAX;             // seconds, as of activeDeadlineSeconds
constexpr int64_t kMemoryMilliMax = INT64_MAX / 2;  // thousandths of a byte

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t from = 0, comma = 0; comma != std::string_view::npos; from = comma + 1) {
    comma = text.find(',', from);
    parts.emplace_back(text.substr(from, comma - from));
  }
  return parts;
}

std::vector<std::string> list_of(const StringMap& annotations, std::string_view key) {
  const auto it = annotations.find(std::string(key));
  return it == annotations.end() ? std::vector<std::string>() : split(it->second);
}

// Whole bytes, in thousandths; absent: no positive quantity.
std::optional<int64_t> bytes_milli(const std::string& text) {
  const auto milli = parse_quantity_milli(text);
  if (!milli || *milli < 1000 || *milli > kMemoryMilliMax) return std::nullopt;
  return *milli;
}

std::optional<int64_t> seconds(const std::string& text) {
  const auto span = parse_duration(text);
  if (!span || *span <= 0 || *span > kTimeMax * 1000) return std::nullopt;
  return (*span + 999) / 1000;
}

// The container whose memory the steps raise: the only one with a memory limit. Null: none or
// several.
template <class Containers>
auto* limited(Containers& containers) {
  using Pointer = decltype(&containers[0]);
  Pointer found = nullptr;
  for (auto& container : containers) {
    if (!container.resources.limits.contains(kMemory)) continue;
    if (found) return Pointer{nullptr};
    found = &container;
  }
  return found;
}

struct Check {
  const StringMap& annotations;
  const JobSpec& spec;
  std::string_view key;
  Violations& found;

  std::string path() const { return "metadata.annotations[" + std::string(key) + "]"; }
  std::string text() const { return annotations.at(std::string(key)); }
  bool present() const { return annotations.contains(std::string(key)); }
  void wrong(std::string detail) { found.invalid(path(), text(), std::move(detail)); }

  // Whether the job can have steps at all.
  bool possible() {
    if (!spec.backoff_limit_per_index) return wrong("requires spec.backoffLimitPerIndex"), false;
    const JobAnnotations own = read_annotations(annotations);
    if ((!own.gang && !own.mpi) || own.restart_gang) return true;
    wrong("requires " + std::string(kRestartKey) +
          ": \"gang\", since the pods of this job start together (" + std::string(kGangKey) +
          " or " + std::string(kMpiKey) + ")");
    return false;
  }

  // `first`: the template's limit, called `limit`. `value_of` reads a step.
  template <class F>
  void ascend(int64_t first, const std::string& limit, F value_of, const std::string& kind) {
    const std::vector<std::string> parts = split(text());
    if (parts.size() > kRetryStepsMax)
      return wrong("has " + std::to_string(parts.size()) + " steps; at most " +
                   std::to_string(kRetryStepsMax) + " are possible");
    int64_t before = first;
    std::string shown = limit;
    for (const std::string& part : parts) {
      const auto value = value_of(part);
      if (!value) return wrong("`" + part + "`: must be " + kind);
      if (*value <= before) return wrong("`" + part + "`: must be more than " + shown);
      before = *value;
      shown = "the step before it, " + part;
    }
  }
};

}  // namespace

RetrySteps retry_steps(const StringMap& annotations) {
  RetrySteps steps;
  steps.memory = list_of(annotations, kRetryMemoryKey);
  const bool readable = std::ranges::all_of(
      steps.memory, [](const auto& one) { return bytes_milli(one).has_value(); });
  if (!readable || steps.memory.size() > kRetryStepsMax) steps.memory.clear();
  for (const std::string& one : list_of(annotations, kRetryTimeKey)) {
    const auto time = seconds(one);
    if (!time || steps.time_s.size() == kRetryStepsMax) {
      steps.time_s.clear();
      break;
    }
    steps.time_s.push_back(*time);
  }
  return steps;
}

void validate_retry_steps(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  Check memory{annotations, spec, kRetryMemoryKey, found};
  if (memory.present() && memory.possible()) {
    const Container* const container = limited(spec.pod.containers);
    if (!container)
      memory.wrong(
          "requires a memory limit of exactly one container, "
          "spec.template.spec.containers[].resources.limits.memory");
    else if (spec.pod.restart_policy == "OnFailure")
      memory.wrong("requires restartPolicy \"Never\": \"OnFailure\" restarts a container in place");
    else if (const std::string& limit = container->resources.limits.at(kMemory);
             const auto first = bytes_milli(limit))
      memory.ascend(*first, "the memory limit, " + limit, bytes_milli,
                    "an amount of memory such as 8Gi");
  }
  Check time{annotations, spec, kRetryTimeKey, found};
  if (time.present() && time.possible()) {
    const auto& limit = spec.pod.active_deadline_s;
    if (!limit)
      time.wrong("requires a time limit of the pod, spec.template.spec.activeDeadlineSeconds");
    else
      time.ascend(*limit, "the pod's time limit, " + duration_text(*limit * 1000), seconds,
                  "a duration such as 2h, at most " + std::to_string(kTimeMax) + "s");
  }
}

std::optional<std::string> memory_of(const JobObject& object, Steps steps) {
  if (steps.memory > 0) {
    const auto all = retry_steps(object.meta.annotations).memory;
    if (!all.empty()) return all[std::min<size_t>(steps.memory, all.size()) - 1];
  }
  const Container* const container = limited(object.spec.pod.containers);
  if (!container) return std::nullopt;
  return container->resources.limits.at(kMemory);
}

std::optional<int64_t> time_limit_of(const JobObject& object, Steps steps) {
  if (steps.time > 0) {
    const auto all = retry_steps(object.meta.annotations).time_s;
    if (!all.empty()) return all[std::min<size_t>(steps.time, all.size()) - 1];
  }
  return object.spec.pod.active_deadline_s;
}

void raise(JobObject& object, Steps steps) {
  if (steps.memory > 0) {
    const auto memory = memory_of(object, steps);
    if (Container* const container = limited(object.spec.pod.containers); container && memory) {
      container->resources.limits[kMemory] = *memory;
      if (auto asked = container->resources.requests.find(kMemory);
          asked != container->resources.requests.end())
        asked->second = *memory;
    }
  }
  if (steps.time > 0) object.spec.pod.active_deadline_s = time_limit_of(object, steps);
}

}  // namespace muster::core
