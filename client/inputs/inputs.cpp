#include "client/inputs/inputs.hpp"

#include "base/fd.hpp"
#include "base/text/nearest.hpp"
#include "client/inputs/owner_file.hpp"
#include "client/settings/files.hpp"
#include "client/settings/submitter.hpp"
#include "client/terminal/text.hpp"
#include "trust/tls/certificates.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {
namespace {

constexpr size_t kRowsMax = 1'000'000;
// Limit for a manifest: clients that watch the job receive its inputs with each change.
constexpr size_t kCarriedMax = 64 << 10;  // bytes
// More than a word of a command line can have, so that an array needs no file.
constexpr size_t kRangesMax = 160 << 10;
constexpr size_t kNameDigits = 16;
// What the kernel takes as "MUSTER_INPUT=VALUE" and NUL; nodes refuse what is longer, too.
constexpr size_t kInputMax = (128 << 10) - core::kInputVariable.size() - 2;  // bytes
constexpr int kNoticeMs = 2'000;                                             // without input
constexpr std::array<std::string_view, 5> kParts = {"", ".", "/", "//", "/."};

Error too_many(size_t count) {
  return invalid("too many inputs: " + std::to_string(count) + " (at most " +
                 std::to_string(kRowsMax) + ")");
}

// Why an input is too long for a variable and for an argument; nothing if it is not.
std::optional<Error> too_long(const core::Input& row, const std::string& place) {
  size_t size = row.size() - 1;  // between its values
  for (const std::string& value : row) size += value.size();
  if (size <= kInputMax) return std::nullopt;
  return invalid(place + " has " + std::to_string(size) + " bytes, and an input at most " +
                 std::to_string(kInputMax) +
                 ": write what is that long to a file, and use its name as the input");
}

std::vector<core::Input> split(std::string_view text, char end) {
  std::vector<core::Input> rows;
  while (!text.empty()) {
    const size_t length = std::min(text.find(end), text.size());
    rows.push_back({std::string(text.substr(0, length))});
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return rows;
}

// Every row of `left` joined with every row of `right`.
std::vector<core::Input> product(const std::vector<core::Input>& left,
                                 const std::vector<core::Input>& right) {
  std::vector<core::Input> rows;
  rows.reserve(left.size() * right.size());
  for (const core::Input& a : left) {
    for (const core::Input& b : right) {
      rows.push_back(a);
      rows.back().insert(rows.back().end(), b.begin(), b.end());
    }
  }
  return rows;
}

// Its bytes; false: too many, or they cannot be read.
bool read_whole(const Fd& file, std::string& bytes) {
  struct stat found {};
  if (fstat(file.get(), &found) != 0 || static_cast<size_t>(found.st_size) > core::kInputFileMax)
    return false;
  bytes.resize(static_cast<size_t>(found.st_size));
  for (size_t size = 0; size < bytes.size();) {
    const ssize_t got = read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    size += static_cast<size_t>(got);
  }
  return true;
}

// Drops the carriage returns at the ends of all lines, as editors of other systems leave them, but
// not those of only some lines. The last line need not end.
bool drop_returns(std::vector<core::Input>& lines, bool last_ends) {
  const auto returns = [](const core::Input& line) { return line.front().ends_with('\r'); };
  const auto found = static_cast<size_t>(std::ranges::count_if(lines, returns));
  const bool all =
      found == lines.size() || (!last_ends && found + 1 == lines.size() && !returns(lines.back()));
  if (found == 0 || !all) return false;
  for (core::Input& line : lines)
    if (returns(line)) line.front().pop_back();
  return true;
}

// A file's text without the mark that editors of other systems put first.
Result<std::string> read_text(const std::string& file) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  auto text = read_file(file);
  if (text && text->starts_with(kMark)) text->erase(0, kMark.size());
  return text;
}

// Whether it is one value of white space only, as of a blank line.
bool is_blank(const core::Input& row) {
  return row.size() == 1 && row.front().find_first_not_of(" \t\r") == std::string::npos;
}

// Why the columns of a header cannot be told apart; empty: they can. Columns without a name have
// their numbers.
std::string doubled_name(const core::Input& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto first = std::ranges::find(names, names[i]) - names.begin();
    if (!names[i].empty() && first != static_cast<std::ptrdiff_t>(i))
      return "columns " + std::to_string(first + 1) + " and " + std::to_string(i + 1) +
             " are both called " + one_line(names[i]) + "; give each a name of its own";
  }
  return "";
}

