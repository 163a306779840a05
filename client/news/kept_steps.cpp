#include "client/news/kept_steps.hpp"

#include "base/text/comma_list.hpp"
#include "client/connect/objects.hpp"
#include "client/news/attempts.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/rules/retry_steps.hpp"

#include <algorithm>
#include <vector>

namespace muster::cli {
namespace {

constexpr size_t kQueryMax = 2'000;  // characters; a longer set of indexes is not in the query

// The annotation with the steps from `first` on; without any, there is none.
void leave_steps(Json& annotations, std::string_view key, size_t first) {
  const std::vector<std::string> all = split_at_commas(annotations[key].get<std::string>());
  std::string rest;
  for (size_t i = first; i < all.size(); ++i) rest += (rest.empty() ? "" : ",") + all[i];
  if (rest.empty())
    annotations.erase(std::string(key));
  else
    annotations[key] = rest;
}

void set_memory(Json& containers, const std::string& memory) {
  for (Json& container : containers) {
    if (text_at(container, {"resources", "limits", "memory"}).empty()) continue;
    container["resources"]["limits"]["memory"] = memory;
    if (!text_at(container, {"resources", "requests", "memory"}).empty())
      container["resources"]["requests"]["memory"] = memory;
  }
}

}  // namespace

Status keep_steps(ApiClient& client, const std::string& ns, const Json& job,
                  const std::string& indexes, Json& round) {
  Json& annotations = round["metadata"]["annotations"];
  core::StringMap lists;
  for (const std::string_view key : {core::kRetryMemoryKey, core::kRetryTimeKey})
    if (const std::string list = text_at(annotations, {key.data()}); !list.empty())
      lists.emplace(key, list);
  if (lists.empty()) return Nothing{};
  const core::RetrySteps steps = core::retry_steps(lists);
  size_t memory = 0, time = 0;  // steps that some attempt had
  const core::IndexSet wanted = index_set(indexes);
  const std::string query =
      "failed=true" + (indexes.size() > kQueryMax ? "" : "&index=" + url_encoded(indexes));
  Status read =
      each_attempt(client, ns, text_at(job, {"metadata", "name"}), query, [&](const Json& attempt) {
        if (!wanted.contains(static_cast<uint32_t>(number_at(attempt, {"index"})))) return;
        const auto had = std::ranges::find(steps.memory, text_at(attempt, {"memory"}));
        if (had != steps.memory.end())
          memory = std::max(memory, static_cast<size_t>(had - steps.memory.begin()) + 1);
        const auto ran = std::ranges::find(steps.time_s, number_at(attempt, {"timeLimitSeconds"}));
        if (ran != steps.time_s.end())
          time = std::max(time, static_cast<size_t>(ran - steps.time_s.begin()) + 1);
      });
  if (!read) return read;
  Json& pod = round["spec"]["template"]["spec"];
  if (memory > 0) {
    set_memory(pod["containers"], steps.memory[memory - 1]);
    leave_steps(annotations, core::kRetryMemoryKey, memory);
  }
  if (time > 0) {
    pod["activeDeadlineSeconds"] = steps.time_s[time - 1];
    leave_steps(annotations, core::kRetryTimeKey, time);
  }
  return Nothing{};
}

}  // namespace muster::cli
