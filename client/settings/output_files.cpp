#include "client/settings/output_files.hpp"

#include <string_view>

namespace muster::cli {
namespace {

// The letter of a pattern for one of sbatch's; 0: there is none.
char letter_of(char letter, bool array) {
  switch (letter) {
    case 'j':
    case 'A':
    case 'x':
      return 'j';
    case 'a':
      return array ? 't' : 'i';
    case 'N':
    case 'n':
      return 'n';
    case 'r':
      return 'a';
    case 'i':
    case 'p':
    case '%':
      return letter;
    default:
      return 0;
  }
}

// Appends `text` to `out`, which has what comes before it, with the letters of a pattern.
Status translate(const std::string& text, bool array, std::string& out) {
  for (size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (text[at] != '%') continue;
    const size_t from = at++;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') out += text[at++];
    const char letter = at < text.size() ? letter_of(text[at], array) : '\0';
    const bool wide = at > from + 1;
    if (wide && (at - from > 3 || std::string_view("air").find(text[at]) == std::string_view::npos))
      return invalid("`" + text.substr(from, at + 1 - from) + "` in " + text +
                     ": only %a, %i and %r can have a number of digits, at most 20");
    if (letter == 0)
      return invalid("`" + text.substr(from, at + 1 - from) + "` in " + text +
                     " is unknown; there are %j job, %a task of the array or index, %i index, %r "
                     "attempt, %N node, %p pod, %% a percent sign");
    out += letter;
  }
  return Nothing{};
}

}  // namespace

Result<std::string> output_file_pattern(const std::string& text, const std::string& dir,
                                        bool array) {
  std::string out;
  if (!text.starts_with('/'))
    for (const char c : dir + (dir.ends_with('/') ? "" : "/"))
      out += c == '%' ? "%%" : std::string(1, c);
  if (Status right = translate(text, array, out); !right) return right.error();
  auto pattern = core::OutputPattern::parse(out);
  if (!pattern.ok()) return pattern.error();
  return out;
}

Result<core::OutputPattern> run_file_pattern(const std::string& text) {
  std::string out;
  if (Status right = translate(text, true, out); !right) return right.error();
  auto pattern = core::OutputPattern::parse(out);
  if (!pattern.ok()) return invalid(as_typed(pattern.error().message));
  return pattern;
}

std::string as_typed(const std::string& text) {
  std::string out = text;
  for (size_t at = out.find('%'); at != std::string::npos; at = out.find('%', at + 1)) {
    at = out.find_first_not_of("0123456789", at + 1);
    if (at == std::string::npos) break;
    if (out[at] == 'a')
      out[at] = 'r';
    else if (out[at] == 't')
      out[at] = 'a';
  }
  return out;
}

}  // namespace muster::cli
