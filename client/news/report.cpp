#include "client/news/report.hpp"

#include "client/news/history.hpp"
#include "client/news/usage.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

namespace muster::cli {
namespace {

constexpr const char* kCounts[] = {
    "jobs",      "complete",      "failed",           "cancelled", "deleted",       "indexes",
    "succeeded", "failedIndexes", "cancelledIndexes", "attempts",  "failedAttempts"};

double number_of(const Json& value) {
  return value.is_number() ? value.get<double>() : 0;
}

// Adds numbers of `from` to those of `to`, in parts that are objects as well.
void add_numbers(Json& to, const Json& from) {
  for (const auto& [key, value] : from.items()) {
    Json& mine = to[key];
    if (value.is_object()) {
      if (!mine.is_object()) mine = Json::object();
      add_numbers(mine, value);
    } else if (key == "peakMemoryBytes") {
      mine = std::max(number_at(to, {key.c_str()}), number_at(from, {key.c_str()}));
    } else if (value.is_number_float()) {
      mine = number_of(mine) + number_of(value);
    } else if (value.is_number()) {
      mine = (mine.is_number() ? mine.get<int64_t>() : 0) + value.get<int64_t>();
    }
  }
}

// "12.5h": hours, with as many digits as people compare; short times as "1.204s".
std::string hours_text(double seconds) {
  if (seconds < 36) return precise_span(seconds);
  std::array<char, 48> text;
  const double number = seconds / 3600;
  std::snprintf(text.data(), text.size(),
                number < 10     ? "%.2fh"
                : number < 1000 ? "%.1fh"
                                : "%.0fh",
                number);
  return text.data();
}

std::string efficiency(const Json& sum) {
  const double held = fraction_at(sum, {"cpuHeldSeconds"});
  if (held <= 0) return "-";
  return std::to_string(std::llround(100 * cpu_seconds_used(sum) / held)) + "%";
}

std::vector<std::string> sum_cells(const Json& sum) {
  auto count = [&sum](const char* field) { return std::to_string(number_at(sum, {field})); };
  const int64_t started = number_at(sum, {"started"});
  const double waited = fraction_at(sum, {"waitedSeconds"});
  return {count("jobs"),
          count("failed"),
          count("succeeded") + "/" + count("indexes"),
          count("attempts"),
          count("failedAttempts"),
          hours_text(cpu_seconds_used(sum)),
          hours_text(fraction_at(sum, {"cpuHeldSeconds"})),
          efficiency(sum),
          memory_text(at(sum, {"usage"}), {}),
          started > 0 ? precise_span(waited / static_cast<double>(started)) : "-"};
}

// The beginning of the period that contains this instant, `later` periods on.
std::tm period_parts(const std::string& word, Millis at_ms, int later) {
  const std::time_t at = at_ms / 1000;
  std::tm parts{};
  ::localtime_r(&at, &parts);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  parts.tm_isdst = -1;
  if (word == "day") {
    parts.tm_mday += later;
  } else if (word == "week") {
    parts.tm_mday += 7 * later - (parts.tm_wday + 6) % 7;
  } else {
    parts.tm_mday = 1;
    if (word == "month") parts.tm_mon += later;
    if (word == "year") {
      parts.tm_mon = 0;
      parts.tm_year += later;
    }
  }
  return parts;
}

Millis instant_of(std::tm parts) {
  return Millis{std::mktime(&parts)} * 1000;
}

std::string period_text(const std::string& word, std::tm parts) {
  std::mktime(&parts);  // carries over
  std::array<char, 32> text;
  const char* form = word == "month" ? "%Y-%m" : word == "year" ? "%Y" : "%Y-%m-%d";
  return std::string(text.data(), std::strftime(text.data(), text.size(), form, &parts));
}

}  // namespace

const std::vector<std::string>& period_words() {
  static const std::vector<std::string> words = {"day", "week", "month", "year"};
  return words;
}

Millis period_begin(const std::string& word, Millis at_ms) {
  return instant_of(period_parts(word, at_ms, 0));
}

std::optional<Periods> periods_of(const std::string& word, Millis since, Millis until,
                                  size_t most) {
  Periods periods;
  for (int later = 0;; ++later) {
    const std::tm parts = period_parts(word, since, later);
    const Millis begin = instant_of(parts);
    if (begin >= until) break;
    if (periods.names.size() == most) return std::nullopt;
    periods.bounds.push_back(std::max(since, begin));
    periods.names.push_back(period_text(word, parts));
  }
  periods.bounds.push_back(until);
  return periods;
}

void UsageTable::add(const Json& item) {
  Key key;
  for (const std::string& column : columns_) key.push_back(text_at(item, {"by", column.c_str()}));
  Json& sum = sums_[std::move(key)];
  if (!sum.is_object()) sum = Json::object();
  Json numbers = item;
  numbers.erase("by");
  add_numbers(sum, numbers);
}

std::vector<std::string> UsageTable::key_header() const {
  std::vector<std::string> header;
  for (const std::string& column : columns_)
    header.push_back(column == "span" ? period_name_ : column);
  return header;
}

UsageTable::Key UsageTable::shown(const Key& key) const {
  Key out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string& text = key[i];
    const auto number = whole_number(text);
    if (columns_[i] == "group" && number)
      out.push_back(group_text(*number));
    else if (columns_[i] == "span" && number &&
             static_cast<size_t>(*number) < periods_.names.size())
      out.push_back(periods_.names[static_cast<size_t>(*number)]);
    else
      out.push_back(text);
  }
  return out;
}

