#include "client/news/history.hpp"

#include "base/text/time_text.hpp"
#include "client/connect/objects.hpp"
#include "client/news/usage.hpp"
#include "client/terminal/local_time.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <grp.h>
#include <tuple>
#include <utility>

namespace muster::cli {
namespace {

std::string whole_at(const Json& entry, std::initializer_list<const char*> keys) {
  return std::to_string(number_at(entry, keys));
}

std::string group_of(const Json& entry) {
  return entry.contains("groupId") ? group_text(number_at(entry, {"groupId"})) : "";
}

std::string user_of(const Json& entry) {
  const std::string name = text_at(entry, {"user"});
  return name.empty() && entry.contains("userId") ? whole_at(entry, {"userId"}) : name;
}

// "Complete", "Failed (BackoffLimitExceeded)".
std::string state_text(const Json& entry) {
  std::string text = text_at(entry, {"state"});
  const std::string reason = text_at(entry, {"reason"});
  if (text == "Failed" && !reason.empty()) text += " (" + reason + ")";
  return text;
}

}  // namespace

std::string history_path(const std::string& ns, const std::string& what) {
  return "/apis/muster.dev/v1/" + (ns.empty() ? "" : "namespaces/" + url_encoded(ns) + "/") + what;
}

double fraction_at(const Json& json, std::initializer_list<const char*> keys) {
  const Json& value = at(json, keys);
  return value.is_number() ? value.get<double>() : 0;
}

std::string decimals(double number) {
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "%.3f", number);
  return text.data();
}

std::string instant_at(const Json& entry, const char* field) {
  const auto at_ms = parse_time(text_at(entry, {field}));
  return at_ms ? local_text(*at_ms) : "";
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : std::move(text);
}

double cpu_seconds_used(const Json& entry) {
  return fraction_at(entry, {"usage", "userSeconds"}) +
         fraction_at(entry, {"usage", "systemSeconds"});
}

Status each_item(ApiClient& client, const std::string& path,
                 const std::function<void(const Json&)>& take,
                 const std::function<void(const Json&)>& see) {
  std::string token;
  do {
    auto page = object(client, token.empty() ? path : path + "&continue=" + url_encoded(token));
    if (!page) return page.error();
    for (const Json& item : at(*page, {"items"})) take(item);
    see(at(*page, {"metadata"}));
    token = text_at(*page, {"metadata", "continue"});
  } while (!token.empty());
  return Nothing{};
}

std::string group_text(int64_t gid) {
  const group* found = ::getgrgid(static_cast<gid_t>(gid));
  return found != nullptr ? found->gr_name : std::to_string(gid);
}

std::optional<double> elapsed_seconds(const Json& entry, Millis now) {
  const auto from = parse_time(text_at(entry, {"started"}));
  if (!from) return std::nullopt;
  const Millis to = parse_time(text_at(entry, {"ended"})).value_or(now);
  return static_cast<double>(std::max<Millis>(0, to - *from)) / 1000;
}

std::vector<std::string> history_header(bool wide, bool namespaces) {
  std::vector<std::string> header = {"NAME",    "USER",  "QUEUE",   "STATE", "INDEXES",
                                     "CREATED", "ENDED", "ELAPSED", "CPU",   "MEMORY"};
  if (wide)
    for (const char* more :
         {"ID", "GROUP", "STARTED", "WAITED", "ATTEMPTS", "FAILED", "REMOVED", "COMMAND"})
      header.emplace_back(more);
  if (namespaces) header.insert(header.begin(), "NAMESPACE");
  return header;
}

std::vector<std::string> history_cells(const Json& entry, Millis now, bool wide, bool namespaces) {
  const auto elapsed = elapsed_seconds(entry, now);
  const Requested requested{1, fraction_at(entry, {"requests", "memoryBytes"})};
  const Json& usage = at(entry, {"usage"});
  std::vector<std::string> cells = {
      text_at(entry, {"name"}),
      or_dash(user_of(entry)),
      text_at(entry, {"queue"}),
      state_text(entry),
      whole_at(entry, {"succeeded"}) + "/" + whole_at(entry, {"indexes"}),
      or_dash(instant_at(entry, "created")),
      or_dash(instant_at(entry, "ended")),
      elapsed ? precise_span(*elapsed) : "-",
      cpu_text(usage, fraction_at(entry, {"cpuHeldSeconds"}), requested),
      memory_text(usage, requested)};
  if (wide) {
    const std::string removal = text_at(entry, {"removal"});
    for (std::string more :
         {text_at(entry, {"id"}), or_dash(group_of(entry)), or_dash(instant_at(entry, "started")),
          elapsed ? precise_span(fraction_at(entry, {"waitedSeconds"})) : std::string("-"),
          whole_at(entry, {"attempts"}), whole_at(entry, {"failedAttempts"}),
          removal.empty() ? std::string("-") : removal + " " + instant_at(entry, "removed"),
          one_line(text_at(entry, {"command"}))})
      cells.push_back(std::move(more));
  }
  if (namespaces) cells.insert(cells.begin(), text_at(entry, {"namespace"}));
  return cells;
}

