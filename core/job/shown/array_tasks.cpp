#include "core/job/shown/array_tasks.hpp"

#include "core/spec/values/inputs.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace muster::core {

std::vector<uint32_t> array_tasks(const JobObject& job) {
  const bool array = std::ranges::any_of(job.spec.pod.containers, [](const Container& one) {
    return std::ranges::any_of(one.env,
                               [](const EnvVar& v) { return v.name == "SLURM_ARRAY_TASK_ID"; });
  });
  const auto inputs = job.meta.annotations.find(std::string(kInputsKey));
  std::vector<uint32_t> tasks;
  if (!array || inputs == job.meta.annotations.end()) return tasks;
  const auto table = InputTable::of(inputs->second);
  for (size_t i = 0; table && i < table->size(); ++i) {
    const auto row = table->row(i);
    uint32_t number = 0;
    if (!row || row->empty()) return {};
    const std::string& text = row->front();
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
      return {};
    tasks.push_back(number);
  }
  return tasks;
}

}  // namespace muster::core
