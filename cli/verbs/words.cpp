#include "cli/verbs/words.hpp"

#include "base/text/nearest.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace muster::cli {

std::string structured_text(const Json& json, Output output) {
  return output == Output::json ? dumped(json, 2) + "\n" : to_yaml(json);
}

std::string listed(const std::vector<std::string>& words, const std::string& last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return text;
}

std::optional<Usage> read_job_name(const std::string& word, std::string& name) {
  const size_t slash = word.find('/');
  const auto kind = slash == std::string::npos ? Kind::job : parse_kind(word.substr(0, slash));
  name = slash == std::string::npos ? word : word.substr(slash + 1);
  if (kind != Kind::job || name.empty()) return Usage{"`" + word + "`: must be job/NAME"};
  return std::nullopt;
}

std::optional<Usage> cut_index(std::string& word, const std::string& flag,
                               std::optional<int64_t>& index) {
  const size_t first = word.find('/'), last = word.rfind('/');
  const bool kind_first = parse_kind(word.substr(0, first)).has_value();
  if (last == std::string::npos || (kind_first && first == last)) return std::nullopt;
  auto set = core::IndexSet::parse_strict(word.substr(last + 1), kIndexMax + 1);
  if (!set.ok() || set->size() != 1)
    return Usage{"`" + word + "`: must be job/J or job/J/INDEX, one index"};
  if (!flag.empty()) return Usage{flag + ": `" + word + "` names an index already"};
  index = static_cast<int64_t>(set->lowest());
  word.resize(last);
  return std::nullopt;
}

std::optional<Usage> read_job_names(std::vector<std::string> words,
                                    std::vector<std::string>& names) {
  if (words.size() > 1 && parse_kind(words.front()) == Kind::job) words.erase(words.begin());
  for (const std::string& word : words)
    if (auto wrong = read_job_name(word, names.emplace_back())) return wrong;
  return std::nullopt;
}

std::optional<Usage> read_pod_or_job(const std::string& word, std::string& pod, std::string& job) {
  const size_t slash = word.find('/');
  const auto kind = slash == std::string::npos ? Kind::pod : parse_kind(word.substr(0, slash));
  const std::string name = slash == std::string::npos ? word : word.substr(slash + 1);
  if ((kind != Kind::pod && kind != Kind::job) || name.empty())
    return Usage{"`" + word + "`: must be POD, pod/POD or job/J"};
  (kind == Kind::pod ? pod : job) = name;
  return std::nullopt;
}

FlagRows rows_of_index(FlagRow what, std::optional<int64_t>& index, std::optional<int64_t>& task) {
  Key form = *find_key(Section::client, "output");
  form.words = {"table", "json", "yaml"};
  form.help = "Output format";
  return {std::move(what),
          {"--index", "I", "Index of the job", &index, whole(0, kIndexMax)},
          {"--task",
           "N",
           "Task of a job submitted with --array",
           &task,
           whole(0, kNumberMax),
           0,
           {"--index"}},
          key_row(form, "-o,--output")};
}

std::optional<Usage> check_reason(const std::string& reason) {
  constexpr size_t kMost = 1'024;  // bytes
  if (reason.size() <= kMost) return std::nullopt;
  return Usage{"--reason: must have at most " + std::to_string(kMost) + " bytes, and has " +
               std::to_string(reason.size())};
}

FlagRow reason_row(std::string& reason) {
  return {"--reason", "TEXT", "Reason, shown by muster why, describe and get nodes -o wide",
          &reason};
}

Json cordon_patch(const std::string& reason) {
  Json patch = {{"spec", {{"unschedulable", true}}}};
  if (!reason.empty()) patch["metadata"]["annotations"]["muster.dev/cordon-reason"] = reason;
  return patch;
}

std::optional<Usage> read_set(const std::string& flag, std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto set = typed_set(text);
  if (!set) return Usage{flag + ": " + set.error().message};
  if (set->empty()) return Usage{flag + ": the set is empty"};
  text = set->text();
  return std::nullopt;
}

std::string node_name(const std::string& word) {
  const size_t slash = word.find('/');
  return slash != std::string::npos && parse_kind(word.substr(0, slash)) == Kind::node
             ? word.substr(slash + 1)
             : word;
}

std::string absolute_dir(const std::string& path) {
  std::error_code error;
  std::string dir = std::filesystem::absolute(path, error).lexically_normal().string();
  if (dir.size() > 1 && dir.ends_with('/')) dir.pop_back();
  return dir;
}

std::optional<Usage> read_span(const std::string& flag, const std::string& text, Millis& target) {
  if (text.empty()) return std::nullopt;
  auto span = core::parse_duration(text);
  if (!span) return Usage{flag + ": " + span.error().message};
  target = *span;
  return std::nullopt;
}

std::optional<Usage> read_limit(const std::string& flag, const std::string& text,
                                std::optional<Millis>& target) {
  Millis limit = 0;
  if (auto wrong = read_span(flag, text, limit)) return wrong;
  target = limit == 0 ? std::nullopt : std::optional(limit);
  return std::nullopt;
}

Output read_output(const std::string& text) {
  if (text == "wide") return Output::wide;
  if (text == "name") return Output::name;
  if (text == "json") return Output::json;
  if (text == "yaml") return Output::yaml;
  if (text == "tsv") return Output::tsv;
  return Output::table;
}

Usage unknown_kind(const std::string& word) {
  return {"`" + word + "`: unknown kind" + did_you_mean(word, kind_words()) + " (there are " +
          listed(kind_words()) + ")"};
}

std::optional<Usage> check_filled(const Given& given, const std::vector<Filled>& flags) {
  for (const auto& [flag, words] : flags)
    if (given.flags.contains(flag) &&
        std::any_of(words.begin(), words.end(), [](const std::string& word) {
          return word.find_first_not_of(", ") == std::string::npos;
        }))
      return Usage{std::string(flag) + ": the value is empty"};
  return std::nullopt;
}

}  // namespace muster::cli
