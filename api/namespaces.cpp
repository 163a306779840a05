#include "api/namespaces.hpp"

#include "api/selector.hpp"
#include "api/tables.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace muster::api {
namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

struct Namespace {
  std::string name;
  Millis first_ms = 0;  // creation of its oldest job; 0: there is none
};

OrderedJson metadata_of(const Namespace& ns) {
  OrderedJson meta = {{"name", ns.name}};
  meta["creationTimestamp"] =
      ns.first_ms != 0 ? OrderedJson(time_text(ns.first_ms)) : OrderedJson(nullptr);
  meta["labels"][kNameLabel] = ns.name;
  return meta;
}

OrderedJson object_of(const Namespace& ns) {
  return {{"kind", "Namespace"},
          {"apiVersion", "v1"},
          {"metadata", metadata_of(ns)},
          {"spec", OrderedJson::object()},
          {"status", {{"phase", "Active"}}}};
}

OrderedJson column(const char* name, const char* format) {
  return {{"name", name},
          {"type", "string"},
          {"format", format},
          {"description", name},
          {"priority", 0}};
}

OrderedJson table_of(const std::vector<Namespace>& all, uint64_t version, Millis now_ms) {
  OrderedJson table = {{"kind", "Table"},
                       {"apiVersion", "meta.k8s.io/v1"},
                       {"metadata", {{"resourceVersion", std::to_string(version)}}}};
  table["columnDefinitions"] =
      OrderedJson::array({column("Name", "name"), column("Status", ""), column("Age", "")});
  table["rows"] = OrderedJson::array();
  for (const Namespace& ns : all) {
    OrderedJson row;
    row["cells"] = OrderedJson::array(
        {ns.name, "Active", ns.first_ms != 0 ? span_text(now_ms - ns.first_ms) : "<unknown>"});
    row["object"] = {{"kind", "PartialObjectMetadata"},
                     {"apiVersion", "meta.k8s.io/v1"},
                     {"metadata", metadata_of(ns)}};
    table["rows"].push_back(std::move(row));
  }
  return table;
}

std::vector<Namespace> in_use(const View& view) {
  std::map<std::string, Millis> first = {{"default", 0}};
  view.each(
      Kind::job, "", [](const core::Job&) { return true; },
      [&](const Shown& shown) {
        const core::JobMeta& meta = shown.job->object().meta;
        Millis& at = first[meta.ns];
        if (at == 0 || meta.created_ms < at) at = meta.created_ms;
      });
  std::vector<Namespace> all;
  for (const auto& [name, at] : first) all.push_back({name, at});
  return all;
}

kj::Promise<void> list(Exchange& exchange, const View& view, Millis now_ms) {
  if (exchange.url.flag("watch"))
    return exchange.send_status(405, "MethodNotAllowed",
                                "namespaces can't be watched; watch jobs of all namespaces");
  auto labels = Selector::labels(exchange.url.get("labelSelector"));
  auto fields = Selector::fields(exchange.url.get("fieldSelector"), Kind::node);
  for (const auto* selector : {&labels, &fields})
    if (!selector->ok()) return exchange.send_status(400, "BadRequest", selector->error().message);
  std::vector<Namespace> all = in_use(view);
  std::erase_if(all, [&](const Namespace& ns) {
    auto value = [&ns](std::string_view key) -> std::optional<std::string_view> {
      if (key == kNameLabel || key == "metadata.name") return ns.name;
      return std::nullopt;
    };
    return !labels->matches(value) || !fields->matches(value);
  });
  if (exchange.form() == Form::table)
    return exchange.send(200, dumped(table_of(all, view.version(), now_ms)) + "\n");
  OrderedJson answer = {{"kind", "NamespaceList"},
                        {"apiVersion", "v1"},
                        {"metadata", {{"resourceVersion", std::to_string(view.version())}}}};
  answer["items"] = OrderedJson::array();
  for (const Namespace& ns : all) answer["items"].push_back(object_of(ns));
  return exchange.send(200, dumped(answer) + "\n");
}

kj::Promise<void> get(Exchange& exchange, const View& view, Millis now_ms) {
  Namespace ns{exchange.url.path[3]};
  for (const Namespace& used : in_use(view))
    if (used.name == ns.name) ns = used;
  return exchange.send(
      200, dumped(exchange.form() == Form::table ? table_of({ns}, view.version(), now_ms)
                                                 : object_of(ns)) +
               "\n");
}

}  // namespace

bool is_namespaces(const Url& url) {
  const std::vector<std::string>& p = url.path;
  return (p.size() == 3 || p.size() == 4) && p[0] == "api" && p[1] == "v1" && p[2] == "namespaces";
}

kj::Promise<void> answer_namespaces(Exchange& exchange, const View& view, Millis now_ms) {
  const bool one = exchange.url.path.size() == 4;
  if (exchange.method == kj::HttpMethod::GET)
    return one ? get(exchange, view, now_ms) : list(exchange, view, now_ms);
  if (exchange.method == kj::HttpMethod::POST && !one)
    return exchange.send_status(409, "AlreadyExists",
                                "every namespace is there already: a namespace is just a name");
  return exchange.send_status(405, "MethodNotAllowed",
                              "a namespace is just a name: it can't be changed or deleted");
}

}  // namespace muster::api