Result<Inputs> read_csv(const std::string& file) {
  auto text = read_text(file);
  if (!text) return text.error();
  std::vector<size_t> lines;
  auto rows = parse_csv(*text, &lines);
  if (!rows) return invalid(shown_path(file) + ": " + rows.error().message);
  const auto place = [&](size_t row) {
    return shown_path(file) + ": line " + std::to_string(lines[row]);
  };
  Inputs out;
  for (size_t i = 0; i < rows->size(); ++i) {
    core::Input& row = (*rows)[i];
    // Blank lines are no records; that of a single column may be an empty value.
    if (out.names.size() != 1 && is_blank(row)) continue;
    if (out.names.empty()) {
      if (const std::string why = doubled_name(row); !why.empty())
        return invalid(place(i) + ": " + why);
      out.names = std::move(row);
      continue;
    }
    if (row.size() != out.names.size())
      return invalid(place(i) + " has " + std::to_string(row.size()) +
                     (row.size() == 1 ? " column, " : " columns, ") + "the header has " +
                     std::to_string(out.names.size()));
    if (auto why = too_long(row, place(i))) return std::move(*why);
    out.rows.push_back(std::move(row));
  }
  if (out.rows.empty()) return invalid(shown_path(file) + ": needs a header and a record");
  if (out.rows.size() > kRowsMax) return too_many(out.rows.size());
  return out;
}

// The text between braces: a column (empty, a number or a name), then a part.
struct Placeholder {
  std::string_view column, part;
  bool is_index = false;
};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Absent: not a placeholder; the text stays as typed.
std::optional<Placeholder> placeholder(std::string_view text,
                                       const std::vector<std::string>& names) {
  if (text == "#") return Placeholder{"", "#", true};
  for (const std::string_view part : kParts) {
    if (!text.ends_with(part)) continue;
    const std::string_view column = text.substr(0, text.size() - part.size());
    if (column.empty() || is_number(column) || std::ranges::find(names, column) != names.end())
      return Placeholder{column, part};
  }
  return std::nullopt;
}

// Calls `text` and `input` for the parts of a word, in order, and `other` for braces in a text:
// where they open, and what is in them.
template <class Text, class Input, class Other>
void each_part(std::string_view word, const std::vector<std::string>& names, Text text, Input input,
               Other other) {
  size_t done = 0;
  for (size_t open = word.find('{'); open != std::string_view::npos;) {
    const size_t close = word.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view inner = word.substr(open + 1, close - open - 1);
    // ${1} is a shell's.
    const bool of_shell = open > 0 && word[open - 1] == '$' && !inner.empty();
    const auto found = of_shell ? std::nullopt : placeholder(inner, names);
    if (!found) {
      other(open, inner);
      open = word.find('{', open + 1);
      continue;
    }
    text(word.substr(done, open - done));
    input(*found, word.substr(open, close + 1 - open));
    done = close + 1;
    open = word.find('{', done);
  }
  text(word.substr(done));
}

// Why a word must not be passed on as it is: after its first `open` characters it has {NAME}, and
// no column has this name. Empty: it may be. `${NAME}` is a shell's.
std::string unknown_column(std::string_view word, size_t open, std::string_view name,
                           const std::vector<std::string>& names) {
  const auto of_name = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (names.empty() || name.empty() || !std::ranges::all_of(name, of_name) ||
      (open > 0 && word[open - 1] == '$'))
    return "";
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  return "{" + std::string(name) + "}: the header has no such column" + did_you_mean(name, names) +
         (names.size() > 1
              ? "; it has " + one_line(known)
              : "; it has no comma: columns are separated by commas here, by tabs with "
                "--each");
}

// Whether a text like "1-99999999999" has numbers, one of which is too large.
bool has_large_number(const std::string& range) {
  constexpr size_t kDigitsMax = 10;  // of INT32_MAX
  const std::string_view shape = range;
  if (range.find_first_not_of("0123456789-:") != std::string::npos) return false;
  for (size_t at = 0; at < range.size();) {
    const size_t end = std::min(range.find_first_of("-:", at), range.size());
    std::string_view digits = shape.substr(at, end - at);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.size() > kDigitsMax ||
        (digits.size() == kDigitsMax && digits > std::to_string(INT32_MAX)))
      return true;
    at = end + 1;
  }
  return false;
}

