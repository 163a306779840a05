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
      if (is_table(form))
        renderer.row(text, shown, form);
      else
        renderer.object(text, shown, form);
    });
  return exchange.send(200, text + renderer.list_tail({view.version(), "", 0}));
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

}  // namespace muster::api
