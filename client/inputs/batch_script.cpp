#include "client/inputs/batch_script.hpp"

#include "client/settings/submitter.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace muster::cli {
namespace {

constexpr std::string_view kSbatch = "#SBATCH", kMuster = "#MUSTER", kBlanks = " \t";
// Linux limits a word of a command to 128 KiB, its end included.
constexpr size_t kTextMax = (128 << 10) - 1;

// $1 is the text, $2 and what follows the interpreter. The file is removed at once, so nothing is
// left of it however the script ends.
constexpr char kFromFile[] =
    "f=$(mktemp) && printf %s \"$1\" >\"$f\" && exec 9<\"$f\" && rm \"$f\" && shift && exec \"$@\"";
constexpr char kOpenFile[] = "/dev/fd/9";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

// Whether the line has options of this kind. `#SBATCHES` has not, `# SBATCH` is a comment.
bool is_option_line(std::string_view line, std::string_view kind) {
  return line.starts_with(kind) &&
         (line.size() == kind.size() || kBlanks.find(line[kind.size()]) != std::string_view::npos);
}

bool is_option_line(std::string_view line) {
  return is_option_line(line, kSbatch) || is_option_line(line, kMuster);
}

// Splits into words as a shell does, without expanding anything. nullopt: a quote is not closed.
std::optional<std::vector<std::string>> option_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // a word, which may be empty: ''
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool escapes = c == '\\' && quote != '\'' && at + 1 < text.size();
    if (escapes) {
      word += text[++at];
      inside = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (kBlanks.find(c) != std::string_view::npos) {
      if (inside) words.push_back(std::exchange(word, ""));
      inside = false;
    } else if (c == '#' && !inside) {
      break;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) return std::nullopt;
  if (inside) words.push_back(word);
  return words;
}

// The words of the first line, as the kernel splits it: at most one argument. `env -S` splits its
// own; here it only has to find a shell.
std::vector<std::string> interpreter_of(std::string_view line) {
  const std::string_view text = trimmed(line.substr(2));
  const size_t end = std::min(text.find_first_of(kBlanks), text.size());
  std::vector<std::string> words{std::string(text.substr(0, end))};
  if (const std::string_view argument = trimmed(text.substr(end)); !argument.empty())
    words.emplace_back(argument);
  return words;
}

bool is_shell(std::string_view program) {
  static constexpr std::array<std::string_view, 6> kShells = {"sh",  "bash", "dash",
                                                              "ksh", "zsh",  "ash"};
  return std::ranges::find(kShells, program.substr(program.rfind('/') + 1)) != kShells.end();
}

// `env` and what it starts, as words of their own.
std::vector<std::string> without_env_splitting(std::vector<std::string> words) {
  constexpr std::string_view kSplit = "-S";
  const std::string program = words.front().substr(words.front().rfind('/') + 1);
  if (program != "env" || words.size() != 2 || !words[1].starts_with(kSplit)) return words;
  auto split = option_words(std::string_view(words[1]).substr(kSplit.size()));
  if (!split) return words;
  words.pop_back();
  words.insert(words.end(), split->begin(), split->end());
  return words;
}

}  // namespace

bool has_options(std::string_view text) {
  return std::ranges::any_of(lines_of(text),
                             [](std::string_view line) { return is_option_line(line); });
}

bool is_batch_script(std::string_view text) {
  if (text.starts_with("#!")) return true;
  const auto of_manifest = [](std::string_view line) {
    return line.starts_with("apiVersion:") || line.starts_with("kind:") || line.starts_with('{');
  };
  return has_options(text) && std::ranges::none_of(lines_of(text), of_manifest);
}

Result<BatchScript> parse_batch_script(const std::string& file, const std::string& text) {
  const auto wrong = [&file](size_t line, const std::string& why) {
    return invalid(file + ":" + std::to_string(line) + ": " + why);
  };
  const std::string as_command = "; run the file itself: -n 1 -- " +
                                 (file.find('/') == std::string::npos ? "./" + file : file);
  const auto lines = lines_of(text);
  if (!text.starts_with("#!"))
    return wrong(1, "a script starts with #! and its interpreter, such as #!/bin/bash");
  for (size_t i = 0; i < lines.size(); ++i)
    if (lines[i].ends_with('\r'))
      return wrong(i + 1, "ends with CR LF, as on Windows: convert the file with dos2unix");
  if (trimmed(lines.front().substr(2)).empty())
    return wrong(1, "#! must be followed by an interpreter, such as #!/bin/bash");
  if (text.size() > kTextMax)
    return invalid(file + ": a job can carry a script of up to " + std::to_string(kTextMax) +
                   " bytes; this one has " + std::to_string(text.size()) + as_command);
  if (text.find('\0') != std::string::npos || !is_utf8(text))
    return invalid(file + ": is not UTF-8 text, so a job cannot carry it" + as_command);
  const std::string name = file.substr(file.rfind('/') + 1);
  BatchScript script{.name = is_utf8(name) ? name : "script",
                     .text = text,
                     .interpreter = interpreter_of(lines.front()),
                     .sbatch = {},
                     .muster = {},
                     .late = {}};
  bool begun = false;  // the first command was seen
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    begun |= !trimmed(line).empty() && !trimmed(line).starts_with('#');
    if (!is_option_line(line)) continue;
    if (begun) {
      script.late.push_back(i + 1);
      continue;
    }
    auto words = option_words(line.substr(kSbatch.size()));
    if (!words) return wrong(i + 1, "a quote is not closed");
    (is_option_line(line, kSbatch) ? script.sbatch : script.muster).push_back({i + 1, *words});
  }
  return script;
}

std::vector<std::string> command_of(const BatchScript& script) {
  std::vector<std::string> words = without_env_splitting(script.interpreter);
  const bool by_env = words.size() > 1 && words.front().ends_with("/env");
  if (is_shell(words[by_env ? 1 : 0])) {
    if (words.back() == "-" || words.back() == "--") words.pop_back();  // would end the flags
    words.insert(words.end(), {"-c", script.text, script.name});
    return words;
  }
  std::vector<std::string> out{"sh", "-c", kFromFile, "sh", script.text};
  out.insert(out.end(), words.begin(), words.end());
  out.emplace_back(kOpenFile);
  return out;
}

}  // namespace muster::cli
