#include "api/routes/history_routes.hpp"

#include "api/view/render/history_json.hpp"
#include "base/text/comma_list.hpp"
#include "base/text/time_text.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kEntriesRead = 20'000;                      // entries per request
constexpr size_t kEntriesMax = 1000, kEntriesDefault = 500;  // that one response has
constexpr size_t kSumsMax = 10'000;                          // likewise
constexpr size_t kBoundsMax = 1001;

Error not_one_of(const std::string& parameter, const std::string& word, const std::string& known) {
  return invalid(parameter + ": \"" + word + "\" is not one of " + known);
}

Status read_instant(const Url& url, const std::string& parameter, std::optional<Millis>& into) {
  const std::string text = url.get(parameter);
  if (text.empty()) return Nothing{};
  into = parse_time(text);
  if (into) return Nothing{};
  return invalid(parameter + ": \"" + text + "\" is not an instant such as 2026-12-01T18:00:00Z");
}

// A state, or how a job was removed: of all jobs that were, whatever their state before.
Status read_states(const Url& url, core::HistoryFilter& filter) {
  for (const std::string& word : split_at_commas(url.get("state"))) {
    const auto state = core::past_state(word);
    if (state)
      filter.states.insert(*state);
    else if (word == "Expired" || word == "expired")
      filter.removals.insert(core::Removal::expired);
    else
      return not_one_of("state", word,
                        "Pending, Held, Suspended, Running, Complete, Failed, Cancelled, Deleted, "
                        "Expired");
  }
  return Nothing{};
}

Result<std::vector<core::ReportColumn>> columns_of(const Url& url) {
  std::vector<core::ReportColumn> columns;
  for (const std::string& word : split_at_commas(url.get("by"))) {
    const auto column = core::report_column(word);
    if (!column) return not_one_of("by", word, "user, group, queue, namespace, name, state, span");
    if (std::ranges::find(columns, *column) == columns.end()) columns.push_back(*column);
  }
  return columns;
}

Result<std::vector<Millis>> bounds_of(const Url& url) {
  const std::string list = url.get("bounds");
  if (list.empty())
    return std::vector<Millis>{0, std::numeric_limits<Millis>::max()};  // all of time
  std::vector<Millis> bounds;
  for (const std::string& text : split_at_commas(list)) {
    const auto at = parse_time(text);
    if (!at) return invalid("bounds: \"" + text + "\" is not an instant");
    if (!bounds.empty() && *at <= bounds.back())
      return invalid("bounds: \"" + text + "\" is not after the one before it");
    bounds.push_back(*at);
  }
  if (bounds.size() >= 2 && bounds.size() <= kBoundsMax) return bounds;
  return invalid("bounds: must be 2 to " + std::to_string(kBoundsMax) + " instants");
}

void put_continue(OrderedJson& list, const std::optional<JobId>& last) {
  list["metadata"] = OrderedJson::object();
  if (last) list["metadata"]["continue"] = std::to_string(*last);
}

kj::Promise<void> refuse(Exchange& exchange, const Error& error) {
  const bool none = error.code == Errc::not_found;  // no history
  return exchange.send_status(none ? 404 : 500, none ? "NotFound" : "InternalError", error.message);
}

}  // namespace

bool HistoryRoutes::serves(const MusterTarget& target) {
  return target.what == "history" || target.what == "report" || target.what == "history/attempts";
}

kj::Promise<void> HistoryRoutes::answer(Exchange& exchange, const MusterTarget& target) {
  if (target.what == "history/attempts") return attempts(exchange, target);
  auto filter = filter_of(exchange, target.ns);
  if (!filter.ok()) return exchange.bad(filter.error().message);
  JobId after = 0;
  if (const std::string token = exchange.url.get("continue"); !token.empty()) {
    const auto id = whole_number<JobId>(token);
    if (!id) return exchange.bad("continue: not a token of this server: \"" + token + "\"");
    after = *id;
  }
  return target.what == "report" ? report(exchange, *filter, after)
                                 : list(exchange, *filter, after);
}

kj::Promise<void> HistoryRoutes::list(Exchange& exchange, const core::HistoryFilter& filter,
                                      JobId after) {
  size_t limit = kEntriesDefault;
  std::optional<size_t> newest;  // of those read
  for (const char* name : {"limit", "newest"}) {
    const std::string text = exchange.url.get(name);
    if (text.empty()) continue;
    const auto n = whole_number<size_t>(text);
    if (!n || *n == 0)
      return exchange.bad(std::string(name) + ": not a number above 0: \"" + text + "\"");
    limit = std::min(*n, kEntriesMax);
    if (std::string_view(name) == "newest") newest = limit;
  }
  std::deque<core::HistoryEntry> found;
  uint64_t skipped = 0;
  const auto last = walk(after, [&](const core::HistoryEntry& entry) {
    if (filter.accepts(entry)) found.push_back(entry);
    if (!newest) return found.size() < limit;
    if (found.size() > *newest) {
      found.pop_front();
      ++skipped;
    }
    return true;
  });
  if (!last.ok()) return refuse(exchange, last.error());
  OrderedJson list = {{"kind", "HistoryEntryList"}, {"apiVersion", "muster.dev/v1"}};
  put_continue(list, *last);
  if (newest) list["metadata"]["skipped"] = skipped;
  list["items"] = OrderedJson::array();
  for (const core::HistoryEntry& entry : found) list["items"].push_back(history_json(entry));
  return exchange.send(200, dumped(list) + "\n");
}

