#include "core/cron/schedule.hpp"

#include "core/spec/values/duration.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <utility>
#include <vector>

namespace muster::core {
namespace {

constexpr int64_t kMinute = 60, kHour = 3'600, kDay = 86'400;  // seconds
constexpr int kYears = 5;                                      // that next() looks ahead
constexpr std::string_view kMonthNames = "janfebmaraprmayjunjulaugsepoctnovdec";
constexpr std::string_view kWeekdayNames = "sunmontuewedthufrisat";

struct Descriptor {
  std::string_view name, fields;
};
constexpr Descriptor kDescriptors[] = {{"@yearly", "0 0 1 1 *"},  {"@annually", "0 0 1 1 *"},
                                       {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
                                       {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
                                       {"@hourly", "0 * * * *"}};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space && !inside) words.emplace_back();
    if (!space) words.back() += c;
    inside = !space;
  }
  return words;
}

// As Go's strconv.Atoi.
Result<int64_t> number(const std::string& text) {
  int64_t value = 0;
  const char* const from = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, failed] = std::from_chars(from, text.data() + text.size(), value);
  if (failed == std::errc::result_out_of_range)
    return invalid("failed to parse int from " + text + ": strconv.Atoi: parsing \"" + text +
                   "\": value out of range");
  if (failed != std::errc() || end != text.data() + text.size() || text.starts_with("+-"))
    return invalid("failed to parse int from " + text + ": strconv.Atoi: parsing \"" + text +
                   "\": invalid syntax");
  if (value < 0)
    return invalid("negative number (" + std::to_string(value) + ") not allowed: " + text);
  return value;
}

Result<int64_t> number_or_name(std::string text, std::string_view names, unsigned low) {
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (size_t i = 0; lower.size() == 3 && i < names.size(); i += 3)
    if (names.substr(i, 3) == lower) return int64_t(low + i / 3);
  return number(text);
}

std::chrono::year_month_day date_of(int64_t local_s) {
  return std::chrono::floor<std::chrono::days>(
      std::chrono::sys_seconds(std::chrono::seconds(local_s)));
}

int64_t seconds_of(std::chrono::year_month_day date) {
  return std::chrono::sys_seconds(std::chrono::sys_days(date)).time_since_epoch().count();
}

int64_t floored(int64_t value, int64_t unit) {
  const int64_t rest = value % unit;
  return value - (rest < 0 ? rest + unit : rest);
}

// The instant at which the local time is `target_s`, or an earlier one if the clocks change before
// it; never before the next minute.
int64_t instant_of(int64_t now_s, int64_t local_s, int64_t target_s, const Zone& zone) {
  const int64_t offset = local_s - now_s, guess = target_s - offset;
  return std::max(target_s - std::max(offset, zone(guess)),
                  now_s + kMinute - (local_s - floored(local_s, kMinute)));
}

}  // namespace

Result<Schedule> Schedule::parse(const std::string& text) {
  Schedule out;
  if (text.empty()) return invalid("empty spec string");
  constexpr std::string_view kEvery = "@every ";
  if (text.starts_with(kEvery)) {
    const auto span = parse_duration(std::string_view(text).substr(kEvery.size()));
    if (!span.ok())
      return invalid("failed to parse duration " + text + ": " + span.error().message);
    out.every_s_ = std::max<int64_t>(1, *span / 1000);
    return out;
  }
  std::string fields = text;
  if (text.starts_with('@')) {
    const auto known = std::find_if(std::begin(kDescriptors), std::end(kDescriptors),
                                    [&](const Descriptor& one) { return one.name == text; });
    if (known == std::end(kDescriptors)) return invalid("unrecognized descriptor: " + text);
    fields = known->fields;
  }
  if (auto read = out.read_fields(fields); !read.ok()) return read.error();
  return out;
}

Status Schedule::read_fields(const std::string& text) {
  const std::vector<std::string> words = words_of(text);
  if (words.size() != 5) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return invalid("expected exactly 5 fields, found " + std::to_string(words.size()) + ": [" +
                   all + "]");
  }
  const std::pair<Field*, Range> fields[] = {{&minute_, {0, 59, {}}},
                                             {&hour_, {0, 23, {}}},
                                             {&day_, {1, 31, {}}},
                                             {&month_, {1, 12, kMonthNames}},
                                             {&weekday_, {0, 6, kWeekdayNames}}};
  for (size_t i = 0; i < words.size(); ++i) {
    auto field = read_field(words[i], fields[i].second);
    if (!field.ok()) return field.error();
    *fields[i].first = *field;
  }
  return Nothing{};
}