std::vector<std::vector<std::string>> UsageTable::cells(bool headers) const {
  std::vector<std::vector<std::string>> rows;
  if (headers) {
    std::vector<std::string>& header = rows.emplace_back();
    for (const std::string& column : key_header()) header.push_back(upper(column));
    for (const char* column : {"JOBS", "FAILED", "INDEXES", "ATTEMPTS", "FAILED ATTEMPTS",
                               "CPU USED", "CPU HELD", "EFFICIENCY", "PEAK MEMORY", "WAITED"})
      header.emplace_back(column);
  }
  Json total = Json::object();
  for (const auto& [key, sum] : sums_) {
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string& text : shown(key)) row.push_back(text.empty() ? "-" : std::move(text));
    for (std::string& cell : sum_cells(sum)) row.push_back(std::move(cell));
    add_numbers(total, sum);
  }
  if (sums_.size() > 1) {
    std::vector<std::string>& row = rows.emplace_back(columns_.size(), "");
    row.front() = "TOTAL";
    for (std::string& cell : sum_cells(total)) row.push_back(std::move(cell));
  }
  return rows;
}

std::string UsageTable::tsv(bool headers) const {
  std::string out;
  if (headers) {
    for (std::string column : key_header()) {
      column.front() = upper(column.substr(0, 1)).front();
      out += column + "\t";
    }
    out +=
        "Jobs\tComplete\tFailed\tCancelled\tDeleted\tIndexes\tSucceeded\tFailedindexes\t"
        "Cancelledindexes\tAttempts\tFailedattempts\tUsertime\tSystemtime\tPeakmemory\tRuntime\t"
        "Cpuheld\tStarted\tWaited\tHeld\n";
  }
  for (const auto& [key, sum] : sums_) {
    for (const std::string& text : shown(key)) out += tsv_cell(text) + "\t";
    for (const char* field : kCounts) out += std::to_string(number_at(sum, {field})) + "\t";
    out += decimals(fraction_at(sum, {"usage", "userSeconds"})) + "\t" +
           decimals(fraction_at(sum, {"usage", "systemSeconds"})) + "\t" +
           std::to_string(number_at(sum, {"usage", "peakMemoryBytes"})) + "\t" +
           decimals(fraction_at(sum, {"ranSeconds"})) + "\t" +
           decimals(fraction_at(sum, {"cpuHeldSeconds"})) + "\t" +
           std::to_string(number_at(sum, {"started"})) + "\t" +
           decimals(fraction_at(sum, {"waitedSeconds"})) + "\t";
    std::string held;
    const Json& resources = at(sum, {"heldSeconds"});
    if (resources.is_object())
      for (const auto& [name, seconds] : resources.items())
        held += (held.empty() ? "" : ",") + name + "=" + decimals(number_of(seconds));
    out += held + "\n";
  }
  return out;
}

Json UsageTable::json() const {
  Json items = Json::array();
  const std::vector<std::string> header = key_header();
  for (const auto& [key, sum] : sums_) {
    Json item = sum;
    const Key values = shown(key);
    Json by = Json::object();
    for (size_t i = 0; i < header.size(); ++i) by[header[i]] = values[i];
    item["by"] = std::move(by);
    items.push_back(std::move(item));
  }
  return {{"kind", "UsageSumList"}, {"apiVersion", "muster.dev/v1"}, {"items", std::move(items)}};
}

}  // namespace muster::cli
