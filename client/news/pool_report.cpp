#include "client/news/pool_report.hpp"

#include "base/text/time_text.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <utility>

namespace muster::cli {
namespace {

constexpr char kEngine[] = "engine", kAllocations[] = "allocations", kStanding[] = "standing";

Millis pool_instant_at(const Json& json, const char* name) {
  return parse_time(text_at(json, {name})).value_or(0);
}

}  // namespace

Json data_of(const PoolReport& report) {
  Json all = Json::array();
  for (const PoolAllocation& one : report.allocations)
    all.push_back({{"id", one.id},
                   {"state", one.state},
                   {"node", one.node},
                   {"since", time_text(one.since_ms)}});
  return {{kEngine, report.engine},
          {kAllocations, dumped(all)},
          {kStanding, report.standing},
          {kPoolSeen, time_text(report.seen_ms)}};
}

PoolReport pool_report_in(const Json& config_map) {
  const Json& data = at(config_map, {"data"});
  PoolReport report{.ns = text_at(config_map, {"metadata", "namespace"}),
                    .pool = text_at(config_map, {"metadata", "labels", kPoolLabel}),
                    .engine = text_at(data, {kEngine}),
                    .allocations = {},
                    .standing = text_at(data, {kStanding}),
                    .seen_ms = pool_instant_at(data, kPoolSeen)};
  const Json all = read_json(text_at(data, {kAllocations}));
  if (all.is_array())
    for (const Json& one : all)
      report.allocations.push_back({text_at(one, {"id"}), text_at(one, {"state"}),
                                    text_at(one, {"node"}), pool_instant_at(one, "since")});
  return report;
}

Result<std::vector<PoolReport>> pool_reports(ApiClient& client, const std::string& ns) {
  auto list = object(client, object_path(Kind::config_map, ns) + "?labelSelector=" + kPoolLabel);
  if (!list) return list.error();
  std::vector<PoolReport> all;
  for (const Json& one : at(*list, {"items"})) all.push_back(pool_report_in(one));
  std::sort(all.begin(), all.end(), [](const PoolReport& a, const PoolReport& b) {
    return std::pair(a.pool, a.ns) < std::pair(b.pool, b.ns);
  });
  return all;
}

std::string pool_line(const PoolReport& report, Millis now) {
  std::string line;
  const auto tell = [&](const char* what, auto is) {
    const auto n = std::count_if(report.allocations.begin(), report.allocations.end(), is);
    if (n > 0) line += (line.empty() ? "" : ", ") + std::to_string(n) + " " + what;
  };
  const auto leaves = [](const PoolAllocation& one) { return one.state == "Leaving"; };
  tell("queued", [](const PoolAllocation& one) { return one.state == "Queued"; });
  tell("starting", [](const PoolAllocation& one) { return one.state == "Starting"; });
  tell("with a node",
       [&leaves](const PoolAllocation& one) { return !one.node.empty() && !leaves(one); });
  tell("leaving", leaves);
  line = "pool " + report.pool + " (" + report.engine +
         "): " + (line.empty() ? "no allocations" : line);
  if (is_stale(report, now))
    return line + "; not updated for " + short_span(now - report.seen_ms) +
           ": its `muster allocate` has stopped";
  return line + (report.standing.empty() ? "" : "; " + report.standing);
}

bool is_stale(const PoolReport& report, Millis now) {
  return now - report.seen_ms > 3 * kPoolReportEveryMs;
}

}  // namespace muster::cli
