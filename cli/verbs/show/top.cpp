// muster top: how many pods run where. The counts are the coordinator's; muster does not measure
// the CPU and memory use of running pods.
#include "cli/verbs/show/top.hpp"

#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/table.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

using TopRows = std::vector<std::vector<std::string>>;

// A row and the number it is sorted by, highest first; ties by name.
struct Busy {
  int64_t running = 0;
  std::vector<std::string> row;
};

void print(std::vector<Busy> busy, const std::vector<std::string>& header, bool headers) {
  std::stable_sort(busy.begin(), busy.end(),
                   [](const Busy& a, const Busy& b) { return a.running > b.running; });
  TopRows rows;
  if (headers) rows.push_back(header);
  for (Busy& one : busy) rows.push_back(std::move(one.row));
  std::cout << aligned(rows, "") << std::flush;
}

int top_nodes(ApiClient& client, const TopOptions& options) {
  auto nodes = object(client, object_path(Kind::node, ""));
  if (!nodes) return fail(nodes.error());
  auto uses = object(client, "/apis/muster.dev/v1/nodes");
  if (!uses) return fail(uses.error());
  std::map<std::string, const Json*> use_of;
  for (const Json& use : at(*uses, {"items"})) use_of[text_at(use, {"name"})] = &use;
  std::vector<Busy> busy;
  for (const Json& node : at(*nodes, {"items"})) {
    const std::string name = text_at(node, {"metadata", "name"});
    const auto use = use_of.find(name);
    const int64_t running = use == use_of.end() ? 0 : number_at(*use->second, {"running"});
    const int64_t waiting = use == use_of.end() ? 0 : number_at(*use->second, {"waiting"});
    const std::string text = text_at(node, {"status", "capacity", "pods"});
    const int64_t slots = std::atoll(text.c_str());
    busy.push_back({running,
                    {name, text, std::to_string(running),
                     slots > 0 ? std::to_string(running * 100 / slots) + "%" : "-",
                     std::to_string(waiting), text_at(node, {"status", "capacity", "cpu"}),
                     text_at(node, {"status", "capacity", "memory"})}});
  }
  if (busy.empty()) {
    std::cerr << "No nodes found.\n";
    return kDone;
  }
  print(std::move(busy), {"NAME", "SLOTS", "RUNNING", "SLOTS%", "WAITING", "CPU", "MEMORY"},
        options.headers);
  return kDone;
}

int top_jobs(ApiClient& client, const TopOptions& options) {
  const std::string ns = options.all_namespaces ? "" : options.target.ns;
  auto jobs = object(client, object_path(Kind::job, ns));
  if (!jobs) return fail(jobs.error());
  std::vector<Busy> busy;
  for (const Json& job : at(*jobs, {"items"})) {
    if (end_of(job) != JobEnd::none) continue;
    const auto number = [&job](const char* field) { return number_at(job, {"status", field}); };
    const int64_t running = number("ready");
    std::vector<std::string> row = {
        text_at(job, {"metadata", "name"}), std::to_string(running),
        std::to_string(std::max<int64_t>(0, number("active") - running)),
        std::to_string(number("succeeded")), std::to_string(number("failed"))};
    if (options.all_namespaces) row.insert(row.begin(), text_at(job, {"metadata", "namespace"}));
    busy.push_back({running, std::move(row)});
  }
  if (busy.empty()) {
    std::cerr << "No unfinished jobs found" << (ns.empty() ? "" : " in namespace " + ns) << ".\n";
    return kDone;
  }
  std::vector<std::string> header = {"NAME", "RUNNING", "PENDING", "SUCCEEDED", "FAILED"};
  if (options.all_namespaces) header.insert(header.begin(), "NAMESPACE");
  print(std::move(busy), header, options.headers);
  return kDone;
}

}  // namespace

int execute(const TopOptions& options) {
  const auto client = connect(options.target);
  return options.kind == Kind::node ? top_nodes(*client, options) : top_jobs(*client, options);
}

Verb top_verb() {
  struct Words {
    TopOptions o;
    std::string what = "nodes";
    bool no_headers = false;
  };
  auto w = std::make_shared<Words>();
  return {
      .title = {"Jobs", "top", "Show the nodes or jobs that run the most pods"},
      .rows = {{"what", "nodes | jobs", "nodes (the default) or jobs", &w->what},
               {"-A,--all-namespaces", "", "Jobs of all namespaces", &w->o.all_namespaces},
               {"--no-headers", "", "Omit the header line", &w->no_headers}},
      .asks = {&w->o.target},
      .footer =
          "Examples:\n  muster top nodes\n  muster top jobs -A\n"
          "WAITING pods are at the node and start when a slot is free there. CPU and MEMORY are "
          "what the node has: what pods use is not measured.",
      .finish = [w](const Given&) -> Judged {
        w->o.headers = !w->no_headers;
        const auto kind = parse_kind(w->what);
        if (kind != Kind::node && kind != Kind::job)
          return Usage{"`" + w->what + "`: must be nodes or jobs: what pods use is not measured"};
        w->o.kind = *kind;
        return w->o;
      }};
}

}  // namespace muster::cli
