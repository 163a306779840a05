#include "api/routes/pods/pod_routes.hpp"

#include "api/request/writes.hpp"
#include "api/routes/kept/owner_sweep.hpp"
#include "api/view/render/pod_json.hpp"
#include "core/job/facts/pod_conditions.hpp"
#include "core/pod_name.hpp"
#include "core/spec/fields/selector.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/violations.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

namespace muster::api {
namespace {

constexpr size_t kPodConditionsMax = 100;  // per pod: each is a record and is checked by itself
constexpr size_t kMetaMax = 100;           // labels and annotations beyond the template's

std::string uid_of(const Shown& shown) {
  return core::pod_uid(shown.job->object().meta.uid, shown.pod->key);
}

constexpr const char* kMadeByUs = "pods are managed by muster: change the job instead";

// The conditions that a written status changes. Conditions that follow from the pod's life and the
// rest of the status belong to muster: changing them is refused.
Result<std::vector<core::PodCondition>> changed_conditions(const Json& before, const Json& after) {
  core::Violations found;
  const Json was = before.value("status", Json::object()), is = after.value("status", was);
  std::set<std::string> names;
  for (const Json* one : {&was, &is})
    for (const auto& [name, value] : one->items()) names.insert(name);
  for (const std::string& name : names)
    if (name != "conditions" && was.value(name, Json()) != is.value(name, Json()))
      found.forbidden("status." + name,
                      "set by muster; only conditions of other types can be changed");

  auto list = [](const Json& status) {
    const Json none = Json::array(), conditions = status.value("conditions", none);
    return conditions.is_null() ? none : conditions;
  };
  const Json old = list(was), now = list(is);
  if (!now.is_array()) return Error{Errc::invalid, "status.conditions: must be a list", {}};
  if (now.size() > kPodConditionsMax) {
    found.too_many("status.conditions", now.size(), kPodConditionsMax);
    return Error{Errc::invalid, "the status is invalid", found.take()};
  }
  std::vector<core::PodCondition> changed;
  std::set<std::string> types;
  for (size_t i = 0; i < now.size(); ++i) {
    const std::string path = "status.conditions[" + std::to_string(i) + "]";
    if (!now[i].is_object()) return Error{Errc::invalid, path + ": must be an object", {}};
    core::PodCondition c{member_text(now[i], "type"), member_text(now[i], "status"), 0,
                         member_text(now[i], "reason"), member_text(now[i], "message")};
    types.insert(c.type);
    if (c.type.empty()) found.required(path + ".type", "");
    if (c.status != "True" && c.status != "False" && c.status != "Unknown")
      found.not_supported(path + ".status", c.status, {"False", "True", "Unknown"});
    if (std::find(old.begin(), old.end(), now[i]) != old.end()) continue;
    if (core::derived_condition(c.type))
      found.forbidden("status.conditions[" + c.type + "]", "set by muster");
    else
      changed.push_back(std::move(c));
  }
  for (const Json& one : old)
    if (const std::string type = member_text(one, "type");
        !types.contains(type) && !core::derived_condition(type))
      found.forbidden("status.conditions[" + type + "]",
                      "conditions can be changed but not removed");
  if (!found.empty()) return Error{Errc::invalid, "the status is invalid", found.take()};
  return changed;
}

Result<core::StringMap> string_map(const Json& meta, const char* name) {
  core::StringMap map;
  auto it = meta.find(name);
  if (it == meta.end() || it->is_null()) return map;
  const std::string path = std::string("metadata.") + name;
  if (!it->is_object()) return Error{Errc::invalid, path + ": must be an object", {}};
  for (const auto& [key, value] : it->items()) {
    if (!value.is_string())
      return Error{Errc::invalid, path + "." + key + ": must be a string", {}};
    map[key] = value.get<std::string>();
  }
  return map;
}

// Labels by which a job recognizes its pods, and annotations that muster itself writes.
bool fixed(const core::Job& job, bool label, std::string_view key) {
  if (!label)
    return std::find(std::begin(kOwnAnnotations), std::end(kOwnAnnotations), key) !=
           std::end(kOwnAnnotations);
  for (std::string_view own :
       {core::kCompletionIndexKey, core::kJobNameLabel, core::kLegacyJobNameLabel,
        core::kControllerUidLabel, core::kLegacyControllerUidLabel})
    if (key == own) return true;
  const auto& selector = job.spec().selector;
  if (!selector) return false;
  return selector->match_labels.contains(std::string(key)) ||
         std::any_of(selector->match_expressions.begin(), selector->match_expressions.end(),
                     [key](const core::SelectorRequirement& r) { return r.key == key; });
}

// The labels and annotations that a write changes. The rest of the metadata belongs to muster.
Result<std::vector<core::PodMetaChange>> changed_meta(const Shown& shown, const Json& before,
                                                      const Json& after) {
  core::Violations found;
  std::vector<core::PodMetaChange> changes;
  const Json was = before.value("metadata", Json::object());
  const Json is = after.value("metadata", was);
  for (const bool label : {true, false}) {
    const char* name = label ? "labels" : "annotations";
    const auto old = string_map(was, name), now = string_map(is, name);
    if (!now.ok()) return now.error();
    for (const auto& [key, value] : *now)
      if (auto it = old->find(key); it == old->end() || it->second != value)
        changes.push_back({label, key, value});
    for (const auto& [key, value] : *old)
      if (!now->contains(key)) changes.push_back({label, key, std::nullopt});
    if (label)
      core::validate_labels("metadata.labels", *now, found);
    else
      core::validate_annotation_map("metadata.annotations", *now, found);
  }
  for (const core::PodMetaChange& change : changes) {
    const std::string path = change.label ? "metadata.labels" : "metadata.annotations";
    if (fixed(*shown.job, change.label, change.key))
      found.forbidden(path + "[" + change.key + "]", "managed by muster");
  }
  size_t all = shown.pod->meta.size() + changes.size();
  for (const core::PodMetaChange& one : shown.pod->meta)
    all -= std::any_of(changes.begin(), changes.end(), [&one](const core::PodMetaChange& change) {
      return change.label == one.label && change.key == one.key;
    });
  if (!changes.empty() && all > kMetaMax) found.too_many("metadata", all, kMetaMax);

  std::set<std::string> names;
  for (const Json* one : {&was, &is})
    for (const auto& [name, value] : one->items()) names.insert(name);
  for (const char* name : {"labels", "annotations", "resourceVersion", "managedFields"})
    names.erase(name);
  for (const std::string& name : names)
    if (was.value(name, Json()) != is.value(name, Json()))
      found.forbidden("metadata." + name, kMadeByUs);
  if (!found.empty()) return Error{Errc::invalid, "the metadata is invalid", found.take()};
  return changes;
}

}  // namespace

// Clients may write a pod's labels, annotations and conditions; the rest belongs to muster.
kj::Promise<void> PodRoutes::write(Exchange& exchange, const Target& target,
                                   const std::string& body) {
  auto options = write_options(exchange.url);
  if (!options.ok()) return exchange.bad_options(options.error());
  const auto shown = view_.pod(target.ns, target.name);
  if (!shown) return exchange.send_error({Errc::not_found, "", {}}, "pods", target.name);
  auto refused = [&exchange, &target](const Error& error) {
    return exchange.send_error(error, "pods", target.name);
  };
  std::string text;
  renderer_.object(text, *shown);
  const Json base = Json::parse(text);
  auto json = written(SentBody::of(exchange, body), base);
  if (!json.ok()) return refused(json.error());
  if (!version_holds(version_text(*json), shown->version)) return refused({Errc::conflict, "", {}});
  core::PodConditionsWrite write{.pod = shown->pod->key};
  if (target.sub.empty()) {
    core::Violations found;
    if (json->value("spec", Json::object()) != base.value("spec", Json::object()))
      found.forbidden("spec", kMadeByUs);
    if (!found.empty()) return refused({Errc::invalid, "", found.take()});
  } else {
    auto conditions = changed_conditions(base, *json);
    if (!conditions.ok()) return refused(conditions.error());
    write.conditions = std::move(*conditions);
  }
  auto meta = changed_meta(*shown, base, *json);
  if (!meta.ok()) return refused(meta.error());
  write.meta = std::move(*meta);
  if (write.conditions.empty() && write.meta.empty()) return respond(exchange, *shown);
  if (options->dry) return exchange.send(200, json->dump() + "\n");
  Call call = new_call();
  backend_.write_pod(shown->job->id(), std::move(write), std::move(call.done));
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
  auto removal = delete_owner(view_, backend_, options.propagation, uid,
                              [this, evict, grace_ms = options.grace_ms, job = shown->job->id(),
                               key = shown->pod->key](std::function<void(Status)> done) {
                                backend_.delete_pods(job, {key}, evict, grace_ms, std::move(done));
                              });
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
