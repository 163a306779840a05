#include "api/routes/muster_routes.hpp"

#include "api/request/call.hpp"
#include "api/view/render/waiting.hpp"
#include "core/job/rules/backoff.hpp"
#include "core/job/shown/index_map.hpp"

#include <kj/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

namespace muster::api {
namespace {

struct Use {
  uint64_t running = 0;
  uint64_t waiting = 0;
};

}  // namespace

kj::Promise<void> MusterRoutes::indexes(Exchange& exchange, const Shown& shown) {
  const core::Job& job = *shown.job;
  const core::JobMeta& meta = job.object().meta;
  const core::IndexMap map =
      core::index_map(job, options_.now(), core::knobs_of(options_.knobs, job.object()));
  OrderedJson json = {{"kind", "IndexMap"},
                      {"apiVersion", "muster.dev/v1"},
                      {"metadata",
                       {{"name", meta.name},
                        {"namespace", meta.ns},
                        {"uid", meta.uid},
                        {"resourceVersion", std::to_string(shown.version)}}}};
  if (const auto& n = job.state().completions) json["completions"] = *n;
  json["succeeded"] = map.succeeded.text();
  json["failed"] = map.failed.text();
  json["cancelled"] = map.cancelled.text();
  json["running"] = map.running.text();
  json["pending"] = map.pending.text();
  json["backoff"] = map.backoff.text();
  if (!job.left_out().empty()) json["leftOut"] = job.left_out().text();
  return exchange.send(200, dumped(json) + "\n");
}

kj::Promise<void> MusterRoutes::back_up(Exchange& exchange, const Target&,
                                        const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  const bool named = json.is_object() && json.contains("dir") && json["dir"].is_string();
  const std::string dir = named ? json["dir"].get<std::string>() : "";
  if (dir.empty() || dir.front() != '/')
    return exchange.bad("dir: Required value: the absolute path of a directory to make");
  auto call = new_call<Result<core::BackupInfo>>();
  backend_.back_up(dir, std::move(call.done));
  return call.promise.then([&exchange, dir](Result<core::BackupInfo> made) {
    if (!made.ok()) return exchange.send_error(made.error(), "backups", dir);
    const OrderedJson answer = {{"kind", "Backup"},     {"apiVersion", "muster.dev/v1"},
                                {"dir", dir},           {"commit", made->commit},
                                {"files", made->files}, {"bytes", made->bytes}};
    return exchange.send(201, dumped(answer) + "\n");
  });
}

kj::Promise<void> MusterRoutes::verification(Exchange& exchange) {
  auto call = new_call<Result<core::Verified>>();
  backend_.verify(std::move(call.done));
  return call.promise.then([&exchange](Result<core::Verified> v) {
    if (!v.ok()) return exchange.send_error(v.error(), "verification", "");
    OrderedJson answer = {{"kind", "Verification"},
                          {"apiVersion", "muster.dev/v1"},
                          {"commit", v->commit},
                          {"jobs", v->jobs},
                          {"attempts", v->attempts},
                          {"counted", v->counted},
                          {"mismatches", OrderedJson::array()}};
    for (const std::string& line : v->mismatches) answer["mismatches"].push_back(line);
    return exchange.send(200, dumped(answer) + "\n");
  });
}

// Counts running and waiting pods on each shown node, over all jobs.
kj::Promise<void> MusterRoutes::node_use(Exchange& exchange) {
  std::map<std::string, Use> uses;
  view_.each(Kind::node, "", nullptr, [&](const Shown& shown) { uses[shown.node->name]; });
  view_.jobs().each_active([&](const core::Job& job) {
    for (const auto& [key, pod] : job.state().open) {
      if (!pod.bound()) continue;
      const auto use = uses.find(view_.node_name(pod.node));
      if (use != uses.end()) ++(pod.started_at ? use->second.running : use->second.waiting);
    }
  });
  OrderedJson items = OrderedJson::array();
  for (const auto& [name, use] : uses)
    items.push_back({{"name", name}, {"running", use.running}, {"waiting", use.waiting}});
  OrderedJson json = {{"kind", "NodeUseList"},
                      {"apiVersion", "muster.dev/v1"},
                      {"metadata", {{"resourceVersion", std::to_string(view_.version())}}}};
  json["items"] = std::move(items);
  return exchange.send(200, dumped(json) + "\n");
}

// What pods without a node require. Users see that of their own jobs, operators of all.
kj::Promise<void> MusterRoutes::demand(Exchange& exchange) {
  OrderedJson json = {{"kind", "DemandList"},
                      {"apiVersion", "muster.dev/v1"},
                      {"metadata", {{"resourceVersion", std::to_string(view_.version())}}}};
  json["items"] = demand_items(view_, gate_.viewer(exchange.caller));
  return exchange.send(200, dumped(json) + "\n");
}

// How users stand in each queue; those first who would get the next slot, if they wait for one.
// With private jobs, a user sees the own row only.
kj::Promise<void> MusterRoutes::shares(Exchange& exchange) {
  std::vector<core::Slots::Standing> standings = view_.shares().standings;
  if (const Viewer viewer = gate_.viewer(exchange.caller); viewer.uid && !viewer.summaries)
    std::erase_if(standings, [&](const auto& one) { return one.user != *viewer.uid; });
  std::stable_sort(standings.begin(), standings.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.queue.empty(), a.queue_level, a.queue, a.level()) <
           std::tuple(b.queue.empty(), b.queue_level, b.queue, b.level());
  });
  // After a restart, the cluster knows the names only of those who have jobs that wait or run.
  const auto names = std::make_shared<std::map<uint32_t, std::string>>();
  kj::Vector<kj::Promise<void>> lookups;
  for (const core::Slots::Standing& one : standings)
    if (one.name.empty())
      lookups.add(streams_.timer.timeoutAfter(kAccountPatience, directory_.find(one.user))
                      .then([names, user = one.user](
                                const Caller& caller) { (*names)[user] = caller.who.name; },
                            [](kj::Exception&&) {}));  // shown by number
  return kj::joinPromises(lookups.releaseAsArray())
      .then([this, &exchange, names, standings = std::move(standings)]() mutable {
        for (core::Slots::Standing& one : standings)
          if (const auto found = names->find(one.user); found != names->end())
            one.name = found->second;
        return send_shares(exchange, standings);
      });
}

kj::Promise<void> MusterRoutes::send_shares(Exchange& exchange,
                                            const std::vector<core::Slots::Standing>& standings) {
  OrderedJson items = OrderedJson::array();
  for (const core::Slots::Standing& one : standings)
    items.push_back({{"uid", one.user},
                     {"user", one.name},
                     {"queue", one.queue},
                     {"held", one.held},
                     {"recent", one.use},
                     {"weight", one.weight},
                     {"waiting", one.waiting}});
  OrderedJson json = {{"kind", "ShareList"},
                      {"apiVersion", "muster.dev/v1"},
                      {"metadata", {{"resourceVersion", std::to_string(view_.version())}}}};
  json["items"] = std::move(items);
  return exchange.send(200, dumped(json) + "\n");
}

}  // namespace muster::api
