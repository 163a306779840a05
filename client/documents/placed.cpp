#include "client/documents/placed.hpp"

#include "base/text/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

constexpr std::string_view kUnknown = "unknown field \"", kRepeated = "duplicate field \"",
                           kMeant = ", did you mean \"", kStrict = "strict decoding error: ";

// Suggests a supported value for an unsupported one; empty if the message lists none:
// `Unsupported value: "never": supported values: "OnFailure", "Never"`.
std::string meant_value(const std::string& message) {
  constexpr std::string_view kBegins = "Unsupported value: \"", kList = "supported values: \"";
  const size_t list = message.find(kList);
  if (!message.starts_with(kBegins) || list == std::string::npos) return "";
  const std::string value =
      message.substr(kBegins.size(), message.find('"', kBegins.size()) - kBegins.size());
  std::vector<std::string> known;
  for (size_t from = list + kList.size(); from < message.size();) {
    const size_t end = std::min(message.find('"', from), message.size());
    known.push_back(message.substr(from, end - from));
    from = message.find('"', end + 1);
    if (from != std::string::npos) ++from;
  }
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  for (const std::string& word : known)
    if (lower(word) == lower(value)) return "; did you mean " + word + "?";
  return did_you_mean(value, known);
}

YamlFields::Found find_field(const Document& document, const std::string& path) {
  return document.fields->find(document.within + "." + path);
}

// The path of the document's field that a message begins with; empty if none.
std::string field_of(const std::string& message, const Document& document) {
  std::string path = message.substr(0, message.find(": "));
  return find_field(document, path).exact ? path : "";
}

// Parses a list of fields that cannot be decoded:
//   strict decoding error: unknown field "spec.a", did you mean "b"? duplicate field "spec.c"
//   spec.d: found the string "x", expected an integer (int32); unknown field "spec.a"
// Returns nothing if the message is not such a list.
class FieldList {
 public:
  FieldList(std::string_view message, const Document& document)
      : rest_(message), document_(document) {}

  std::vector<Violation> read() {
    take(kStrict);
    while (!rest_.empty()) {
      if (take(kUnknown)) {
        const std::string path = quoted();
        std::string why = "unknown field";
        if (take(kMeant)) {
          why += "; did you mean " + quoted() + "?";
          take("?");
        }
        add(path, std::move(why));
      } else if (take(kRepeated)) {
        add(quoted(), "is set twice");
      } else if (!wrong_type()) {
        return {};
      }
      rest_.remove_prefix(std::min(rest_.find_first_not_of(",; "), rest_.size()));
    }
    return std::move(fields_);
  }

 private:
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  // Up to the next quote, which is consumed too.
  std::string quoted() {
    std::string text(rest_.substr(0, rest_.find('"')));
    rest_.remove_prefix(std::min(text.size() + 1, rest_.size()));
    return text;
  }

  bool begins_field(std::string_view text) const {
    return text.starts_with(kUnknown) || text.starts_with(kRepeated) ||
           !field_of(std::string(text.substr(0, text.find("; "))), document_).empty();
  }

  // `PATH: found X, expected Y`, up to the next field: X may contain any text.
  bool wrong_type() {
    const std::string path = field_of(std::string(rest_), document_);
    if (path.empty()) return false;
    rest_.remove_prefix(path.size() + 2);
    size_t end = rest_.find("; ");
    while (end != std::string_view::npos && !begins_field(rest_.substr(end + 2)))
      end = rest_.find("; ", end + 2);
    add(path, std::string(rest_.substr(0, end)));
    rest_.remove_prefix(std::min(end, rest_.size()));
    return true;
  }

  void add(std::string path, std::string why) {
    fields_.push_back({std::move(path), Violation::Kind::invalid, "", std::move(why)});
  }

  std::string_view rest_;
  const Document& document_;
  std::vector<Violation> fields_;
};

}  // namespace

std::string file_place(const std::string& file, const TextPlace& place) {
  return file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

Error placed(Error error, const Document& document) {
  if (error.code == Errc::unavailable || error.code == Errc::foreign || !document.fields)
    return error;
  for (Violation& one : FieldList(error.message, document).read())
    error.violations.push_back(std::move(one));
  if (error.violations.empty()) {
    const std::string field = error.code == Errc::exists ? "metadata.name" : "";
    error.violations = {{file_place(document.file, find_field(document, field).place),
                         Violation::Kind::invalid, "", std::exchange(error.message, "")}};
    return error;
  }
  error.message.clear();
  std::vector<std::pair<TextPlace, Violation>> lines;
  std::set<std::pair<std::string, std::string>> seen;
  for (Violation& one : std::exchange(error.violations, {})) {
    if (!seen.emplace(one.path, one.detail).second) continue;
    const TextPlace place = find_field(document, one.path).place;
    one.detail += meant_value(one.detail);
    if (one.detail.find("{{") != std::string::npos)
      one.detail += "; if this is a Helm template, render it first: helm template CHART";
    one.path = file_place(document.file, place) + (one.path.empty() ? "" : ": " + one.path);
    lines.emplace_back(place, std::move(one));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [place, line] : lines) error.violations.push_back(std::move(line));
  return error;
}

std::string placed_warning(const std::string& warning, const Document& document) {
  if (!document.fields) return warning;
  const TextPlace place = find_field(document, field_of(warning, document)).place;
  return file_place(document.file, place) + ": " + warning;
}

}  // namespace muster::cli
