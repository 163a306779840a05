#include "api/request/accept.hpp"

#include "base/text/trim.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace muster::api {
namespace {

// Takes the text up to the next separator off the front.
std::string_view next_of(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return trimmed(part);
}

struct Clause {
  std::string_view type, as;
  double weight = 1;
};

double weight_of(std::string_view text) {
  double weight = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), weight);
  return parsed.ec == std::errc() ? weight : 0;
}

std::vector<Clause> clauses_of(std::string_view header) {
  std::vector<Clause> clauses;
  while (!header.empty()) {
    std::string_view text = next_of(header, ',');
    Clause clause{.type = next_of(text, ';'), .as = {}};
    while (!text.empty()) {
      std::string_view value = next_of(text, ';');
      const std::string_view name = next_of(value, '=');
      if (name == "as") clause.as = trimmed(value);
      if (name == "q") clause.weight = weight_of(trimmed(value));
    }
    if (!clause.type.empty() && clause.weight > 0) clauses.push_back(clause);
  }
  std::stable_sort(clauses.begin(), clauses.end(),
                   [](const Clause& a, const Clause& b) { return a.weight > b.weight; });
  return clauses;
}

std::optional<Form> form_of(std::string_view as) {
  if (as.empty()) return Form::plain;
  if (as == "Table") return Form::table;
  if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") return Form::metadata;
  return std::nullopt;
}

std::optional<Encoding> encoding_of(std::string_view type) {
  if (type == "*/*" || type == "application/*" || type == "application/json") return Encoding::json;
  if (type == "application/yaml") return Encoding::yaml;
  if (type == "application/vnd.kubernetes.protobuf") return Encoding::protobuf;
  return std::nullopt;
}

}  // namespace

std::optional<Accepted> accepted(std::string_view header, bool watch) {
  if (trimmed(header).empty()) return Accepted{};
  const std::vector<Clause> clauses = clauses_of(header);
  std::optional<Accepted> first;
  bool json_too = false;
  for (const Clause& clause : clauses) {
    const auto form = form_of(clause.as);
    const auto encoding = encoding_of(clause.type);
    if (!form || !encoding) continue;
    if (encoding == Encoding::protobuf && form == Form::table) continue;  // has no protobuf form
    if (encoding == Encoding::yaml && watch) continue;
    if (!first) first = Accepted{*form, *encoding, false};
    json_too = json_too || (*encoding == Encoding::json && *form == first->form);
  }
  if (first) first->json_too = json_too;
  return first;
}

}  // namespace muster::api