// The position of the script in `sh -c SCRIPT`; 0: not such a command.
size_t script_place(const std::vector<std::string>& command) {
  static constexpr std::array<std::string_view, 6> kShells = {"sh",  "bash", "dash",
                                                              "ksh", "zsh",  "ash"};
  const std::string_view program =
      std::string_view(command.front()).substr(command.front().rfind('/') + 1);
  if (std::ranges::find(kShells, program) == kShells.end()) return 0;
  for (size_t i = 1; i + 1 < command.size(); ++i) {
    const std::string& flag = command[i];
    if (flag.size() < 2 || flag[0] != '-') return 0;
    if (flag[1] != '-' && flag.find('c') != std::string::npos) return i + 1;
    if (flag == "-o") ++i;  // and its name
  }
  return 0;
}

// Why a placeholder must not stand in the script of a shell, and what would be right.
std::string read_as_code(const std::vector<std::string>& command, size_t script,
                         const std::string& typed, const std::string& variable) {
  const std::string& shell = command.front();
  const std::string why = typed + " in the script of " + shell + " would be read as code: ";
  if (command[script] == typed)
    return why + "to run each line of a file as a command, use --commands FILE, or eval \"$" +
           variable + "\"";
  return why + "pass it as an argument, " + shell + " -c 'echo \"$1\"' sh " + typed +
         ", or use \"$" + variable + "\"; to run lines as commands, use --commands FILE";
}

core::Input split_at_tabs(const core::Input& row) {
  core::Input out;
  for (size_t from = 0; from <= row.front().size();) {
    const size_t end = std::min(row.front().find('\t', from), row.front().size());
    out.push_back(row.front().substr(from, end - from));
    from = end + 1;
  }
  return out;
}

size_t columns_in(const core::Input& row) {
  if (row.size() != 1) return row.size();
  return 1 + static_cast<size_t>(std::ranges::count(row.front(), '\t'));
}

// That each input has. Those of one list are separated by tabs.
size_t columns_of(const std::vector<core::Input>& rows) {
  size_t columns = columns_in(rows.front());
  for (const core::Input& row : rows) columns = std::min(columns, columns_in(row));
  return columns;
}

// Which input has no more columns than these, if others have.
std::string where_fewest(const std::vector<core::Input>& rows, size_t columns) {
  const auto most = std::ranges::max(rows, {}, columns_in);
  if (columns_in(most) == columns) return "";
  const auto fewest = std::ranges::find(rows, columns, columns_in);
  return ", as input " + std::to_string(fewest - rows.begin() + 1) + " has; others have " +
         std::to_string(columns_in(most)) + ", separated by tabs";
}

// As lines of text; absent: values would be read as something else. A tab in the only value of a
// row stays: the input is the whole line, of which the node also makes columns.
std::optional<std::string> lines_text(const std::vector<core::Input>& rows) {
  const bool tabs = std::ranges::any_of(rows, [](const core::Input& row) {
    return row.size() == 1 && row.front().find('\t') != std::string::npos;
  });
  if (!tabs) return core::text_of(rows);
  std::vector<core::Input> columns;
  columns.reserve(rows.size());
  for (const core::Input& row : rows) columns.push_back(row.size() == 1 ? split_at_tabs(row) : row);
  return core::text_of(columns);
}

}  // namespace

Result<std::vector<core::Input>> parse_csv(const std::string& text, std::vector<size_t>* lines) {
  std::vector<core::Input> rows;
  core::Input row;
  std::string value;
  size_t line = 1, begun = 1, opened = 0;  // line of the record, and of the open quote; 0: none
  const auto end_row = [&] {
    if (lines != nullptr) lines->push_back(begun);
    begun = line;
    row.push_back(std::exchange(value, ""));
    rows.push_back(std::exchange(row, {}));
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (opened != 0) {
      if (c != '"') {
        value += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        value += text[++at];
      } else {
        opened = 0;
      }
    } else if (c == '"' && value.empty()) {
      opened = line;
    } else if (c == ',') {
      row.push_back(std::exchange(value, ""));
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r' || at + 1 == text.size() || text[at + 1] != '\n') {
      value += c;
    }
  }
  if (opened != 0) return invalid("line " + std::to_string(opened) + ": the quote is not closed");
  if (!row.empty() || !value.empty()) end_row();
  return rows;
}

