#include "base/text/yaml.hpp"

#include "base/text/json_text.hpp"
#include "base/text/yaml_load.hpp"
#include "base/text/yaml_place.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <yaml-cpp/yaml.h>

namespace muster {
namespace {

using nlohmann::json;

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_null_text(std::string_view text) {
  return one_of(text, {"", "~", "null", "Null", "NULL"});
}

std::optional<bool> bool_of(std::string_view text) {
  if (one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}))
    return true;
  if (one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"}))
    return false;
  return std::nullopt;
}

// Like Go's ParseInt with base 0: 0x, 0b and 0o prefixes, octal after a leading 0, underscores
// between digits.
std::optional<json> integer_of(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::string digits;
  for (char c : text)
    if (c != '_') digits += c;
  int base = 10;
  size_t prefix = 0;
  if (digits.size() > 1 && digits[0] == '0') {
    char mark = digits[1];
    base = mark == 'x' || mark == 'X' ? 16 : mark == 'b' || mark == 'B' ? 2 : 8;
    prefix = base == 8 && mark != 'o' && mark != 'O' ? 1 : 2;
  }
  const char* end = digits.data() + digits.size();
  uint64_t value = 0;
  auto [stop, error] = std::from_chars(digits.data() + prefix, end, value, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  if (!negative) return json(value);
  if (value > uint64_t{1} << 63) return std::nullopt;
  return json(static_cast<int64_t>(~value + 1));
}

// [-+]? ( .5 | 5 | 5. | 5.5 ) exponent?
std::optional<double> float_of(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  bool digit = false;
  bool point = false;
  for (; !rest.empty(); rest.remove_prefix(1)) {
    if (rest.front() == '.' && !point) {
      point = true;
    } else if (rest.front() >= '0' && rest.front() <= '9') {
      digit = true;
    } else {
      break;
    }
  }
  if (!digit) return std::nullopt;
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
    if (rest.empty()) return std::nullopt;
    while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') rest.remove_prefix(1);
  }
  if (!rest.empty()) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

class Writer {
 public:
  explicit Writer(const YamlLimits& limits) : limits_(limits) {}

  std::string out;
  std::string problem;                        // the first one
  YAML::Mark mark = YAML::Mark::null_mark();  // its place

  bool write(const YAML::Node& node, size_t depth) {
    if (depth > kJsonDepthMax) return fail(node, "nested too deep");
    if (out.size() > limits_.json_bytes) return fail(node, "aliases make this document too large");
    if (!visit(node)) return false;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        out += "null";
        return true;
      case YAML::NodeType::Scalar:
        return write_scalar(node);
      case YAML::NodeType::Sequence:
        return write_list(node, depth);
      case YAML::NodeType::Map:
        return write_map(node, depth);
    }
    return fail(node, "unknown kind of YAML node");
  }

 private:
  using Names = std::unordered_set<std::string>;

  bool visit(const YAML::Node& node) {
    return ++visits_ <= limits_.visits ||
           fail(node, "aliases and merge keys make this document too large");
  }

  bool fail(const YAML::Node& node, const std::string& what) {
    if (problem.empty()) problem = what, mark = node.Mark();
    return false;
  }

  void write_text(const std::string& text) {
    out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }

  bool write_scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (out.size() + text.size() > limits_.json_bytes) return fail(node, "the text is too large");
    const std::string& tag = node.Tag();
    // The library tags quoted and block scalars "!" and plain ones "?".
    if (tag == "!" || tag == "tag:yaml.org,2002:str") {
      write_text(text);
      return true;
    }
    if (is_null_text(text)) {
      out += "null";
    } else if (auto truth = bool_of(text)) {
      out += *truth ? "true" : "false";
    } else if (auto integer = integer_of(text)) {
      out += integer->dump();
    } else if (auto number = float_of(text)) {
      // As Go's JSON encoder does: 1e3 becomes 1000, which an integer field accepts.
      constexpr double kExact = 9007199254740992;  // 2^53
      bool whole = std::abs(*number) < kExact && std::trunc(*number) == *number;
      out += (whole ? json(static_cast<int64_t>(*number)) : json(*number)).dump();
    } else if (one_of(text, {".inf", ".Inf", ".INF", "+.inf", "-.inf", "-.Inf", "-.INF", ".nan",
                             ".NaN", ".NAN"})) {
      return fail(node, text + " has no JSON value");
    } else {
      write_text(text);
    }
    return true;
  }

