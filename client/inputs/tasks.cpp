#include "client/inputs/tasks.hpp"

#include "base/text/comma_list.hpp"
#include "client/settings/submitter.hpp"
#include "core/spec/values/inputs.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster::cli {
namespace {

constexpr const char* kTaskVariable = "SLURM_ARRAY_TASK_ID";

bool is_array(const Json& job) {
  for (const Json& container : at(job, {"spec", "template", "spec", "containers"}))
    for (const Json& variable : at(container, {"env"}))
      if (text_at(variable, {"name"}) == kTaskVariable) return true;
  return false;
}

// Adds variables to the manifest of a command; those that it has already stay.
void add_variables(Json& manifest,
                   const std::vector<std::pair<std::string, std::string>>& variables) {
  Json& env = manifest["spec"]["template"]["spec"]["containers"][0]["env"];
  const auto there = [&env](const std::string& name) {
    return std::ranges::any_of(env, [&name](const Json& one) { return one["name"] == name; });
  };
  for (const auto& [name, value] : variables)
    if (!there(name)) env.push_back({{"name", name}, {"value", value}});
}

// How lines of the coordinator with a set begin, and how those about tasks.
struct SetHead {
  std::string_view indexes, tasks;
};
constexpr SetHead kSetHeads[] = {{"failed indexes: ", "failed tasks: "},
                                 {"cancelled indexes: ", "cancelled tasks: "}};

// "index 1 never ran", "indexes 1-3 never ran", and so on.
bool is_sentence(std::string_view line) {
  const size_t set = line.find(' ') + 1, rest = line.find(' ', set);
  return (line.starts_with("index ") || line.starts_with("indexes ")) &&
         rest != std::string_view::npos && line.substr(rest).starts_with(" never ran");
}

}  // namespace

Result<core::IndexSet> typed_set(const std::string& text) {
  core::IndexSet all;
  for (std::string part : split_at_commas(text)) {
    if (const size_t dash = part.find('-');
        dash != std::string::npos && dash > 0 && part.substr(0, dash) == part.substr(dash + 1))
      part.resize(dash);  // "3-3", as --array takes it
    const auto one = core::IndexSet::parse_strict(part, core::kAnyIndex);
    if (!one.ok()) return invalid("`" + text + "` is not a set of numbers such as 3,7-9");
    all.insert_all(*one);
  }
  return all;
}

void Tasks::add(uint32_t index, std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  index_of_.emplace(number, index);
  number_of_.emplace(index, number);
}

Result<Tasks> Tasks::of_ranges(const std::string& ranges) {
  const auto table = core::InputTable::of(core::with_ranges(ranges));
  if (!table) return table.error();
  Tasks tasks;
  for (uint32_t index = 0; index < table->size(); ++index)
    tasks.add(index, table->row(index)->front());
  return tasks;
}

Result<Tasks> Tasks::of(const Json& job) {
  const std::string name = "job/" + text_at(job, {"metadata", "name"});
  if (!is_array(job))
    return invalid(name + " was not submitted with --array, so it has no tasks; use --index");
  const JobInputs inputs(job);
  Tasks tasks;
  for (uint32_t index = 0; inputs.any(); ++index) {
    const auto text = inputs.of(index);
    if (!text) break;
    tasks.add(index, *text);
  }
  if (tasks.index_of_.empty())
    return invalid("the task numbers of " + name + " cannot be read on this machine; use --index");
  return tasks;
}

Result<core::IndexSet> Tasks::indexes(const std::string& tasks) const {
  const auto numbers = typed_set(tasks);
  if (!numbers.ok()) return invalid("--task: " + numbers.error().message);
  if (numbers->empty()) return invalid("--task: the set is empty");
  core::IndexSet found;
  for (const auto& [first, last] : numbers->intervals())
    for (uint64_t number = first; number <= last; ++number) {
      const auto index = index_of_.find(static_cast<uint32_t>(number));
      if (index == index_of_.end())
        return invalid("--task: there is no task " + std::to_string(number));
      found.insert(index->second);
    }
  return found;
}

