#include "core/spec/rules/warnings.hpp"

namespace muster::core {

namespace {

// Above both, Kubernetes does not promise to track the indexes.
constexpr int32_t kManyCompletions = 100'000;
constexpr int32_t kManyAtOnce = 10'000;
constexpr size_t kLabelMax = 63;  // characters of a DNS label

std::vector<std::string> spec_warnings(const JobSpec& spec) {
  bool large = spec.indexed() && spec.completions.value_or(0) > kManyCompletions &&
               spec.parallelism.value_or(0) > kManyAtOnce;
  if (!large) return {};
  return {
      "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism "
      "higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number "
      "of indexes fail"};
}

}  // namespace

std::vector<std::string> creation_warnings(const JobMeta& meta, const JobSpec& spec) {
  std::vector<std::string> warnings;
  // The name is known to be a DNS subdomain; a label is shorter and has no dots.
  std::string why;
  if (meta.name.size() > kLabelMax) why = "must be no more than 63 characters";
  if (meta.name.find('.') != std::string::npos)
    why += std::string(why.empty() ? "" : " ") + "must not contain dots";
  if (!why.empty())
    warnings.push_back(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
        "behavior; a DNS label is recommended: [" +
        why + "]");
  for (std::string& warning : spec_warnings(spec)) warnings.push_back(std::move(warning));
  return warnings;
}

std::vector<std::string> update_warnings(const JobMeta& old_meta, const JobMeta& meta,
                                         const JobSpec& spec) {
  if (old_meta.generation == meta.generation) return {};
  return spec_warnings(spec);
}

}  // namespace muster::core