  bool write_list(const YAML::Node& node, size_t depth) {
    out += '[';
    bool first = true;
    for (const YAML::Node& element : node) {
      if (!std::exchange(first, false)) out += ',';
      if (!write(element, depth + 1)) return false;
    }
    out += ']';
    return true;
  }

  bool write_map(const YAML::Node& node, size_t depth) {
    Names written;
    std::vector<YAML::Node> merged;
    out += '{';
    for (const auto& entry : node) {
      const YAML::Node& key = entry.first;
      const YAML::Node& value = entry.second;
      if (!key.IsScalar() && !key.IsNull()) return fail(key, "a map key must be a scalar");
      if (key.IsScalar() && key.Scalar() == "<<" && key.Tag() != "!") {
        if (value.IsSequence()) {
          for (const YAML::Node& each : value) {
            if (!visit(each)) return false;
            merged.push_back(each);
          }
        } else {
          merged.push_back(value);
        }
        continue;
      }
      std::string name = key.IsNull() ? "null" : key.Scalar();
      if (!write_member(name, value, written, depth)) return false;
    }
    // The map's own keys win, then those of the first merged map.
    for (const YAML::Node& map : merged) {
      if (!map.IsMap()) return fail(map, "a merge key (<<) must refer to a map");
      for (const auto& entry : map) {
        const YAML::Node& key = entry.first;
        if (!visit(key)) return false;
        if (!key.IsScalar()) return fail(key, "a map key must be a scalar");
        if (written.contains(key.Scalar())) continue;
        if (!write_member(key.Scalar(), entry.second, written, depth)) return false;
      }
    }
    out += '}';
    return true;
  }

  bool write_member(const std::string& name, const YAML::Node& value, Names& written,
                    size_t depth) {
    if (!written.empty()) out += ',';
    written.insert(name);
    write_text(name);
    out += ':';
    return write(value, depth + 1);
  }

  const YamlLimits limits_;
  size_t visits_ = 0;
};

struct Part {
  size_t from, to;    // bytes
  size_t first_line;  // counted from 1
};

// Splits the text before each line that begins with `---`. Such a line separates documents
// anywhere, even inside a block scalar. If only directives (%YAML) and comments precede the first
// one, they stay with its document.
std::vector<Part> parts_of(std::string_view text) {
  std::vector<Part> parts;
  Part part{0, 0, 1};
  bool directives = true;  // nothing but directives, comments and empty lines so far
  size_t line = 1;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view now = text.substr(at, end - at);
    const size_t ink = now.find_first_not_of(" \t\r");
    const bool marker =
        now.starts_with("---") && (now.size() == 3 || now.find_first_of(" \t\r") == 3);
    if (marker && !directives) {
      part.to = at;
      parts.push_back(part);
      part = {at, 0, line};
    }
    directives = !marker && directives &&
                 (ink == std::string_view::npos || now[ink] == '#' || now.starts_with('%'));
    at = end + 1;
  }
  part.to = text.size();
  parts.push_back(part);
  return parts;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at <= text.size(); at += lines.back().size() + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

// The column of a tab in the line's indentation, if there is one.
std::optional<size_t> tab_in_indent(std::string_view line) {
  const size_t ink = line.find_first_not_of(" \t\r"), tab = line.find('\t');
  if (ink == std::string_view::npos || tab > ink) return std::nullopt;
  return tab + 1;
}

// Explains two mistakes that the library misreports: tabs and templates. `place` is relative to
// `text`.
void explain(std::string_view text, std::string& problem, TextPlace& place) {
  const std::vector<std::string_view> lines = lines_of(text);
  size_t line = std::min(place.line, lines.size()) - 1;
  const auto tab = [&lines](size_t at) { return tab_in_indent(lines[at]); };
  while (line > 0 && tab(line) && tab(line - 1)) --line;
  if (const auto column = tab(line); column && !is_json_object(text)) {
    problem = "this line is indented with a tab; YAML allows only spaces";
    place = {line + 1, *column};
    return;
  }
  for (line = 0; line < lines.size(); ++line) {
    const size_t braces = lines[line].find("{{");
    const bool first = lines[line].find_first_not_of(" \t") == braces;
    if (braces == std::string_view::npos || (line + 1 != place.line && !first)) continue;
    problem =
        "this looks like a Helm template; render it first: helm template CHART | muster apply -f -";
    place = {line + 1, braces + 1};
    return;
  }
}

