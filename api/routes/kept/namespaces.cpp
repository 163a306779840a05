#include "api/routes/kept/namespaces.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "api/view/query/seen_namespaces.hpp"
#include "api/view/query/selector.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace muster::api {
namespace {

constexpr const char* kAccount = "default";

// Calls f with the namespace as it is shown: the object that was created or, if none was, one made
// up for it.
template <class F>
void show(const View& view, const std::string& name, F f) {
  if (const auto created = view.kept(core::KeptKind::name_space, "", name)) return f(*created);
  KeptView implied;
  implied.kept = std::make_shared<const core::Kept>(namespace_in_use(name));
  implied.facts = kept_facts(*implied.kept);
  f(Shown{.kind = Kind::name_space, .kept = &implied, .version = view.version()});
}

kj::Promise<void> list(Exchange& exchange, const View& view, const Viewer& viewer,
                       Renderer& renderer) {
  Query query{.kind = Kind::name_space};
  auto labels = Selector::labels(exchange.url.get("labelSelector"));
  auto fields = Selector::fields(exchange.url.get("fieldSelector"), Kind::name_space);
  for (const auto* selector : {&labels, &fields})
    if (!selector->ok()) return exchange.send_status(400, "BadRequest", selector->error().message);
  query.labels = std::move(*labels);
  query.fields = std::move(*fields);
  const Form form = exchange.form();
  std::string text = renderer.list_head(Kind::name_space, form);
  bool first = true;
  for (const std::string& name : seen_namespaces(view, viewer))
    show(view, name, [&](const Shown& shown) {
      if (!query.matches_kept(*shown.kept)) return;
      if (!std::exchange(first, false)) text += ',';
      if (form == Form::table)
        renderer.row(text, shown);
      else
        renderer.object(text, shown, form);
    });
  return exchange.send(200, text + renderer.list_tail({view.version(), "", 0}));
}

// The namespace and the name in the path of service accounts; empty: all.
struct AccountPath {
  std::string ns, name;
};
std::optional<AccountPath> account_path(const Url& url) {
  const std::vector<std::string>& p = url.path;
  if (p.size() < 3 || p[0] != "api" || p[1] != "v1") return std::nullopt;
  AccountPath path;
  size_t at = 2;
  if (p[at] == "namespaces" && p.size() > 4) {
    path.ns = p[3];
    at = 4;
  }
  if (p[at] != "serviceaccounts" || p.size() > at + 2) return std::nullopt;
  if (p.size() == at + 2) path.name = p[at + 1];
  if (!path.name.empty() && path.ns.empty()) return std::nullopt;
  return path;
}

OrderedJson account(const std::string& ns) {
  return {{"kind", "ServiceAccount"},
          {"apiVersion", "v1"},
          {"metadata", {{"name", kAccount}, {"namespace", ns}, {"creationTimestamp", nullptr}}}};
}

OrderedJson account_table(const std::set<std::string>& spaces, uint64_t version) {
  auto column = [](const char* name, const char* type, const char* format) -> OrderedJson {
    return {
        {"name", name}, {"type", type}, {"format", format}, {"description", name}, {"priority", 0}};
  };
  OrderedJson table = {{"kind", "Table"},
                       {"apiVersion", "meta.k8s.io/v1"},
                       {"metadata", {{"resourceVersion", std::to_string(version)}}}};
  table["columnDefinitions"] =
      OrderedJson::array({column("Name", "string", "name"), column("Secrets", "integer", ""),
                          column("Age", "string", "")});
  table["rows"] = OrderedJson::array();
  for (const std::string& ns : spaces) {
    OrderedJson row;
    row["cells"] = OrderedJson::array({kAccount, 0, "<unknown>"});
    row["object"] = {{"kind", "PartialObjectMetadata"},
                     {"apiVersion", "meta.k8s.io/v1"},
                     {"metadata", account(ns)["metadata"]}};
    table["rows"].push_back(std::move(row));
  }
  return table;
}

}  // namespace

bool is_namespaces(const Url& url) {
  const std::vector<std::string>& p = url.path;
  if (p.size() < 3 || p[0] != "api" || p[1] != "v1" || p[2] != "namespaces") return false;
  return p.size() < 5 || (p.size() == 5 && p[4] == "status");
}

kj::Promise<void> answer_namespaces(Exchange& exchange, const View& view, const AccessGate& gate,
                                    Renderer& renderer) {
  const Viewer viewer = gate.viewer(exchange.caller);
  if (exchange.url.path.size() == 3) return list(exchange, view, viewer, renderer);
  const std::string& name = exchange.url.path[3];
  if (!sees_namespace(view, viewer, name))
    return exchange.send_error({Errc::not_found, "", {}}, "namespaces", name);
  std::string text;
  show(view, name, [&](const Shown& shown) { renderer.whole(text, shown, exchange.form()); });
  return exchange.send(200, text + "\n");
}

bool is_service_accounts(const Url& url) {
  return account_path(url).has_value();
}

kj::Promise<void> answer_service_accounts(Exchange& exchange, const View& view,
                                          const AccessGate& gate) {
  const auto [ns, name] = *account_path(exchange.url);
  if (exchange.method != kj::HttpMethod::GET || exchange.url.flag("watch")) {
    exchange.headers.push_back({"Allow", "GET"});
    return exchange.send_status(405, "MethodNotAllowed",
                                "there is one service account in each namespace, default, which "
                                "can only be read");
  }
  const Viewer viewer = gate.viewer(exchange.caller);
  const bool table = exchange.form() == Form::table;
  std::set<std::string> spaces = seen_namespaces(view, viewer);
  if (!ns.empty()) std::erase_if(spaces, [&ns = ns](const std::string& one) { return one != ns; });
  if (!name.empty()) {
    if (spaces.empty() || name != kAccount)
      return exchange.send_error({Errc::not_found, "", {}}, "serviceaccounts", name);
    return exchange.send(
        200, dumped(table ? account_table(spaces, view.version()) : account(ns)) + "\n");
  }
  if (table) return exchange.send(200, dumped(account_table(spaces, view.version())) + "\n");
  OrderedJson answer = {{"kind", "ServiceAccountList"},
                        {"apiVersion", "v1"},
                        {"metadata", {{"resourceVersion", std::to_string(view.version())}}}};
  answer["items"] = OrderedJson::array();
  for (const std::string& one : spaces) answer["items"].push_back(account(one));
  return exchange.send(200, dumped(answer) + "\n");
}

}  // namespace muster::api