Result<Schedule::Field> Schedule::read_field(const std::string& text, const Range& range) {
  Field field;
  for (const std::string& part : split(text, ',')) {
    if (part.empty()) continue;
    auto read = read_part(part, range);
    if (!read.ok()) return read;
    field.bits |= read->bits;
    field.any |= read->any;
  }
  return field;
}

Result<Schedule::Field> Schedule::read_part(const std::string& text, const Range& range) {
  const std::vector<std::string> with_step = split(text, '/'), ends = split(with_step[0], '-');
  int64_t low = range.low, high = range.high, step = 1;
  Field field;
  if (ends[0] == "*" || ends[0] == "?") {
    field.any = true;
  } else {
    auto from = number_or_name(ends[0], range.names, range.low);
    if (!from.ok()) return from.error();
    if (ends.size() > 2) return invalid("too many hyphens: " + text);
    auto to = number_or_name(ends.back(), range.names, range.low);
    if (!to.ok()) return to.error();
    low = *from;
    high = *to;
  }
  if (with_step.size() > 2) return invalid("too many slashes: " + text);
  if (with_step.size() == 2) {
    auto given = number(with_step[1]);
    if (!given.ok()) return given.error();
    step = *given;
    if (ends.size() == 1) high = range.high;  // N/STEP means N-MAX/STEP
    if (step > 1) field.any = false;
  }
  if (low < range.low)
    return invalid("beginning of range (" + std::to_string(low) + ") below minimum (" +
                   std::to_string(range.low) + "): " + text);
  if (high > range.high)
    return invalid("end of range (" + std::to_string(high) + ") above maximum (" +
                   std::to_string(range.high) + "): " + text);
  if (low > high)
    return invalid("beginning of range (" + std::to_string(low) + ") beyond end of range (" +
                   std::to_string(high) + "): " + text);
  if (step == 0) return invalid("step of range should be a positive number: " + text);
  for (int64_t n = low; n <= high; n += step) field.bits |= uint64_t{1} << n;
  return field;
}

bool Schedule::has_day(unsigned day, unsigned weekday) const {
  const bool by_day = day_.has(day), by_weekday = weekday_.has(weekday);
  return day_.any || weekday_.any ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<Millis> Schedule::next(Millis after_ms, const Zone& zone) const {
  using namespace std::chrono;
  int64_t now = floored(after_ms, 1000) / 1000 + 1;
  if (every_s_ > 0) return (now - 1 + every_s_) * 1000;
  const int limit = int(date_of(now + zone(now)).year()) + kYears;
  for (;;) {
    int64_t local = now + zone(now);
    if (const int64_t start = floored(local, kMinute); start != local) {
      now += kMinute - (local - start);
      continue;
    }
    const year_month_day date = date_of(local);
    if (int(date.year()) > limit) return std::nullopt;
    const int64_t midnight = seconds_of(date), of_day = local - midnight;
    const unsigned weekday = year_month_weekday(sys_days(date)).weekday().c_encoding();
    int64_t target = local;
    if (!month_.has(unsigned(date.month()))) {
      const year_month after = date.year() / date.month() + months(1);
      target = seconds_of(after / 1);
    } else if (!has_day(unsigned(date.day()), weekday)) {
      target = midnight + kDay;
    } else if (!hour_.has(static_cast<unsigned>(of_day / kHour))) {
      target = midnight + floored(of_day, kHour) + kHour;
    } else if (!minute_.has(static_cast<unsigned>(of_day % kHour / kMinute))) {
      target = local + kMinute;
    }
    if (target == local) return now * 1000;
    now = instant_of(now, local, target, zone);
  }
}

std::optional<Millis> Schedule::last(Millis after_ms, Millis now_ms, const Zone& zone) const {
  if (now_ms <= after_ms) return std::nullopt;
  if (every_s_ > 0) {
    const Millis every_ms = every_s_ * 1000, from_ms = floored(after_ms, 1000);
    const int64_t times = (now_ms - from_ms) / every_ms;
    return times > 0 ? std::optional(from_ms + times * every_ms) : std::nullopt;
  }
  // Look back step by step, so that few starts are visited however long the span is.
  for (const int64_t back_s : {kHour, kDay, 32 * kDay, 366 * kDay, (kYears + 4) * 366 * kDay}) {
    const Millis from_ms = std::max(after_ms, now_ms - back_s * 1000);
    std::optional<Millis> found;
    for (auto start = next(from_ms, zone); start && *start <= now_ms; start = next(*start, zone))
      found = start;
    if (found || from_ms == after_ms) return found;
  }
  return std::nullopt;
}

}  // namespace muster::core