kj::Promise<void> HistoryRoutes::report(Exchange& exchange, const core::HistoryFilter& filter,
                                        JobId after) {
  const auto columns = columns_of(exchange.url);
  if (!columns.ok()) return exchange.bad(columns.error().message);
  const auto bounds = bounds_of(exchange.url);
  if (!bounds.ok()) return exchange.bad(bounds.error().message);
  core::UsageReport report(*columns, *bounds, options_.now());
  const auto last = walk(after, [&](const core::HistoryEntry& entry) {
    if (filter.accepts(entry)) report.add(entry);
    return report.sums().size() < kSumsMax;
  });
  if (!last.ok()) return refuse(exchange, last.error());
  OrderedJson list = {{"kind", "UsageSumList"}, {"apiVersion", "muster.dev/v1"}};
  put_continue(list, *last);
  list["items"] = OrderedJson::array();
  for (const auto& [key, sum] : report.sums())
    list["items"].push_back(sum_json(*columns, key, sum));
  return exchange.send(200, dumped(list) + "\n");
}

kj::Promise<void> HistoryRoutes::attempts(Exchange& exchange, const MusterTarget& target) {
  const auto id = whole_number<JobId>(target.name);
  const Error none{Errc::not_found, "", {}};
  if (!id || *id == 0) return exchange.send_error(none, "history", target.name);
  std::optional<core::HistoryEntry> found;
  const auto last = walk(*id - 1, [&](const core::HistoryEntry& entry) {
    if (entry.id == *id) found = entry;
    return false;
  });
  if (!last.ok()) return refuse(exchange, last.error());
  if (!found || !own_jobs(exchange, target.ns).accepts(*found))
    return exchange.send_error(none, "history", target.name);
  return attempts_.list(exchange, *id,
                        {.name = found->name,
                         .uid = found->uid,
                         .indexed = found->indexed,
                         .created_ms = found->created_ms});
}

Result<std::optional<JobId>> HistoryRoutes::walk(
    JobId after, const std::function<bool(const core::HistoryEntry&)>& visit) {
  JobId at = after;
  size_t read = 0;
  bool enough = false;
  auto take = [&](const core::HistoryEntry& entry) {
    at = entry.id;
    enough = !visit(entry) || ++read == kEntriesRead;
    return !enough;
  };
  // Active jobs up to this one, without it.
  const core::Job* next = view_.jobs().next_active(at);
  auto take_active = [&](JobId end) {
    while (next != nullptr && next->id() < end) {
      if (next->id() > at && !take(core::history_entry(*next))) return false;
      next = view_.jobs().next_active(at);
    }
    return true;
  };
  Status scanned = backend_.scan_history(
      after, [&](const core::HistoryEntry& entry) { return take_active(entry.id) && take(entry); });
  if (!scanned.ok()) return scanned.error();
  if (!enough) take_active(std::numeric_limits<JobId>::max());
  return enough ? std::optional(at) : std::nullopt;
}

// What the caller may see of a namespace; of all, if it is empty.
core::HistoryFilter HistoryRoutes::own_jobs(const Exchange& exchange, const std::string& ns) const {
  return {.owner = gate_.viewer(exchange.caller).uid, .ns = ns};
}

Result<core::HistoryFilter> HistoryRoutes::filter_of(const Exchange& exchange,
                                                     const std::string& ns) const {
  const Url& url = exchange.url;
  core::HistoryFilter filter = own_jobs(exchange, ns);
  filter.uid = url.get("uid");
  for (std::string& user : split_at_commas(url.get("user"))) filter.users.insert(std::move(user));
  for (std::string& queue : split_at_commas(url.get("queue")))
    filter.queues.insert(std::move(queue));
  filter.names = split_at_commas(url.get("name"));
  constexpr size_t kPatternsMax = 100, kPatternMax = 253;  // a job's name is no longer
  if (filter.names.size() > kPatternsMax)
    return invalid("name: at most " + std::to_string(kPatternsMax) + " patterns");
  for (const std::string& pattern : filter.names)
    if (pattern.size() > kPatternMax)
      return invalid("name: a pattern has at most " + std::to_string(kPatternMax) + " characters");
  if (Status ok = read_states(url, filter); !ok) return ok.error();
  if (Status ok = read_instant(url, "since", filter.since); !ok) return ok.error();
  if (Status ok = read_instant(url, "until", filter.until); !ok) return ok.error();
  return filter;
}

}  // namespace muster::api
