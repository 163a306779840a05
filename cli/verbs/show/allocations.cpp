// muster get allocations: the batch jobs that muster allocate has asked for, by pool.
#include "cli/verbs/show/allocations.hpp"

#include "base/text/time_text.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/news/pool_report.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

Json allocation_object(const PoolReport& report, const PoolAllocation& one) {
  Json status = {{"pool", report.pool},
                 {"engine", report.engine},
                 {"state", one.state},
                 {"since", time_text(one.since_ms)}};
  if (!one.node.empty()) status["node"] = one.node;
  return {{"apiVersion", "muster.dev/v1"},
          {"kind", "Allocation"},
          {"metadata", {{"name", one.id}, {"namespace", report.ns}}},
          {"status", std::move(status)}};
}

void show_allocations(const std::vector<PoolReport>& reports, const AllocationsOptions& options) {
  const Millis now = wall_now();
  Json items = Json::array();
  std::vector<std::vector<std::string>> rows;
  if (options.headers) rows.push_back({"POOL", "ENGINE", "ID", "STATE", "NODE", "SINCE"});
  for (const PoolReport& report : reports)
    for (const PoolAllocation& one : report.allocations) {
      items.push_back(allocation_object(report, one));
      rows.push_back({report.pool, report.engine, one.id, one.state,
                      one.node.empty() ? "-" : one.node,
                      short_span(std::max<Millis>(0, now - one.since_ms))});
    }
  if (is_structured(options.output)) {
    std::cout << structured_text(Json{{"apiVersion", "v1"},
                                      {"kind", "List"},
                                      {"metadata", {{"resourceVersion", ""}}},
                                      {"items", std::move(items)}},
                                 options.output);
  } else if (options.output == Output::name) {
    for (const Json& one : items)
      std::cout << "allocation.muster.dev/" << text_at(one, {"metadata", "name"}) << "\n";
  } else if (!items.empty()) {
    std::cout << aligned(rows, "");
  }
  std::cout << std::flush;
  for (const PoolReport& report : reports)
    std::cerr << "muster: " << pool_line(report, now) << std::endl;
}

}  // namespace

bool is_allocation_kind(std::string_view word) {
  return word == "allocations" || word == "allocation" || word == "allocations.muster.dev";
}

int execute(const AllocationsOptions& options) {
  const auto client = connect(options.target);
  auto all = pool_reports(*client, options.all_namespaces ? "" : options.target.ns);
  if (!all) return fail(all.error());
  int code = kDone;
  for (const std::string& pool : options.pools)
    if (std::none_of(all->begin(), all->end(),
                     [&](const PoolReport& one) { return one.pool == pool; }))
      code = fail(kNotFound, "pool \"" + pool + "\" not found");
  if (!options.pools.empty())
    std::erase_if(*all, [&options](const PoolReport& one) {
      return std::find(options.pools.begin(), options.pools.end(), one.pool) == options.pools.end();
    });
  if (all->empty() && options.pools.empty())
    std::cerr << "muster: no pools: `muster allocate` asks a batch system for nodes" << std::endl;
  show_allocations(*all, options);
  return code;
}

}  // namespace muster::cli