// "parse error at line 1, column 9: WHAT" -> WHAT, and the place.
void take_json_place(std::string& problem, TextPlace& place) {
  constexpr std::string_view kBegins = "parse error at line ", kColumn = ", column ";
  const size_t begin = problem.find(kBegins);
  if (begin == std::string::npos) return;
  const char* const end = problem.data() + problem.size();
  const auto line = std::from_chars(problem.data() + begin + kBegins.size(), end, place.line);
  if (!std::string_view(line.ptr, end).starts_with(kColumn)) return;
  const auto column = std::from_chars(line.ptr + kColumn.size(), end, place.column);
  const auto rest = static_cast<size_t>(column.ptr - problem.data());
  if (problem.compare(rest, 2, ": ") == 0) problem.erase(begin, rest + 2 - begin);
}

// Reads the documents of one part. Returns whether to read the next part.
bool read_part(const std::string& text, const Part& part, const YamlLimits& limits, size_t& bytes,
               std::vector<YamlDocument>& out) {
  auto source = std::make_shared<const std::string>(text.substr(part.from, part.to - part.from));
  const auto fail = [&](std::string problem, const YAML::Mark& mark) {
    TextPlace place = text_place(mark);
    explain(*source, problem, place);
    place.line += part.first_line - 1;
    out.push_back({"", std::move(problem), place, source, part.first_line});
  };
  // The library throws on malformed text; its exceptions are caught here.
  try {
    size_t number = 0;
    for (const YAML::Node& node : load_all_yaml(*source)) {
      const size_t own = number++;
      if (!node.IsDefined() || node.IsNull()) continue;
      Writer writer(limits);
      if (!writer.write(node, 0)) {
        fail(std::move(writer.problem), writer.mark);
        continue;
      }
      bytes += writer.out.size();
      if (bytes > limits.json_bytes) {
        fail("the text is too large", node.Mark());
        return false;
      }
      out.push_back({std::move(writer.out), "", text_place(node.Mark(), part.first_line), source,
                     part.first_line, own});
    }
  } catch (const YAML::Exception& error) {
    fail(error.msg, error.mark);
  }
  return true;
}

}  // namespace

bool is_json_object(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\n---") == std::string_view::npos;
}

Status check_yaml_body(std::string_view text) {
  constexpr std::string_view kMayBegin = "\n,:-?[{&*!|>";
  const auto tokens = std::count_if(text.begin(), text.end(), [&kMayBegin](char c) {
    return kMayBegin.find(c) != std::string_view::npos;
  });
  if (text.size() > kYamlBodyMax || static_cast<size_t>(tokens) > kYamlTokensMax)
    return Error{Errc::invalid,
                 "the YAML body is too large (over 64 KiB, or over " +
                     std::to_string(kYamlTokensMax) +
                     " characters such as ':' and line breaks); send JSON instead",
                 {}};
  return Nothing{};
}

std::vector<YamlDocument> yaml_documents(const std::string& text, const YamlLimits& limits) {
  std::vector<YamlDocument> documents;
  if (is_json_object(text)) {
    YamlDocument document{text, "", {}, std::make_shared<const std::string>(text)};
    if (auto parsed = parse_json(text); !parsed) {
      document.problem = parsed.error().message;
      take_json_place(document.problem, document.place);
      explain(text, document.problem, document.place);
    }
    documents.push_back(std::move(document));
    return documents;
  }
  size_t bytes = 0;
  for (const Part& part : parts_of(text))
    if (!read_part(text, part, limits, bytes, documents)) break;
  return documents;
}

Result<std::vector<std::string>> yaml_to_json(const std::string& text, const YamlLimits& limits) {
  std::vector<std::string> documents;
  for (YamlDocument& document : yaml_documents(text, limits)) {
    if (!document.problem.empty()) return invalid(place_text(document.place) + document.problem);
    documents.push_back(std::move(document.json));
  }
  return documents;
}

}  // namespace muster
