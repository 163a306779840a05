#include "client/settings/output_files.hpp"

#include "core/spec/values/output_pattern.hpp"

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

}  // namespace

Result<std::string> output_file_pattern(const std::string& text, const std::string& dir,
                                        bool array) {
  std::string out;
  if (!text.starts_with('/'))
    for (const char c : dir + (dir.ends_with('/') ? "" : "/"))
      out += c == '%' ? "%%" : std::string(1, c);
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
  auto pattern = core::OutputPattern::parse(out);
  if (!pattern.ok()) return pattern.error();
  return out;
}

}  // namespace muster::cli
