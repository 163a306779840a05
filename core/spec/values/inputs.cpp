#include "core/spec/values/inputs.hpp"

#include <algorithm>
#include <charconv>

namespace muster::core {
namespace {

constexpr std::string_view kPacked = "muster inputs 1\n";
constexpr size_t kColumnsMax = 10'000;
constexpr std::string_view kRanges = "0 ";  // in the place of the number of columns
constexpr size_t kRowsMax = size_t{1} << 31;

// Removes and returns the number at the beginning of `text`; nullopt: there is none, or it is 0.
std::optional<size_t> leading_number(std::string_view& text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number == 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view directory(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A name whose only dot is its first character has no extension.
std::string_view without_extension(std::string_view path) {
  const size_t dot = path.rfind('.'), begin = path.rfind('/') + 1;
  return dot == std::string_view::npos || dot <= begin ? path : path.substr(0, dot);
}

std::optional<std::string_view> part_of(std::string_view value, std::string_view part) {
  if (part.empty()) return value;
  if (part == ".") return without_extension(value);
  if (part == "/") return base_name(value);
  if (part == "//") return directory(value);
  if (part == "/.") return without_extension(base_name(value));
  return std::nullopt;
}

// Reads a number from the beginning of `text` and removes it.
bool take_number(std::string_view& text, uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Status InputTable::read_ranges(std::string_view text) {
  const Error damaged{Errc::invalid, "the ranges of the inputs are damaged", {}};
  do {
    Run run;
    if (!take_number(text, run.first)) return damaged;
    run.last = run.first;
    if (take_char(text, '-') && !take_number(text, run.last)) return damaged;
    if (take_char(text, ':') && !take_number(text, run.step)) return damaged;
    const bool ascends = runs_.empty() || run.first > runs_.back().last;
    if (!ascends || run.step == 0 || run.last < run.first) return damaged;
    run.last -= (run.last - run.first) % run.step;
    run.end = size() + (run.last - run.first) / run.step + 1;
    if (run.end > kRowsMax) return damaged;
    runs_.push_back(run);
  } while (take_char(text, ','));
  if (text != "\n") return damaged;
  return Nothing{};
}

Result<InputTable> InputTable::of(std::string bytes) {
  InputTable table;
  std::string_view rest = bytes;
  if (rest.starts_with(kPacked)) {
    rest.remove_prefix(kPacked.size());
    if (rest.starts_with(kRanges)) {
      rest.remove_prefix(kRanges.size());
      if (Status read = table.read_ranges(rest); !read) return read.error();
      table.bytes_ = std::move(bytes);
      return table;
    }
    const auto columns = leading_number(rest);
    if (!columns || *columns > kColumnsMax || !rest.starts_with('\n') ||
        (rest.size() > 1 && rest.back() != '\0'))
      return Error{Errc::invalid, "the packed inputs are damaged", {}};
    table.columns_ = *columns;
    rest.remove_prefix(1);
  }
  table.begin_ = bytes.size() - rest.size();
  const char end = table.columns_ == 0 ? '\n' : '\0';
  const size_t values = std::max<size_t>(1, table.columns_);
  size_t count = 0;
  for (size_t at = table.begin_; at < bytes.size();) {
    at = std::min(bytes.find(end, at), bytes.size() - 1) + 1;
    if (++count % values == 0) table.ends_.push_back(at);
  }
  if (count % values != 0) return Error{Errc::invalid, "the packed inputs are damaged", {}};
  table.bytes_ = std::move(bytes);
  return table;
}

std::optional<Input> InputTable::row(size_t index) const {
  if (index >= size()) return std::nullopt;
  if (!runs_.empty()) {
    const auto run = std::ranges::upper_bound(runs_, index, {}, &Run::end);
    const auto left = static_cast<uint32_t>(run->end - 1 - index);
    return Input{std::to_string(run->last - left * run->step)};
  }
  const size_t begin = index == 0 ? begin_ : ends_[index - 1];
  std::string_view rest = std::string_view(bytes_).substr(begin, ends_[index] - begin);
  const char separator = columns_ == 0 ? '\t' : '\0';
  if (rest.ends_with(columns_ == 0 ? '\n' : '\0')) rest.remove_suffix(1);
  Input row;
  for (;;) {
    const size_t end = std::min(rest.find(separator), rest.size());
    row.emplace_back(rest.substr(0, end));
    if (end == rest.size()) return row;
    rest.remove_prefix(end + 1);
  }
}

std::string input_text(const Input& row) {
  std::string text = row.front();
  for (size_t i = 1; i < row.size(); ++i) text.append(1, '\t').append(row[i]);
  return text;
}

std::optional<std::string> input_value(const Input& row, size_t index, std::string_view reference) {
  if (!reference.starts_with(kInputVariable)) return std::nullopt;
  reference.remove_prefix(kInputVariable.size());
  if (reference == "#") return std::to_string(index + 1);
  std::string value;
  if (reference.starts_with('_')) {
    reference.remove_prefix(1);
    const auto column = leading_number(reference);
    if (!column || *column > row.size()) return std::nullopt;
    value = row[*column - 1];
  } else {
    value = input_text(row);
  }
  const auto part = part_of(value, reference);
  if (!part) return std::nullopt;
  return std::string(*part);
}

std::optional<std::string> text_of(const std::vector<Input>& rows) {
  static constexpr std::string_view kSeparators("\t\n\0", 3);
  std::string text;
  for (const Input& row : rows) {
    for (const std::string& value : row)
      if (value.find_first_of(kSeparators) != std::string::npos) return std::nullopt;
    text.append(input_text(row)).append(1, '\n');
  }
  if (text.starts_with(kPacked)) return std::nullopt;
  return text;
}

std::string ranges_of(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;  // of the longest run with one step from here
    const uint32_t step = end < numbers.size() ? numbers[end] - numbers[i] : 1;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    if (end - i == 2 && step > 1) --end;  // "1,9", not "1-9:8"
    text.append(text.empty() ? "" : ",").append(std::to_string(numbers[i]));
    if (end - i > 1) text.append("-").append(std::to_string(numbers[end - 1]));
    if (end - i > 1 && step > 1) text.append(":").append(std::to_string(step));
    i = end;
  }
  return with_ranges(text);
}

std::optional<std::string_view> ranges_in(std::string_view bytes) {
  for (const std::string_view head : {kPacked, kRanges}) {
    if (!bytes.starts_with(head)) return std::nullopt;
    bytes.remove_prefix(head.size());
  }
  return bytes.substr(0, bytes.find('\n'));
}

std::string with_ranges(std::string_view ranges) {
  return std::string(kPacked).append(kRanges).append(ranges).append("\n");
}

std::string packed(const std::vector<Input>& rows) {
  std::string bytes(kPacked);
  bytes += std::to_string(rows.empty() ? 1 : rows.front().size()) + "\n";
  for (const Input& row : rows)
    for (const std::string& value : row) bytes.append(value).append(1, '\0');
  return bytes;
}

}  // namespace muster::core
