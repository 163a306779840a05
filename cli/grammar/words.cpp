#include "cli/grammar/words.hpp"

#include "base/text/nearest.hpp"
#include "client/connect/objects.hpp"
#include "core/spec/values/duration.hpp"

namespace muster::cli {

std::variant<std::string, Usage> job_name(const std::string& word) {
  const size_t slash = word.find('/');
  if (slash == std::string::npos && !word.empty()) return word;
  const auto kind = slash == std::string::npos ? std::nullopt : parse_kind(word.substr(0, slash));
  if (kind != Kind::job || slash + 1 == word.size())
    return Usage{"`" + word + "`: must be job/NAME"};
  return word.substr(slash + 1);
}

std::variant<std::vector<std::string>, Usage> job_names(std::vector<std::string> words) {
  if (words.size() > 1 && parse_kind(words.front()) == Kind::job) words.erase(words.begin());
  std::vector<std::string> names;
  for (const std::string& word : words) {
    auto name = job_name(word);
    if (auto* wrong = std::get_if<Usage>(&name)) return *wrong;
    names.push_back(std::get<std::string>(name));
  }
  return names;
}

std::string node_name(const std::string& word) {
  const size_t slash = word.find('/');
  return slash != std::string::npos && parse_kind(word.substr(0, slash)) == Kind::node
             ? word.substr(slash + 1)
             : word;
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
  std::string known;
  for (const std::string& plural : kind_words()) known += (known.empty() ? "" : ", ") + plural;
  return {"`" + word + "`: unknown kind" + did_you_mean(word, kind_words()) + " (there are " +
          known + ")"};
}

}  // namespace muster::cli