Result<Inputs> read_inputs(const EachWishes& each) {
  Inputs out;
  if (!each.csv.empty()) {
    auto read = read_csv(each.csv);
    if (!read) return read.error();
    out = std::move(*read);
  } else {
    out.rows.emplace_back();
    for (const std::string& file : each.files) {
      auto text = read_text(file);
      if (!text) return text.error();
      auto lines = split(*text, each.null ? '\0' : '\n');
      if (!each.null) out.returns |= drop_returns(lines, text->ends_with('\n'));
      if (lines.empty())
        return invalid(shown_path(file) + ": is empty, so there is nothing to run");
      if (lines.size() > kRowsMax / out.rows.size())
        return too_many(lines.size() * out.rows.size());
      for (size_t i = 0; i < lines.size(); ++i)
        if (auto why = too_long(lines[i], shown_path(file) + (each.null ? ": input " : ": line ") +
                                              std::to_string(i + 1)))
          return std::move(*why);
      out.rows = product(out.rows, lines);
    }
    for (const std::vector<std::string>& values : each.values) {
      if (values.size() > kRowsMax / out.rows.size())
        return too_many(values.size() * out.rows.size());
      std::vector<core::Input> lines;
      for (const std::string& value : values) lines.push_back({value});
      out.rows = product(out.rows, lines);
    }
  }
  for (const core::Input& row : out.rows)
    out.blank += std::ranges::all_of(row, [](const std::string& value) {
      return value.find_first_not_of(" \t") == std::string::npos;
    });
  for (size_t i = 0; i < out.rows.size(); ++i) {
    if (auto why = too_long(out.rows[i], "input " + std::to_string(i))) return std::move(*why);
    for (const std::string& value : out.rows[i])
      if (value.find('\0') != std::string::npos)
        return invalid("input " + std::to_string(i) +
                       " contains a null byte: use -0 if null bytes separate the inputs");
  }
  return out;
}

Result<Inputs> read_commands(const std::string& file) {
  auto text = read_text(file);
  if (!text) return text.error();
  Inputs out;
  size_t number = 0;
  for (core::Input& line : split(*text, '\n')) {
    ++number;
    std::string& command = line.front();
    if (command.ends_with('\r')) command.pop_back();
    const size_t first = command.find_first_not_of(" \t");
    if (first == std::string::npos || command[first] == '#') continue;
    if (command.find('\0') != std::string::npos)
      return invalid(shown_path(file) + ": contains a null byte, so it is not a file of commands");
    if (auto why = too_long(line, shown_path(file) + ": line " + std::to_string(number)))
      return std::move(*why);
    out.rows.push_back(std::move(line));
  }
  if (out.rows.empty()) return invalid(shown_path(file) + ": has no commands");
  if (out.rows.size() > kRowsMax) return too_many(out.rows.size());
  return out;
}

