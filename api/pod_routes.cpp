// Writing pods: delete, evict, and conditions through their status.
#include "api/routes.hpp"
#include "api/server.hpp"
#include "core/job/pod_conditions.hpp"
#include "core/pod_name.hpp"
#include "core/spec/violations.hpp"

namespace muster::api {
namespace {

constexpr size_t kConditionsMax = 100;  // of a pod: each is a record, and looked at one by one

std::string uid_of(const Shown& shown) {
  return core::pod_uid(shown.job->object().meta.uid, shown.pod->key);
}

std::string text_of(const Json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// The conditions of a written status that are not as they were. Those that follow from the pod's
// life are muster's: what is written there has no effect.
Result<std::vector<core::PodCondition>> changed_conditions(const Json& before, const Json& after) {
  auto list = [](const Json& pod) {
    const Json* found = find_path(pod, {"status", "conditions"});
    return found && !found->is_null() ? *found : Json::array();
  };
  core::Violations found;
  std::vector<core::PodCondition> changed;
  const Json old = list(before), now = list(after);
  if (!now.is_array()) return Error{Errc::invalid, "status.conditions: has to be a list", {}};
  if (now.size() > kConditionsMax) {
    found.too_many("status.conditions", now.size(), kConditionsMax);
    return Error{Errc::invalid, "the status breaks rules", found.take()};
  }
  for (size_t i = 0; i < now.size(); ++i) {
    const std::string path = "status.conditions[" + std::to_string(i) + "]";
    if (!now[i].is_object()) return Error{Errc::invalid, path + ": has to be an object", {}};
    core::PodCondition c{text_of(now[i], "type"), text_of(now[i], "status"), 0,
                         text_of(now[i], "reason"), text_of(now[i], "message")};
    if (c.type.empty()) found.required(path + ".type", "");
    if (c.status != "True" && c.status != "False" && c.status != "Unknown")
      found.not_supported(path + ".status", c.status, {"False", "True", "Unknown"});
    bool same = std::find(old.begin(), old.end(), now[i]) != old.end();
    if (!same && !core::derived_condition(c.type)) changed.push_back(std::move(c));
  }
  if (!found.empty()) return Error{Errc::invalid, "the status breaks rules", found.take()};
  return changed;
}

}  // namespace

// A pod is muster's own: beside the conditions of its status nothing of it is written by others.
kj::Promise<void> Routes::write_pod(Exchange& exchange, const Target& target,
                                    const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad(options.error().message);
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  std::string text;
  renderer_.object(text, *shown);
  const Json base = Json::parse(text);
  auto json = written(exchange, body, base);
  if (!json.ok()) return exchange.bad(json.error().message);
  if (target.sub.empty()) {
    core::Violations found;
    for (const char* part : {"metadata", "spec"}) {
      Json a = base.value(part, Json::object()), b = json->value(part, Json::object());
      a.erase("resourceVersion");
      b.erase("resourceVersion");
      if (a != b) found.forbidden(part, "a pod is made and kept by muster: change its job instead");
    }
    if (found.empty()) return respond(exchange, *shown);
    return exchange.send_error({Errc::invalid, "", found.take()}, "pods", target.name);
  }
  auto changed = changed_conditions(base, *json);
  if (!changed.ok()) return exchange.send_error(changed.error(), "pods", target.name);
  if (options->dry) return exchange.send(200, json->dump() + "\n");
  if (changed->empty()) return respond(exchange, *shown);
  Call call = new_call();
  backend_.write_pod_conditions({shown->job->id(), shown->pod->key.index, shown->pod->key.attempt},
                                std::move(*changed), std::move(call.done));
  return call.promise.then([this, &exchange, target](Status status) -> kj::Promise<void> {
    const auto now = view_.pod(target.ns, target.name);
    if (!status.ok() || !now)
      return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
    return respond(exchange, *now);
  });
}

kj::Promise<void> Routes::remove_pod(Exchange& exchange, const Target& target,
                                     const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad(options.error().message);
  return delete_pod(exchange, target, *options, false);
}

kj::Promise<void> Routes::evict(Exchange& exchange, const Target& target, const std::string& body) {
  auto options = delete_options(exchange.url, body, exchange.content_type);
  if (!options.ok()) return exchange.bad(options.error().message);
  return delete_pod(exchange, target, *options, true);
}

kj::Promise<void> Routes::delete_pod(Exchange& exchange, const Target& target,
                                     const DeleteOptions& options, bool evict) {
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  const std::string uid = uid_of(*shown);
  if (!options.uid.empty() && options.uid != uid)
    return exchange.send_error({Errc::conflict,
                                "Precondition failed: UID in precondition: " + options.uid +
                                    ", UID in object meta: " + uid,
                                {}},
                               "pods", target.name);
  auto answer = [this, &exchange, target, uid, evict]() -> kj::Promise<void> {
    if (evict) return exchange.send(201, dumped(success_json("pods", target.name, uid)) + "\n");
    return pod_or_success(exchange, target, uid);
  };
  if (options.dry) return answer();
  Call call = new_call();
  backend_.delete_pods(shown->job->id(), {shown->pod->key}, evict, options.grace_ms,
                       std::move(call.done));
  return call.promise.then([&exchange, target, answer](Status status) -> kj::Promise<void> {
    if (!status.ok())
      return exchange.send_error({status.error().code, "", {}}, "pods", target.name);
    return answer();
  });
}

kj::Promise<void> Routes::pod_or_success(Exchange& exchange, const Target& target,
                                         const std::string& uid) {
  const auto now = view_.pod(target.ns, target.name);
  if (now && uid_of(*now) == uid) return respond(exchange, *now);
  return exchange.send(200, dumped(success_json("pods", target.name, uid)) + "\n");
}

}  // namespace muster::api
