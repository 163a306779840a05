#include "api/request/access_gate.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "api/view/query/seen_namespaces.hpp"

namespace muster::api {

Whose AccessGate::whose(const Caller& caller, const Attributes& wants) const {
  if (wants.name.empty()) return Whose::nobody;
  if (wants.resource == "users") return wants.name == caller.who.name ? Whose::own : Whose::other;
  if (wants.resource == "tokens") {
    const auto token = backend_.token(wants.name);
    if (!token) return Whose::nobody;
    const bool own = token->kind == core::TokenKind::user && token->uid == caller.who.uid;
    return own ? Whose::own : Whose::other;
  }
  std::optional<Shown> shown;
  if (wants.resource == "jobs") shown = view_.job(wants.ns, wants.name);
  if (wants.resource == "pods") shown = view_.pod(wants.ns, wants.name);
  if (wants.resource == "events") shown = view_.event(wants.ns, wants.name);
  if (wants.resource == "configmaps")
    shown = view_.kept(core::KeptKind::config_map, wants.ns, wants.name);
  if (wants.resource == "cronjobs")
    shown = view_.kept(core::KeptKind::cron_job, wants.ns, wants.name);
  if (wants.resource == "namespaces")
    shown = view_.kept(core::KeptKind::name_space, "", wants.name);
  if (!shown) return Whose::nobody;
  if (wants.verb == "get" && shown->kept && shown->kept->facts.shared) return Whose::own;
  return Viewer{caller.who.uid}.owns(*shown) ? Whose::own : Whose::other;
}

Decision AccessGate::judge(const Caller& caller, const Attributes& wants) const {
  if (caller.role == Role::admin) return {Access::allowed, ""};
  // Each namespace in use has this config map, so it must not show which are.
  if (wants.resource == "configmaps" && wants.name == kRootCaName && caller.role == Role::user &&
      !sees_namespace(view_, viewer(caller), wants.ns))
    return {Access::hidden, ""};
  return authorize(caller, wants, whose(caller, wants), rules_);
}

std::optional<kj::Promise<void>> AccessGate::refuse(Exchange& exchange) const {
  const Decision decision = judge(exchange);
  if (decision.ok()) return std::nullopt;
  if (decision.access == Access::hidden)
    return exchange.send_error({Errc::not_found, "", {}}, exchange.wants.resource,
                               exchange.wants.name);
  return forbid(exchange, decision.reason);
}

kj::Promise<void> AccessGate::forbid(Exchange& exchange, const std::string& reason) {
  OrderedJson details = nullptr;
  if (!exchange.wants.resource.empty())
    details = {{"name", exchange.wants.name},
               {"group", exchange.wants.group},
               {"kind", exchange.wants.resource}};
  return exchange.send_status(403, "Forbidden",
                              forbidden_text(exchange.caller, exchange.wants, reason),
                              std::move(details));
}

Viewer AccessGate::viewer(const Caller& caller) const {
  if (caller.unlimited()) return {};
  return {caller.who.uid, !rules_.private_jobs};
}

std::optional<std::set<std::string>> AccessGate::namespaces(const Caller& caller,
                                                            const std::string& ns) const {
  if (caller.unlimited()) return std::nullopt;
  const Viewer viewer = this->viewer(caller);
  if (ns.empty()) return seen_namespaces(view_, viewer);
  std::set<std::string> names;
  if (sees_namespace(view_, viewer, ns)) names.insert(ns);
  return names;
}

}  // namespace muster::api
