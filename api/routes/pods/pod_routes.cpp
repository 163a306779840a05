#include "api/routes/pods/pod_routes.hpp"

#include "api/request/field_owners.hpp"
#include "api/request/writes.hpp"
#include "api/routes/kept/owner_deletion.hpp"
#include "api/routes/pods/pod_changes.hpp"
#include "core/pod_name.hpp"

#include <utility>

namespace muster::api {
namespace {

std::string uid_of(const Shown& shown) {
  return core::pod_uid(shown.job->object().meta.uid, shown.pod->key);
}

// The parts of a pod whose fields have managers: what clients may write of it, and the spec where
// an apply names it, so that it is compared with what there is.
Json managed_part(const Json& pod, bool spec) {
  Json part = {
      {"kind", "Pod"}, {"apiVersion", "v1"}, {"metadata", pod.value("metadata", Json::object())}};
  if (spec && pod.contains("spec")) part["spec"] = pod["spec"];
  return part;
}

}  // namespace

// Clients may write a pod's labels, annotations and conditions; the rest belongs to muster.
kj::Promise<void> PodRoutes::write(Exchange& exchange, const Target& target,
                                   const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  auto make = [&](const Json& base) -> Result<Json> {
    auto json = written(SentBody::of(exchange, body), base);
    if (!json.ok() || !version_holds(version_text(*json), shown->version)) return json;
    Json after = managed_part(*json, false);
    track_update("Pod", managed_part(base, false), after,
                 writer(exchange, *options, Kind::pod, target.sub));
    put_managers(*json, after);
    return json;
  };
  return change(exchange, target, *shown, options->dry, make);
}

kj::Promise<void> PodRoutes::apply(Exchange& exchange, const Target& target,
                                   const std::string& body) {
  auto options = apply_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  auto config = applied_config(exchange, body, "Pod", options->unknown_fields);
  if (!config.ok()) return exchange.bad(config.error().message);
  config->erase("status");
  const Json* name = find_path(*config, {"metadata", "name"});
  if (name && *name != target.name)
    return exchange.bad("metadata.name: the object does not match the request (" + target.name +
                        ")");
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  auto make = [&](const Json& base) -> Result<Json> {
    if (!version_holds(version_text(*config), shown->version)) return Error{Errc::conflict, "", {}};
    auto made = applied("Pod", managed_part(base, config->contains("spec")), *config,
                        writer(exchange, *options, Kind::pod), options->force);
    if (!made.ok()) return made;
    Json after = base;
    // Check uid and namespace as they were sent.
    for (const char* own : {"uid", "namespace"})
      if ((*config)["metadata"].contains(own))
        (*made)["metadata"][own] = (*config)["metadata"][own];
    for (const char* part : {"metadata", "spec"})
      if (made->contains(part)) after[part] = std::move((*made)[part]);
    return after;
  };
  return change(exchange, target, *shown, options->dry, make);
}

// The one path for all writes: makes the pod from the current one, checks it, and submits what
// changes.
kj::Promise<void> PodRoutes::change(Exchange& exchange, const Target& target, const Shown& shown,
                                    bool dry, const MakePod& make) {
  auto refused = [&exchange, &target](const Error& error) {
    return exchange.send_error(error, "pods", target.name);
  };
  std::string text;
  renderer_.object(text, shown);
  const Json base = Json::parse(text);
  const auto json = make(base);
  if (!json.ok()) return refused(json.error());
  if (!version_holds(version_text(*json), shown.version)) return refused({Errc::conflict, "", {}});
  auto write = pod_changes(shown, base, *json, target.sub);
  if (!write.ok()) return refused(write.error());
  if (write->conditions.empty() && write->meta.empty()) return respond(exchange, shown);
  if (auto why = beyond_bounds(json->dump(), base.dump().size())) return too_large(exchange, *why);
  if (dry) return exchange.send(200, json->dump() + "\n");
  Call call = new_call();
  backend_.write_pod(shown.job->id(), std::move(*write), std::move(call.done));
  return call.promise.then([this, &exchange, target](Status status) -> kj::Promise<void> {
    const auto now = view_.pod(target.ns, target.name);
    if (!status.ok() || !now)
      return exchange.send_error({status.ok() ? Errc::not_found : status.error().code, "", {}},
                                 "pods", target.name);
    return respond(exchange, *now);
  });
}

kj::Promise<void> PodRoutes::remove(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad_options(options.error());
  return delete_pod(exchange, target, *options, false);
}

kj::Promise<void> PodRoutes::evict(Exchange& exchange, const Target& target,
                                   const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad_options(options.error());
  return delete_pod(exchange, target, *options, true);
}

kj::Promise<void> PodRoutes::delete_pod(Exchange& exchange, const Target& target,
                                        const DeleteOptions& options, bool evict) {
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  const std::string uid = uid_of(*shown);
  if (!options.uid.empty() && options.uid != uid)
    return exchange.send_error({Errc::conflict, precondition_text("UID", options.uid, uid), {}},
                               "pods", target.name);
  auto answer = [this, &exchange, target, uid, evict]() -> kj::Promise<void> {
    if (evict) return exchange.send(201, dumped(success_json("pods", target.name, uid)) + "\n");
    return pod_or_success(exchange, target, uid);
  };
  if (options.dry) return answer();
  const auto remove = [this, evict, grace_ms = options.grace_ms, job = shown->job->id(),
                       key = shown->pod->key](std::function<void(Status)> done) {
    backend_.delete_pods(job, {key}, evict, grace_ms, std::move(done));
  };
  auto removal = OwnerDeletion(view_, backend_).other(uid, options.propagation, remove);
  return removal.then([&exchange, target, answer](Status status) -> kj::Promise<void> {
    if (!status.ok())
      return exchange.send_error({status.error().code, "", {}}, "pods", target.name);
    return answer();
  });
}

kj::Promise<void> PodRoutes::pod_or_success(Exchange& exchange, const Target& target,
                                            const std::string& uid) {
  const auto now = view_.pod(target.ns, target.name);
  if (now && uid_of(*now) == uid) return respond(exchange, *now);
  return exchange.send(200, dumped(success_json("pods", target.name, uid)) + "\n");
}

}  // namespace muster::api
