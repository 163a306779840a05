#include "cli/verbs/allocate/cluster.hpp"

#include "cli/verbs/setup/addresses.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/quantity.hpp"
#include "core/trust.hpp"

#include <cctype>
#include <limits>
#include <utility>

namespace muster::cli::allocate {
namespace {

constexpr char kOwn[] = "/apis/muster.dev/v1/";
constexpr char kSpent[] = "spent-seconds", kOpen[] = "open";

// In thousandths; 0: there is none, or it cannot be read.
int64_t thousandths(const Json& quantities, const char* name) {
  const auto read = core::parse_quantity_milli(text_at(quantities, {name}));
  return read.ok() ? *read : 0;
}

std::map<std::string, std::string> texts_of(const Json& object) {
  std::map<std::string, std::string> all;
  if (!object.is_object()) return all;
  for (const auto& [key, value] : object.items())
    if (value.is_string()) all[key] = value.get<std::string>();
  return all;
}

// Resources other than cpu, memory and pods.
std::map<std::string, int64_t> named_of(const Json& quantities) {
  std::map<std::string, int64_t> all;
  for (const auto& [name, text] : texts_of(quantities))
    if (name != "cpu" && name != "memory" && name != "pods")
      all[name] = thousandths(quantities, name.c_str()) / 1000;
  return all;
}

Shape shape_of(const Json& node) {
  const Json& has = at(node, {"status", "allocatable"});
  return {.slots = static_cast<uint64_t>(thousandths(has, "pods") / 1000),
          .cpu_millis = thousandths(has, "cpu"),
          .memory_bytes = thousandths(has, "memory") / 1000,
          .named = named_of(has),
          .labels = texts_of(at(node, {"metadata", "labels"}))};
}

}  // namespace

std::string without_digits(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return text;
}

std::map<std::string, PoolNode> nodes_of(const Json& nodes, const Json& uses) {
  std::map<std::string, PoolNode> all;
  for (const Json& node : at(nodes, {"items"}))
    all[text_at(node, {"metadata", "name"})] = {
        .ready = condition_of(node, "Ready").is_object(),
        .cordoned = at(node, {"spec", "unschedulable"}) == Json(true),
        .shape = shape_of(node)};
  for (const Json& use : at(uses, {"items"}))
    if (const auto found = all.find(text_at(use, {"name"})); found != all.end())
      found->second.pods =
          static_cast<uint64_t>(number_at(use, {"running"}) + number_at(use, {"waiting"}));
  return all;
}

std::vector<Demand> demand_of(const Json& list, const std::string& queue) {
  std::vector<Demand> all;
  for (const Json& item : at(list, {"items"})) {
    const Json& requests = at(item, {"requests"});
    Demand one{.job = text_at(item, {"namespace"}) + "/" + text_at(item, {"job"}),
               .queue = text_at(item, {"queue"}),
               .waits_for = text_at(item, {"waitsFor"}),
               .pods = static_cast<uint64_t>(number_at(item, {"pods"})),
               .cpu_millis = thousandths(requests, "cpu"),
               .memory_bytes = thousandths(requests, "memory") / 1000,
               .named = named_of(requests),
               .node_selector = texts_of(at(item, {"nodeSelector"})),
               .of_one_node = !text_at(item, {"nodeName"}).empty(),
               .gang = at(item, {"gang"}) == Json(true)};
    if (at(item, {"timeLimitSeconds"}).is_number())
      one.time_limit_s = number_at(item, {"timeLimitSeconds"});
    if (queue.empty() || one.queue == queue) all.push_back(std::move(one));
  }
  return all;
}

Status Cluster::look(Look& look) {
  auto demand = object(client_, std::string(kOwn) + "demand");
  if (!demand) return demand.error();
  auto nodes =
      object(client_, "/api/v1/nodes?labelSelector=" + url_encoded("muster.dev/pool=" + pool_));
  if (!nodes) return nodes.error();
  auto uses = object(client_, std::string(kOwn) + "nodes");
  if (!uses) return uses.error();
  look.demand = demand_of(*demand, queue_);
  look.nodes = nodes_of(*nodes, *uses);
  return Nothing{};
}

Result<std::string> Cluster::agents_address() {
  auto links = object(client_, std::string(kOwn) + "links");
  if (!links) return links.error();
  const std::string address = text_at(*links, {"agents"});
  return address.empty() ? address : reachable(address);
}

Result<std::string> Cluster::node_token(const std::string& node, const Json& claims) {
  Json body = claims;
  body["ttlSeconds"] = core::kNodeTokenLifeMax / 1000;
  auto answer =
      client_.post(std::string(kOwn) + "nodes/" + url_encoded(node) + "/token", dumped(body));
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  return text_at(answer->json, {"text"});
}

Status Cluster::cordon(const std::string& node, bool cordoned) {
  const Json patch = cordoned ? cordon_patch("idle: muster allocate gives it back")
                              : Json{{"spec", {{"unschedulable", nullptr}}}};
  auto changed = change_object(client_, object_path(Kind::node, "", node), patch);
  return changed ? Status(Nothing{}) : changed.error();
}

Status Cluster::forget(const std::string& node) {
  auto answer = client_.remove(object_path(Kind::node, "", node), "{}");
  if (!answer) return answer.error();
  if (!answer->ok() && answer->status != 404) return refusal(*answer);
  return Nothing{};
}

std::string Cluster::map_path() const {
  return object_path(Kind::config_map, ns_, "muster-allocate-" + pool_);
}

Result<Books> Cluster::books() {
  auto map = object(client_, map_path());
  if (!map && map.error().code == Errc::not_found) return Books{};
  if (!map) return map.error();
  Books books;
  // Without a budget, none were kept.
  if (at(*map, {"data", kSpent}).is_null() && at(*map, {"data", kOpen}).is_null()) return books;
  const auto spent = whole_number(text_at(*map, {"data", kSpent}));
  const Json open = read_json(text_at(*map, {"data", kOpen}));
  if (!spent || *spent > std::numeric_limits<int32_t>::max() || !open.is_object())
    return invalid("configmap/muster-allocate-" + pool_ + ": data." + kSpent + " and data." +
                   kOpen +
                   " must be what muster allocate wrote; delete it to begin with an empty budget");
  books.spent_ms = *spent * 1000;
  for (const auto& [id, started] : open.items())
    if (started.is_number_integer()) books.open[id] = started.get<Millis>();
  return books;
}

Status Cluster::keep(const Books* books, const PoolReport& report) {
  Json data = data_of(report);
  if (books != nullptr) {
    data[kSpent] = std::to_string((books->spent_ms + 999) / 1000);
    data[kOpen] = dumped(Json(books->open));
  }
  Json lasting = data;
  lasting.erase(kPoolSeen);
  lasting["standing"] = without_digits(report.standing);
  if (lasting == kept_ && report.seen_ms - kept_ms_ < kPoolReportEveryMs) return Nothing{};
  const Json labels = {{kPoolLabel, pool_}};
  auto answer =
      client_.patch(map_path(), dumped(Json{{"metadata", {{"labels", labels}}}, {"data", data}}));
  if (answer && answer->status == 404) {
    const Json map = {
        {"apiVersion", "v1"},
        {"kind", "ConfigMap"},
        {"metadata",
         {{"name", "muster-allocate-" + pool_}, {"namespace", ns_}, {"labels", labels}}},
        {"data", data}};
    answer = client_.post(object_path(Kind::config_map, ns_), dumped(map));
  }
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  kept_ = std::move(lasting);
  kept_ms_ = report.seen_ms;
  return Nothing{};
}

Status Cluster::remove_report(bool keeps_books) {
  Json gone = data_of({});
  for (Json& value : gone) value = nullptr;
  auto answer = keeps_books
                    ? client_.patch(map_path(),
                                    dumped(Json{{"metadata", {{"labels", {{kPoolLabel, nullptr}}}}},
                                                {"data", std::move(gone)}}))
                    : client_.remove(map_path(), "{}");
  if (!answer) return answer.error();
  if (!answer->ok() && answer->status != 404) return refusal(*answer);
  return Nothing{};
}

}  // namespace muster::cli::allocate