std::string history_tsv_header() {
  return "Id\tNamespace\tName\tUid\tUser\tGroup\tQueue\tState\tReason\tRemoval\tCreated\tStarted\t"
         "Ended\tRemoved\tWaited\tElapsed\tIndexes\tSucceeded\tFailedindexes\tCancelledindexes\t"
         "Attempts\tFailedattempts\tUsertime\tSystemtime\tPeakmemory\tRuntime\tCpuheld\tCpurequest"
         "\tMemoryrequest\tCommand\n";
}

std::string history_tsv_line(const Json& entry, Millis now) {
  std::string line;
  auto put = [&line](const std::string& text) {
    if (!line.empty()) line += '\t';
    line += tsv_cell(text);
  };
  for (const char* field : {"id", "namespace", "name", "uid"}) put(text_at(entry, {field}));
  put(user_of(entry));
  put(group_of(entry));
  for (const char* field : {"queue", "state", "reason", "removal"}) put(text_at(entry, {field}));
  for (const char* field : {"created", "started", "ended", "removed"})
    put(instant_at(entry, field));
  put(decimals(fraction_at(entry, {"waitedSeconds"})));
  put(decimals(elapsed_seconds(entry, now).value_or(0)));
  for (const char* field :
       {"indexes", "succeeded", "failedIndexes", "cancelledIndexes", "attempts", "failedAttempts"})
    put(whole_at(entry, {field}));
  put(decimals(fraction_at(entry, {"usage", "userSeconds"})));
  put(decimals(fraction_at(entry, {"usage", "systemSeconds"})));
  put(whole_at(entry, {"usage", "peakMemoryBytes"}));
  put(decimals(fraction_at(entry, {"ranSeconds"})));
  put(decimals(fraction_at(entry, {"cpuHeldSeconds"})));
  put(decimals(fraction_at(entry, {"requests", "cpuMillis"}) / 1000));
  put(whole_at(entry, {"requests", "memoryBytes"}));
  put(text_at(entry, {"command"}));
  return line + "\n";
}

const std::vector<std::string>& history_sort_words() {
  static const std::vector<std::string> words = {"created", "started", "ended", "name",
                                                 "user",    "queue",   "state", "elapsed",
                                                 "waited",  "cpu",     "memory"};
  return words;
}

void LastEntries::add(const Json& entry) {
  ++seen_;
  One one;
  one.id = whole_number(text_at(entry, {"id"})).value_or(0);
  one.entry = entry;
  if (by_ == "created" || by_ == "started" || by_ == "ended")
    // What has not come is last.
    one.number = static_cast<double>(parse_time(text_at(entry, {by_.c_str()})).value_or(INT64_MAX));
  else if (by_ == "elapsed")
    one.number = elapsed_seconds(entry, now_).value_or(0);
  else if (by_ == "waited")
    one.number = fraction_at(entry, {"waitedSeconds"});
  else if (by_ == "cpu")
    one.number = cpu_seconds_used(entry);
  else if (by_ == "memory")
    one.number = fraction_at(entry, {"usage", "peakMemoryBytes"});
  else
    one.text = by_ == "user" ? user_of(entry) : text_at(entry, {by_.c_str()});
  kept_.push_back(std::move(one));
  if (limit_ != 0 && kept_.size() >= 2 * limit_) drop();
}

bool LastEntries::before(const One& a, const One& b) {
  return std::tie(a.number, a.text, a.id) < std::tie(b.number, b.text, b.id);
}

void LastEntries::drop() {
  if (limit_ == 0 || kept_.size() <= limit_) return;
  const auto first = kept_.end() - static_cast<ptrdiff_t>(limit_);
  std::nth_element(kept_.begin(), first, kept_.end(), before);
  kept_.erase(kept_.begin(), first);
}

std::vector<Json> LastEntries::take() {
  drop();
  std::sort(kept_.begin(), kept_.end(), before);
  if (reverse_) std::reverse(kept_.begin(), kept_.end());
  std::vector<Json> entries;
  for (One& one : kept_) entries.push_back(std::move(one.entry));
  return entries;
}

}  // namespace muster::cli
