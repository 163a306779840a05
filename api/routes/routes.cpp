#include "api/routes/routes.hpp"

#include "api/request/body.hpp"
#include "core/spec/values/violations.hpp"

namespace muster::api {

template <class R>
kj::Promise<void> Routes::with_body(Exchange& exchange, const Target& target, R& routes,
                                    Handler<R> handler, size_t most, BodyType type) {
  return exchange.read_body(most, type)
      .then([&exchange, target, &routes, handler,
             &gate = gate_](kj::Maybe<std::string> body) -> kj::Promise<void> {
        KJ_IF_MAYBE (text, body) {
          // By now the name may belong to another user's object.
          if (auto refused = gate.refuse(exchange)) return kj::mv(*refused);
          if (target.kind != Kind::job && target.kind != Kind::config_map &&
              text->size() > kSmallBodyMax)
            return too_large(exchange,
                             "the body is longer than 512 KiB, the limit for everything but jobs "
                             "and config maps");
          return (routes.*handler)(exchange, target, *text);
        }
        return kj::READY_NOW;  // an error has already been sent
      });
}

kj::Promise<void> Routes::answer(Exchange& exchange, const Target& target) {
  using Method = kj::HttpMethod;
  const Method method = exchange.method;
  const bool one = !target.name.empty();
  const bool kept = target.is_kept(), job = target.kind == Kind::job;
  if (const auto why = damage(target, method == Method::GET); one && why)
    return exchange.send_status(500, "InternalError", *why);
  if (target.sub == "exec")
    return method == Method::GET || method == Method::POST ? exec_.stream(exchange, target)
                                                           : not_allowed(exchange, allowed(target));
  if (method == Method::GET && target.sub != "eviction" && target.sub != "finalize") {
    if (target.sub == "log") return logs_.get(exchange, target);
    if (target.sub == "scale") return scale_.get(exchange, target);
    return one ? reads_.get(exchange, target) : reads_.list(exchange, target);
  }
  // Nothing is added to a namespace while it is being deleted.
  if ((method == Method::POST || method == Method::PUT || method == Method::PATCH) &&
      is_closed(exchange, target.ns) && !(one && find(target)))
    return exchange.send_status(403, "Forbidden",
                                std::string(resource_name(target.kind)) + " \"" + target.name +
                                    "\" is forbidden: unable to create new content in namespace " +
                                    target.ns + " because it is being terminated");
  if (method == Method::POST && !one && (!target.ns.empty() || target.is_cluster_wide())) {
    if (job) return with_body(exchange, target, jobs_, &JobRoutes::create);
    if (kept) return with_body(exchange, target, kept_, &KeptRoutes::create);
  }
  if (method == Method::POST && target.sub == "eviction")
    return with_body(exchange, target, pods_, &PodRoutes::evict);
  if (method == Method::DELETE && target.sub.empty()) return remove(exchange, target);
  if ((method == Method::PUT || method == Method::PATCH) && one) return write(exchange, target);
  return not_allowed(exchange, allowed(target));
}

// What a user deletes is only the user's own, so it closes the namespace to nobody else.
bool Routes::is_closed(const Exchange& exchange, const std::string& ns) const {
  if (!view_.terminating().contains(ns)) return false;
  const auto shown = view_.kept(core::KeptKind::name_space, "", ns);
  const auto by = shown ? terminated_by(*shown->kept->kept) : std::nullopt;
  return !by || *by == exchange.caller.who.uid;
}

kj::Promise<void> Routes::remove(Exchange& exchange, const Target& target) {
  if (target.name.empty()) {
    const bool in_none = target.is_cluster_wide() && target.kind != Kind::name_space;
    if (target.kind == Kind::node || (target.ns.empty() && !in_none))
      return not_allowed(exchange, allowed(target));
    if (target.is_kept()) return with_body(exchange, target, kept_, &KeptRoutes::remove_all);
    return with_body(exchange, target, collections_, &CollectionRoutes::remove);
  }
  switch (target.kind) {
    case Kind::job:
      return with_body(exchange, target, jobs_, &JobRoutes::remove);
    case Kind::pod:
      return with_body(exchange, target, pods_, &PodRoutes::remove);
    case Kind::node:
      return with_body(exchange, target, nodes_, &NodeRoutes::remove);
    case Kind::event:
    case Kind::lease:
    case Kind::config_map:
    case Kind::name_space:
    case Kind::cron_job:
    case Kind::queue:
    case Kind::priority_class:
      break;
  }
  return with_body(exchange, target, kept_, &KeptRoutes::remove);
}

kj::Promise<void> Routes::write(Exchange& exchange, const Target& target) {
  const bool whole = target.sub.empty(), job = target.kind == Kind::job;
  if (target.sub == "finalize" && exchange.method != kj::HttpMethod::PUT)
    return not_allowed(exchange, allowed(target));
  if (exchange.method == kj::HttpMethod::PATCH &&
      patch_type(exchange.content_type) == PatchType::apply) {
    if (job && whole) return with_body(exchange, target, apply_, &ApplyRoutes::apply);
    if (target.kind == Kind::node && whole)
      return with_body(exchange, target, nodes_, &NodeRoutes::apply);
    if (target.is_kept() && whole) return with_body(exchange, target, kept_, &KeptRoutes::apply);
    if (target.kind == Kind::pod && whole)
      return with_body(exchange, target, pods_, &PodRoutes::apply);
    return exchange.send_status(415, "UnsupportedMediaType",
                                "a subresource cannot be applied; change it with "
                                "application/merge-patch+json");
  }
  if (exchange.method == kj::HttpMethod::PATCH && !exchange.url.get("force").empty()) {
    core::Violations found;
    found.forbidden("force", "may not be specified for non-apply patch");
    return exchange.bad_options({Errc::invalid, "the options are invalid", found.take()});
  }
  if (target.is_kept()) return with_body(exchange, target, kept_, &KeptRoutes::write);
  if (target.sub == "scale") return with_body(exchange, target, scale_, &ScaleRoutes::write);
  if (job && whole) return with_body(exchange, target, jobs_, &JobRoutes::write);
  if (job) return with_body(exchange, target, status_, &StatusRoutes::write);
  if (target.kind == Kind::pod && (whole || target.sub == "status"))
    return with_body(exchange, target, pods_, &PodRoutes::write);
  if (target.kind == Kind::node && whole)
    return with_body(exchange, target, nodes_, &NodeRoutes::write);
  return not_allowed(exchange, allowed(target));
}

kj::Promise<void> Routes::answer_own(Exchange& exchange, const MusterTarget& target) {
  if (target.what == "backups") {
    if (exchange.method != kj::HttpMethod::POST) return not_allowed(exchange, "POST");
    return with_body(exchange, Target{.kind = Kind::node}, muster_, &MusterRoutes::back_up);
  }
  if (!target.pod.empty()) return answer_exec(exchange, target);
  if (HistoryRoutes::serves(target))
    return exchange.method == kj::HttpMethod::GET ? history_.answer(exchange, target)
                                                  : not_allowed(exchange, "GET");
  if (target.what == "nodes/unknownpods")
    return exchange.method == kj::HttpMethod::DELETE
               ? with_body(exchange, Target{.kind = Kind::node, .name = target.name}, nodes_,
                           &NodeRoutes::end_unknown_pods)
               : not_allowed(exchange, "DELETE");
  if (CoordinatorRoutes::serves(target)) return answer_coordinators(exchange, target);
  if (TrustRoutes::serves(target)) return answer_trust(exchange, target);
  if (target.what == "hold" || target.what == "overrides" || target.what == "cancel")
    return answer_hold(exchange, target);
  if (exchange.method != kj::HttpMethod::GET) return not_allowed(exchange, "GET");
  if (target.what == "verification") return muster_.verification(exchange);
  if (target.what == "demand") return muster_.demand(exchange);
  if (target.what == "shares") return muster_.shares(exchange);
  if (target.job.empty()) return muster_.node_use(exchange);
  const auto job = view_.job(target.ns, target.job);
  const bool of_state = target.what == "indexes" || target.what == "log";
  if (const auto why = damage({Kind::job, target.ns, target.job, ""}, !of_state))
    return exchange.send_status(500, "InternalError", *why);
  if (!job) return exchange.send_error({Errc::not_found, "", {}}, "jobs", target.job);
  if (target.what == "attempts") return attempts_.list(exchange, *job);
  if (target.what == "log") return attempts_.log(exchange, *job);
  if (target.what == "why") return attempts_.why(exchange, *job);
  if (target.what == "usage") return attempts_.usage(exchange, *job);
  return muster_.indexes(exchange, *job);
}

kj::Promise<void> Routes::answer_exec(Exchange& exchange, const MusterTarget& target) {
  const Target pod{.kind = Kind::pod, .ns = target.ns, .name = target.pod};
  if (exchange.method == kj::HttpMethod::POST)
    return with_body(exchange, pod, exec_, &ExecRoutes::start);
  if (exchange.method == kj::HttpMethod::GET) return exec_.read(exchange, pod);
  if (exchange.method == kj::HttpMethod::PUT)
    return with_body(exchange, pod, exec_, &ExecRoutes::write, kExecWriteMax, BodyType::bytes);
  if (exchange.method == kj::HttpMethod::DELETE) return exec_.end(exchange, pod);
  return not_allowed(exchange, "DELETE, GET, POST, PUT");
}

kj::Promise<void> Routes::answer_hold(Exchange& exchange, const MusterTarget& target) {
  const Target job{.kind = Kind::job, .ns = target.ns, .name = target.job};
  if (const auto why = damage(job, false)) return exchange.send_status(500, "InternalError", *why);
  if (target.what == "overrides")
    return exchange.method == kj::HttpMethod::PATCH
               ? with_body<HoldRoutes>(exchange, job, holds_, &HoldRoutes::set_overrides)
               : not_allowed(exchange, "PATCH");
  if (target.what == "cancel")
    return exchange.method == kj::HttpMethod::PUT
               ? with_body(exchange, job, cancels_, &CancelRoutes::cancel)
               : not_allowed(exchange, "PUT");
  const bool puts = exchange.method == kj::HttpMethod::PUT;
  if (!puts && exchange.method != kj::HttpMethod::DELETE)
    return not_allowed(exchange, "DELETE, PUT");
  return with_body(exchange, job, holds_, puts ? &HoldRoutes::hold : &HoldRoutes::release);
}

kj::Promise<void> Routes::answer_trust(Exchange& exchange, const MusterTarget& target) {
  const bool get = exchange.method == kj::HttpMethod::GET;
  const Target named{.kind = Kind::node, .name = target.name};
  if (target.what == "links") return get ? trust_.links(exchange) : not_allowed(exchange, "GET");
  if (target.what == "tokens" && target.name.empty())
    return get ? trust_.list(exchange) : not_allowed(exchange, "GET");
  if (target.what == "tokens")
    return exchange.method == kj::HttpMethod::DELETE
               ? with_body(exchange, named, trust_, &TrustRoutes::revoke)
               : not_allowed(exchange, "DELETE");
  if (target.what == "nodes/claims") {
    if (get) return trust_.claims(exchange, named);
    return exchange.method == kj::HttpMethod::POST
               ? with_body(exchange, named, trust_, &TrustRoutes::allow)
               : not_allowed(exchange, "GET, POST");
  }
  if (exchange.method != kj::HttpMethod::POST) return not_allowed(exchange, "POST");
  if (target.what == "users/token")
    return with_body(exchange, named, trust_, &TrustRoutes::make_for_user);
  if (target.what == "nodes/token")
    return with_body(exchange, named, trust_, &TrustRoutes::make_for_node);
  if (target.what == "pools/token")
    return with_body(exchange, named, trust_, &TrustRoutes::make_for_pool);
  if (target.what == "coordinators/token")
    return with_body(exchange, named, trust_, &TrustRoutes::make_for_coordinator);
  return with_body(exchange, named, trust_, &TrustRoutes::revoke_node);
}

kj::Promise<void> Routes::answer_coordinators(Exchange& exchange, const MusterTarget& target) {
  const Target named{.kind = Kind::node, .name = target.name};
  if (target.what == "coordinators" && target.name.empty())
    return exchange.method == kj::HttpMethod::GET ? coordinators_.list(exchange)
                                                  : not_allowed(exchange, "GET");
  if (target.what == "coordinators")
    return exchange.method == kj::HttpMethod::DELETE
               ? with_body(exchange, named, coordinators_, &CoordinatorRoutes::remove)
               : not_allowed(exchange, "DELETE");
  if (exchange.method != kj::HttpMethod::POST) return not_allowed(exchange, "POST");
  return with_body(exchange, named, coordinators_,
                   target.what == "coordinators/promotion" ? &CoordinatorRoutes::promote
                                                           : &CoordinatorRoutes::demote);
}

kj::Promise<void> Routes::not_allowed(Exchange& exchange, std::string methods) {
  exchange.headers.push_back({"Allow", std::move(methods)});
  return exchange.send_status(405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
}

// Why an object cannot be shown or, unless `reads`, must not be changed.
std::optional<std::string> Routes::damage(const Target& target, bool reads) const {
  if (target.name.empty()) return std::nullopt;
  const auto shown = find(target);  // reads an unloaded job, and so may discover damage
  if (view_.jobs().damaged() == 0) return std::nullopt;
  const core::Condition* found =
      shown && shown->job ? shown->job->condition(core::ConditionType::damaged) : nullptr;
  if (found && !reads) return "the job is quarantined: " + found->message;
  if (shown) return std::nullopt;
  return view_.jobs().damage(target.kind, target.ns, target.name);
}

}  // namespace muster::api