std::string named_indexes(const core::IndexSet& indexes, const std::optional<Tasks>& tasks) {
  const bool one = indexes.size() == 1;
  if (tasks) return (one ? "task " : "tasks ") + tasks->numbers(indexes);
  return (one ? "index " : "indexes ") + indexes.text();
}

int64_t known_number(const std::optional<Tasks>& tasks, int64_t index) {
  return tasks ? tasks->number(index).value_or(index) : index;
}

bool names_indexes(std::string_view line) {
  return std::ranges::any_of(kSetHeads,
                             [line](const auto& one) { return line.starts_with(one.indexes); }) ||
         is_sentence(line);
}

std::string with_tasks(const std::string& line, const std::optional<Tasks>& tasks) {
  if (!tasks || !names_indexes(line)) return line;
  for (const auto& [indexes, known] : kSetHeads)
    if (line.starts_with(indexes))
      return std::string(known) + tasks->numbers(core::IndexSet::parse_lenient(
                                      line.substr(indexes.size()), core::kAnyIndex));
  const size_t set = line.find(' ') + 1, rest = line.find(' ', set);
  return named_indexes(core::IndexSet::parse_lenient(line.substr(set, rest - set), core::kAnyIndex),
                       tasks) +
         line.substr(rest);
}

std::optional<Tasks> tasks_of(const Json& job) {
  auto tasks = Tasks::of(job);
  return tasks ? std::optional(std::move(*tasks)) : std::nullopt;
}

Result<std::string> indexes_of_tasks(const Json& job, const std::string& tasks) {
  auto all = Tasks::of(job);
  if (!all) return all.error();
  auto indexes = all->indexes(tasks);
  if (!indexes) return indexes.error();
  return indexes->text();
}

void add_task_variables(Json& manifest, const std::vector<uint32_t>& numbers) {
  uint32_t step = numbers.size() < 2 ? 1 : numbers[1] - numbers[0];
  for (size_t i = 2; i < numbers.size(); ++i)
    if (numbers[i] - numbers[i - 1] != step) step = 1;
  add_variables(manifest, {{kTaskVariable, "$(MUSTER_INPUT)"},
                           {"SLURM_ARRAY_TASK_COUNT", std::to_string(numbers.size())},
                           {"SLURM_ARRAY_TASK_MIN", std::to_string(numbers.front())},
                           {"SLURM_ARRAY_TASK_MAX", std::to_string(numbers.back())},
                           {"SLURM_ARRAY_TASK_STEP", std::to_string(step)},
                           {"SLURM_ARRAY_JOB_ID", "$(MUSTER_JOB_NAME)"},
                           {"SLURM_JOB_ID", "$(MUSTER_POD_NAME)"},
                           {"SLURM_JOB_NAME", "$(MUSTER_JOB_NAME)"}});
}

void add_script_variables(Json& manifest, const std::string& dir) {
  add_variables(manifest, {{"SLURM_JOB_ID", "$(MUSTER_POD_NAME)"},
                           {"SLURM_JOB_NAME", "$(MUSTER_JOB_NAME)"},
                           {"SLURM_NTASKS", "1"},
                           {"SLURM_SUBMIT_DIR", unexpanded(dir)}});
}

std::string Tasks::numbers(const core::IndexSet& indexes) const {
  core::IndexSet numbers;
  for (const auto& [first, last] : indexes.intervals())
    for (auto it = number_of_.lower_bound(first); it != number_of_.end() && it->first <= last; ++it)
      numbers.insert(it->second);
  return numbers.text();
}

std::optional<int64_t> Tasks::number(int64_t index) const {
  const auto found = number_of_.find(static_cast<uint32_t>(index));
  if (index < 0 || found == number_of_.end()) return std::nullopt;
  return found->second;
}

}  // namespace muster::cli
