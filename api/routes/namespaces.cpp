#include "api/routes/namespaces.hpp"

#include "api/view/selector.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace muster::api {
namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

OrderedJson metadata_of(const std::string& name) {
  OrderedJson meta = {{"name", name}, {"creationTimestamp", nullptr}};
  meta["labels"][kNameLabel] = name;
  return meta;
}

OrderedJson object_of(const std::string& name) {
  return {{"kind", "Namespace"},
          {"apiVersion", "v1"},
          {"metadata", metadata_of(name)},
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

OrderedJson table_of(const std::set<std::string>& names, uint64_t version) {
  OrderedJson table = {{"kind", "Table"},
                       {"apiVersion", "meta.k8s.io/v1"},
                       {"metadata", {{"resourceVersion", std::to_string(version)}}}};
  table["columnDefinitions"] =
      OrderedJson::array({column("Name", "name"), column("Status", ""), column("Age", "")});
  table["rows"] = OrderedJson::array();
  for (const std::string& name : names) {
    OrderedJson row;
    row["cells"] = OrderedJson::array({name, "Active", "<unknown>"});
    row["object"] = {{"kind", "PartialObjectMetadata"},
                     {"apiVersion", "meta.k8s.io/v1"},
                     {"metadata", metadata_of(name)}};
    table["rows"].push_back(std::move(row));
  }
  return table;
}

// Jumps from namespace to namespace, however many jobs each has.
std::set<std::string> in_use(const View& view) {
  std::set<std::string> names = {"default"};
  View::Place after;
  while (const auto job = view.next_job("", after)) {
    names.insert(std::get<0>(*job));
    after = {std::get<0>(*job), "\xff", UINT64_MAX};  // after every job of the namespace
  }
  for (const auto kind : {core::KeptKind::lease, core::KeptKind::event})
    view.each_kept(kind, "", [&names](const Shown& s) { names.insert(s.kept->kept->ns); });
  return names;
}

// Reads each job, unlike in_use().
std::set<std::string> with_own_jobs(const View& view, const Viewer& viewer) {
  std::set<std::string> names = {"default"};
  view.each(Kind::job, "", nullptr, [&](const Shown& shown) {
    if (viewer.owns(shown)) names.insert(shown.job->object().meta.ns);
  });
  return names;
}

kj::Promise<void> list(Exchange& exchange, const View& view, const Viewer& viewer) {
  if (exchange.url.flag("watch")) {
    exchange.headers.push_back({"Allow", "GET"});
    return exchange.send_status(405, "MethodNotAllowed",
                                "namespaces cannot be watched; watch jobs of all namespaces");
  }
  auto labels = Selector::labels(exchange.url.get("labelSelector"));
  auto fields = Selector::fields(exchange.url.get("fieldSelector"), Kind::node);
  for (const auto* selector : {&labels, &fields})
    if (!selector->ok()) return exchange.send_status(400, "BadRequest", selector->error().message);
  const bool limited = viewer.uid && !viewer.summaries;
  std::set<std::string> all = limited ? with_own_jobs(view, viewer) : in_use(view);
  std::erase_if(all, [&](const std::string& name) {
    auto value = [&name](std::string_view key) -> std::optional<std::string_view> {
      if (key == kNameLabel || key == "metadata.name") return name;
      return std::nullopt;
    };
    return !labels->matches(value) || !fields->matches(value);
  });
  if (exchange.form() == Form::table)
    return exchange.send(200, dumped(table_of(all, view.version())) + "\n");
  OrderedJson answer = {{"kind", "NamespaceList"},
                        {"apiVersion", "v1"},
                        {"metadata", {{"resourceVersion", std::to_string(view.version())}}}};
  answer["items"] = OrderedJson::array();
  for (const std::string& name : all) answer["items"].push_back(object_of(name));
  return exchange.send(200, dumped(answer) + "\n");
}

kj::Promise<void> get(Exchange& exchange, const View& view) {
  const std::string& name = exchange.url.path[3];
  return exchange.send(200, dumped(exchange.form() == Form::table ? table_of({name}, view.version())
                                                                  : object_of(name)) +
                                "\n");
}

}  // namespace

bool is_namespaces(const Url& url) {
  const std::vector<std::string>& p = url.path;
  return (p.size() == 3 || p.size() == 4) && p[0] == "api" && p[1] == "v1" && p[2] == "namespaces";
}

kj::Promise<void> answer_namespaces(Exchange& exchange, const View& view, const AccessGate& gate) {
  const bool one = exchange.url.path.size() == 4;
  if (exchange.method == kj::HttpMethod::GET)
    return one ? get(exchange, view) : list(exchange, view, gate.viewer(exchange.caller));
  if (exchange.method == kj::HttpMethod::POST && !one)
    return exchange.send_status(409, "AlreadyExists",
                                "every namespace already exists: a namespace is just a name");
  exchange.headers.push_back({"Allow", "GET"});
  return exchange.send_status(405, "MethodNotAllowed",
                              "a namespace is just a name: it cannot be changed or deleted");
}

}  // namespace muster::api