Result<Inputs> array_inputs(const std::string& text, int32_t& at_once) {
  const auto wrong = [&text](const std::string& why) {
    return invalid("`" + text + "`: " + why + "; write it as 1-100, 0-15:4 or 1,5,9-12, with %10 " +
                   "for at most 10 at once");
  };
  const auto number = [](std::string_view digits) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (!is_number(digits) || error != std::errc() || value > INT32_MAX) return std::nullopt;
    return value;
  };
  std::string_view ranges = text;
  if (const size_t percent = ranges.find('%'); percent != std::string_view::npos) {
    const auto most = number(ranges.substr(percent + 1));
    if (!most || *most == 0) return wrong("% must be followed by a number above 0");
    at_once = static_cast<int32_t>(*most);
    ranges = ranges.substr(0, percent);
  }
  std::vector<uint32_t> numbers;
  for (size_t from = 0; from <= ranges.size();) {
    const size_t end = std::min(ranges.find(',', from), ranges.size());
    const size_t begin = std::exchange(from, end + 1);
    std::string_view range = ranges.substr(begin, end - begin);
    std::optional<int64_t> step = 1;
    if (const size_t colon = range.find(':'); colon != std::string_view::npos) {
      step = number(range.substr(colon + 1));
      range = range.substr(0, colon);
    }
    const size_t dash = range.find('-');
    const auto first = number(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
    const std::string typed(ranges.substr(begin, end - begin));
    if (step && *step == 0) return wrong("the step of " + typed + " is 0");
    if (!first || !last || !step)
      return wrong(has_large_number(typed) ? "the highest number is " + std::to_string(INT32_MAX)
                                           : "`" + typed + "` is neither a number nor a range");
    if (*last < *first) return wrong(typed + " runs backwards");
    for (int64_t value = *first; value <= *last; value += *step) {
      numbers.push_back(static_cast<uint32_t>(value));
      if (numbers.size() > kRowsMax) return too_many(numbers.size());
    }
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  Inputs out;
  for (const uint32_t value : numbers) out.rows.push_back({std::to_string(value)});
  out.ranges = core::ranges_of(numbers);
  out.numbers = std::move(numbers);
  return out;
}

bool has_placeholder(const std::vector<std::string>& command, bool or_column) {
  bool found = false;
  for (const std::string& word : command)
    each_part(
        word, {}, [](std::string_view) {},
        [&](const Placeholder& one, std::string_view) { found |= or_column || one.column.empty(); },
        [](size_t, std::string_view) {});
  return found;
}

std::vector<std::string> with_values(std::vector<std::string> command, size_t lists) {
  if (has_placeholder(command, true)) return command;
  if (lists == 1) command.emplace_back("{}");
  for (size_t i = 1; lists > 1 && i <= lists; ++i) command.push_back("{" + std::to_string(i) + "}");
  return command;
}

Result<std::vector<std::string>> with_references(const std::vector<std::string>& command,
                                                 const Inputs& inputs) {
  // A row of one list, with tabs, is also read as columns.
  const bool tabs = inputs.names.empty() && inputs.rows.front().size() == 1;
  const size_t columns = tabs ? columns_of(inputs.rows) : inputs.rows.front().size();
  const size_t script = script_place(command);
  std::vector<std::string> out;
  std::string wrong;
  for (size_t i = 0; i < command.size(); ++i) {
    std::string& word = out.emplace_back();
    const auto refer = [&](const Placeholder& one, std::string_view typed) {
      size_t column = 0;  // 0: all
      if (is_number(one.column)) {
        std::from_chars(one.column.data(), one.column.data() + one.column.size(), column);
        if (column == 0 || column > columns)
          wrong = std::string(typed) + ": there is no such column; the inputs have " +
                  std::to_string(columns) + (tabs ? where_fewest(inputs.rows, columns) : "");
      } else if (!one.column.empty()) {
        column = static_cast<size_t>(std::ranges::find(inputs.names, one.column) -
                                     inputs.names.begin()) +
                 1;
      }
      std::string variable(core::kInputVariable);
      if (column != 0 && columns > 1) variable += "_" + std::to_string(column);
      if (script != 0 && i == script && !one.is_index)
        wrong = read_as_code(command, script, std::string(typed), variable);
      word.append("$(").append(variable).append(one.part).append(1, ')');
    };
    const auto keep = [&word](std::string_view text) { word += unexpanded(text); };
    const auto look_at = [&](size_t open, std::string_view name) {
      if (wrong.empty()) wrong = unknown_column(command[i], open, name, inputs.names);
    };
    each_part(command[i], inputs.names, keep, refer, look_at);
    if (!wrong.empty()) return invalid(wrong);
  }
  return out;
}

InputsFile add_inputs(Json& manifest, const Inputs& inputs) {
  auto text = lines_text(inputs.rows);
  if (text && text->size() <= kCarriedMax && is_utf8(*text)) {
    manifest["metadata"]["annotations"][std::string(core::kInputsKey)] = std::move(*text);
    return {};
  }
  if (!inputs.ranges.empty() && inputs.ranges.size() <= kRangesMax) {
    manifest["metadata"]["annotations"][std::string(core::kInputsKey)] = inputs.ranges;
    return {};
  }
  InputsFile file;
  file.bytes = text ? std::move(*text) : core::packed(inputs.rows);
  file.name = "inputs-" + tls::sha256_hex(file.bytes).substr(0, kNameDigits);
  return file;
}

void name_file(Json& manifest, const std::string& path) {
  manifest["metadata"]["annotations"][std::string(core::kInputsFileKey)] = path;
}

JobInputs::JobInputs(const Json& job) {
  const Json& annotations = at(job, {"metadata", "annotations"});
  std::string bytes = text_at(annotations, {core::kInputsKey.data()});
  if (bytes.empty()) {
    const std::string path = text_at(annotations, {core::kInputsFileKey.data()});
    const auto file =
        path.empty() ? Result<Fd>(invalid("no file")) : open_for_owner(path, pods_user(job));
    // What its owner could not read must not show, even to those who can.
    const bool shown =
        file.ok() && (pods_user(job) == geteuid() || belongs_to(*file, pods_user(job)).ok());
    if (!shown || !read_whole(*file, bytes)) return;
  }
  if (auto table = core::InputTable::of(std::move(bytes))) table_ = std::move(*table);
}

std::optional<std::string> JobInputs::value(int64_t index, std::string_view reference) const {
  if (!table_ || index < 0) return std::nullopt;
  const auto row = table_->row(static_cast<size_t>(index));
  return row ? core::input_value(*row, static_cast<size_t>(index), reference) : std::nullopt;
}

std::optional<std::string> JobInputs::of(int64_t index) const {
  if (!table_ || index < 0) return std::nullopt;
  const auto row = table_->row(static_cast<size_t>(index));
  if (!row) return std::nullopt;
  std::string text;
  for (const std::string& value : *row) text += (text.empty() ? "" : " ") + value;
  return one_line(text);
}

bool stdin_is_piped() {
  struct stat found {
  }, parents{};
  if (fstat(STDIN_FILENO, &found) != 0 ||
      !(S_ISFIFO(found.st_mode) || S_ISREG(found.st_mode) || S_ISSOCK(found.st_mode)))
    return false;
  const std::string parent = "/proc/" + std::to_string(getppid());
  const bool shared = stat((parent + "/fd/0").c_str(), &parents) == 0 &&
                      parents.st_dev == found.st_dev && parents.st_ino == found.st_ino;
  std::string program;
  std::ifstream comm(parent + "/comm");
  std::getline(comm, program);
  constexpr std::array kShells = {"sh",   "bash", "dash", "zsh", "ksh",
                                  "mksh", "fish", "csh",  "tcsh"};
  return !shared || std::find(kShells.begin(), kShells.end(), program) == kShells.end();
}

std::string path_of_stdin() {
  struct stat found {
  }, named{};
  if (fstat(STDIN_FILENO, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size == 0 ||
      lseek(STDIN_FILENO, 0, SEEK_CUR) != 0)
    return "";
  std::error_code gone;
  const std::string path = std::filesystem::read_symlink("/proc/self/fd/0", gone).string();
  const bool same = !gone && stat(path.c_str(), &named) == 0 && named.st_dev == found.st_dev &&
                    named.st_ino == found.st_ino;
  return same && is_utf8(path) ? path : "";
}

Result<InputsFile> rest_of_stdin() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (poll(&input, 1, kNoticeMs) == 0)
    std::cerr << "muster: reading stdin, which rank 0 gets, to its end; if there is none, use "
                 "</dev/null"
              << std::endl;
  InputsFile file;
  std::array<char, 1 << 16> chunk{};
  for (;;) {
    const ssize_t size = read(STDIN_FILENO, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return invalid(std::string("cannot read stdin: ") + std::strerror(errno));
    if (size == 0) break;
    file.bytes.append(chunk.data(), static_cast<size_t>(size));
    if (file.bytes.size() > core::kInputFileMax)
      return invalid("stdin: more than " + std::to_string(core::kInputFileMax >> 20) +
                     " MiB is piped in; use a file that the nodes can read: <FILE");
  }
  if (!file.bytes.empty())
    file.name = "stdin-" + tls::sha256_hex(file.bytes).substr(0, kNameDigits);
  return file;
}

bool stdin_waits() {
  struct stat found {};
  if (!stdin_is_piped() || fstat(STDIN_FILENO, &found) != 0) return false;
  if (S_ISREG(found.st_mode)) return lseek(STDIN_FILENO, 0, SEEK_CUR) < found.st_size;
  int bytes = 0;
  return ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace muster::cli
