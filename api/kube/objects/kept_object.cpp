#include "api/kube/objects/kept_object.hpp"

#include "api/kube/objects/canonical.hpp"
#include "api/kube/objects/owner_refs.hpp"
#include "api/kube/objects/queue_object.hpp"
#include "api/kube/schema/fields.hpp"
#include "base/text/time_text.hpp"
#include "core/spec/fields/selector.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/violations.hpp"
#include "core/spec/values/well_known.hpp"

#include <kj/encoding.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace muster::api {
namespace {

// Event fields that have another name in events.k8s.io/v1.
struct Renamed {
  const char *core, *events;
};
constexpr Renamed kRenamed[] = {{"involvedObject", "regarding"},
                                {"message", "note"},
                                {"source", "deprecatedSource"},
                                {"firstTimestamp", "deprecatedFirstTimestamp"},
                                {"lastTimestamp", "deprecatedLastTimestamp"},
                                {"count", "deprecatedCount"},
                                {"reportingComponent", "reportingController"}};

constexpr const char* kCoreVersion = "v1";
constexpr const char* kCoreEvent = kCoreVersion;
constexpr const char* kEventsEvent = "events.k8s.io/v1";
constexpr size_t kNoteMax = 1'024;    // bytes, in events.k8s.io/v1
constexpr size_t kInstanceMax = 128;  // bytes of reportingInstance, action or reason
constexpr size_t kKeptBaseMax = 248;  // bytes; leaves room for the suffix in 253
constexpr size_t kNamespaceBaseMax = 58;
constexpr size_t kDataMax = 1u << 20;  // bytes of a config map's values, as in Kubernetes
constexpr const char* kNameLabel = "kubernetes.io/metadata.name";
constexpr const char* kDeletedByKey = "muster.dev/deleted-by-uid";
constexpr const char *kActive = "Active", *kTerminating = "Terminating";
constexpr const char* kImmutable = "field is immutable when `immutable` is set";

const char* kind_of(const KeptRequest& request) {
  switch (request.kind) {
    case core::KeptKind::lease:
      return "Lease";
    case core::KeptKind::event:
      return "Event";
    case core::KeptKind::config_map:
      return "ConfigMap";
    case core::KeptKind::name_space:
      return "Namespace";
    case core::KeptKind::cron_job:
      return "CronJob";
    case core::KeptKind::queue:
      return "Queue";
    case core::KeptKind::priority_class:
      return "PriorityClass";
  }
  return "";
}

const char* version_of(const KeptRequest& request) {
  if (request.kind == core::KeptKind::lease) return "coordination.k8s.io/v1";
  if (request.kind == core::KeptKind::cron_job) return "batch/v1";
  if (request.kind == core::KeptKind::queue) return "muster.dev/v1";
  if (request.kind == core::KeptKind::priority_class) return "scheduling.k8s.io/v1";
  if (request.kind != core::KeptKind::event) return kCoreVersion;
  return request.words == EventWords::core_v1 ? kCoreEvent : kEventsEvent;
}

// Call after conform(): all values are strings.
core::StringMap strings_of(const Json& meta, const char* name) {
  return meta.value(name, core::StringMap());
}

void check_time(const Json& object, const std::string& path, const char* name,
                core::Violations& found) {
  const std::string text = member_text(object, name);
  if (!text.empty() && !parse_time(text))
    found.invalid(path + name, text, "must be a time such as 2026-03-01T12:00:00.000000Z");
}

void check_metadata(const Json& meta, core::KeptKind kind, core::Violations& found) {
  const bool name_space = kind == core::KeptKind::name_space;
  const std::string name = member_text(meta, "name");
  for (const std::string& why :
       name_space ? core::dns_label_errors(name) : core::dns_subdomain_errors(name))
    found.invalid("metadata.name", name, why);
  if (!core::is_cluster_wide(kind))
    for (const std::string& why : core::dns_label_errors(member_text(meta, "namespace")))
      found.invalid("metadata.namespace", member_text(meta, "namespace"), why);
  core::validate_labels("metadata.labels", strings_of(meta, "labels"), found);
  core::validate_annotation_map("metadata.annotations", strings_of(meta, "annotations"), found);
}

// An object has finalizers only while it is being deleted: those of the deletion, which clients may
// remove. `before`: the metadata of the object as it is; nullptr: it is new.
void keep_deletion(Json& meta, const Json* before, core::Violations& found) {
  const std::vector<std::string> none;
  const auto finalizers = meta.value("finalizers", none);
  if (before == nullptr || !before->contains("deletionTimestamp")) {
    if (!finalizers.empty())
      found.forbidden("metadata.finalizers", "finalizers are not supported here");
    return;
  }
  for (const char* name : {"deletionTimestamp", "deletionGracePeriodSeconds"})
    if (before->contains(name)) meta[name] = before->at(name);
  const auto had = before->value("finalizers", none);
  for (const std::string& name : finalizers)
    if (std::find(had.begin(), had.end(), name) == had.end())
      found.forbidden("metadata.finalizers",
                      "no new finalizers can be added if the object is being deleted, found new "
                      "finalizers []string{\"" +
                          name + "\"}");
}

void check_lease(const Json& lease, core::Violations& found) {
  const Json spec = lease.value("spec", Json::object());
  if (auto it = spec.find("holderIdentity"); it != spec.end() && it->get<std::string>().empty())
    found.invalid("spec.holderIdentity", "", "must not be empty");
  if (auto it = spec.find("leaseDurationSeconds"); it != spec.end() && it->get<int64_t>() <= 0)
    found.invalid("spec.leaseDurationSeconds", it->get<int64_t>(), "must be greater than 0");
  if (auto it = spec.find("leaseTransitions"); it != spec.end() && it->get<int64_t>() < 0)
    found.invalid("spec.leaseTransitions", it->get<int64_t>(),
                  "must be greater than or equal to 0");
  check_time(spec, "spec.", "acquireTime", found);
  check_time(spec, "spec.", "renewTime", found);
}

void check_bounded(const Json& event, const char* name, size_t max, bool required,
                   core::Violations& found) {
  const std::string text = member_text(event, name);
  if (text.empty() && required) found.required(name, "");
  if (text.size() > max) found.too_long(name, max);
}

// Checks an event in the API version in which it was written.
void check_event(const Json& event, const KeptRequest& request, core::Violations& found) {
  const bool core_words = request.words == EventWords::core_v1;
  const char* about = core_words ? "involvedObject" : "regarding";
  const Json object = event.value(about, Json::object());
  const std::string ns = member_text(object, "namespace");
  if (core_words && !event.contains(about)) found.required(about, "");
  // Events of objects without a namespace belong in `default`.
  if (ns.empty() ? !object.empty() && request.ns != "default" : ns != request.ns)
    found.invalid(std::string(about) + ".namespace", ns, "does not match event.namespace");
  for (const char* name : {"firstTimestamp", "lastTimestamp", "deprecatedFirstTimestamp",
                           "deprecatedLastTimestamp", "eventTime"})
    check_time(event, "", name, found);
  check_time(event.value("series", Json::object()), "series.", "lastObservedTime", found);
  if (core_words) return;
  if (member_text(event, "eventTime").empty()) found.required("eventTime", "");
  check_bounded(event, "reportingInstance", kInstanceMax, true, found);
  check_bounded(event, "action", kInstanceMax, true, found);
  check_bounded(event, "reason", kInstanceMax, true, found);
  check_bounded(event, "note", kNoteMax, false, found);
  const std::string teller = member_text(event, "reportingController"),
                    type = member_text(event, "type");
  if (teller.empty()) found.required("reportingController", "");
  if (!teller.empty())
    for (const std::string& why : core::qualified_name_errors(teller))
      found.invalid("reportingController", teller, why);
  if (type != "Normal" && type != "Warning")
    found.not_supported("type", type, {"Normal", "Warning"});
}

// The decoded size of a base64 text; nothing if it is not base64.
std::optional<size_t> decoded_size(const std::string& text) {
  const auto decoded = kj::decodeBase64(kj::arrayPtr(text.data(), text.size()));
  if (decoded.hadErrors) return std::nullopt;
  return decoded.size();
}

// Call after conform(). Returns nothing if a value of binaryData is not base64.
std::optional<size_t> check_config_map(const Json& map, const Json* old, core::Violations& found) {
  const Json none = Json::object();
  const Json data = map.value("data", none), binary = map.value("binaryData", none);
  size_t bytes = 0;
  for (const auto& [key, value] : data.items()) {
    const std::string path = "data[" + key + "]";
    for (const std::string& why : core::config_key_errors(key)) found.invalid(path, key, why);
    if (binary.contains(key)) found.invalid(path, key, "duplicate of key present in binaryData");
    bytes += value.get_ref<const std::string&>().size();
  }
  for (const auto& [key, value] : binary.items()) {
    const std::string path = "binaryData[" + key + "]";
    for (const std::string& why : core::config_key_errors(key)) found.invalid(path, key, why);
    const auto size = decoded_size(value.get_ref<const std::string&>());
    if (!size) return std::nullopt;
    bytes += *size;
  }
  if (bytes > kDataMax) found.too_long("data", kDataMax);
  if (old == nullptr || !old->value("immutable", false)) return bytes;
  if (!map.value("immutable", false)) found.forbidden("immutable", kImmutable);
  if (data != old->value("data", none)) found.forbidden("data", kImmutable);
  if (binary != old->value("binaryData", none)) found.forbidden("binaryData", kImmutable);
  return bytes;
}

// Clients cannot change the owner; only some may share.
void check_access(Json& meta, const KeptRequest& request, const Json* old,
                  core::Violations& found) {
  core::StringMap annotations = strings_of(meta, "annotations");
  const core::StringMap had =
      old ? strings_of((*old)["metadata"], "annotations") : core::StringMap();
  core::keep_owner(old ? core::owner_of(had) : request.owner, annotations, found);
  auto value = [](const core::StringMap& map, std::string_view key) {
    const auto it = map.find(std::string(key));
    return it == map.end() ? std::string() : it->second;
  };
  const std::string shared = value(annotations, kSharedKey);
  const std::string path = "metadata.annotations[" + std::string(kSharedKey) + "]";
  if (!shared.empty() && shared != "true" && shared != "false")
    found.invalid(path, shared, "must be true or false");
  if (!request.may_share && shared != value(had, kSharedKey))
    found.forbidden(path, "only operators and admins may share a config map with all users");
  if (annotations.empty())
    meta.erase("annotations");
  else
    meta["annotations"] = annotations;
}

// Sets the parts of a namespace that are not written through `sub` (KeptRequest).
void complete_namespace(Json& json, const Json* old, const std::string& sub = "") {
  Json& meta = json["metadata"];
  meta.erase("namespace");
  meta["labels"][kNameLabel] = meta["name"];
  if (sub != "finalize")
    json["spec"] =
        old ? old->value("spec", Json::object()) : Json{{"finalizers", {kNamespaceFinalizer}}};
  if (sub != "status")
    json["status"] = old ? old->value("status", Json::object()) : Json{{"phase", kActive}};
  if (!old) return;
  const Json& had = (*old)["metadata"];
  if (had.contains("deletionTimestamp")) meta["deletionTimestamp"] = had["deletionTimestamp"];
  const core::StringMap annotations = strings_of(had, "annotations");
  if (const auto by = annotations.find(kDeletedByKey); by != annotations.end())
    meta["annotations"][kDeletedByKey] = by->second;
}

// As ValidateNamespaceStatusUpdate and ValidateNamespaceFinalizeUpdate of Kubernetes. Call after
// complete_namespace().
void check_namespace(const Json& json, const std::string& sub, core::Violations& found) {
  if (sub == "status") {
    const std::string phase = member_text(json.value("status", Json::object()), "phase");
    const bool deleted = json["metadata"].contains("deletionTimestamp");
    if (!deleted && phase != kActive)
      found.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
    if (deleted && phase != kTerminating)
      found.invalid("status.Phase", phase,
                    "may only be 'Terminating' if `deletionTimestamp` is not empty");
  }
  if (sub != "finalize") return;
  size_t i = 0;
  for (const Json& one : json.value("spec", Json::object()).value("finalizers", Json::array())) {
    const std::string name = one.get<std::string>();
    const std::string path = "spec.finalizers[" + std::to_string(i++) + "]";
    for (const std::string& why : core::qualified_name_errors(name)) found.invalid(path, name, why);
    if (name.find('/') == std::string::npos && name != kNamespaceFinalizer &&
        name != core::kOrphanFinalizer && name != core::kForegroundFinalizer)
      found.invalid(path, name,
                    "name is neither a standard finalizer name nor is it fully qualified");
  }
}

void rename(OrderedJson& object, const char* from, const char* to) {
  if (auto it = object.find(from); it != object.end()) {
    object[to] = std::move(*it);
    object.erase(from);
  }
}

// Counts the versions of the spec.
void set_generation(Json& json, const Json* old) {
  int64_t generation = 1;
  if (old) {
    generation = member_number<int64_t>((*old)["metadata"], "generation").value_or(1);
    if (old->value("spec", Json()) != json.value("spec", Json())) ++generation;
  }
  json["metadata"]["generation"] = generation;
}

// Completes and checks what is particular to a kind. An error: it cannot be read.
std::optional<Error> complete(Json& json, const KeptRequest& request, const Json* old,
                              core::Violations& found, std::vector<std::string>& warnings) {
  switch (request.kind) {
    case core::KeptKind::lease:
      check_lease(json, found);
      break;
    case core::KeptKind::event:
      check_event(json, request, found);
      break;
    case core::KeptKind::name_space:
      complete_namespace(json, old, request.sub);
      check_namespace(json, request.sub, found);
      break;
    case core::KeptKind::config_map:
      if (!check_config_map(json, old, found)) return invalid("binaryData: illegal base64 data");
      break;
    case core::KeptKind::cron_job:
      if (request.sub.empty() && request.cron)
        settle_cron_job(json, old, *request.cron, found, warnings);
      set_generation(json, old);
      break;
    case core::KeptKind::queue:
      settle_queue(json, found);
      set_generation(json, old);
      break;
    case core::KeptKind::priority_class:
      settle_priority_class(json, old, found);
      set_generation(json, old);
      break;
  }
  return std::nullopt;
}

// A write of an object's status leaves its spec, and any other write its status.
void keep_other_part(Json& json, const Json* old, bool status) {
  const char* const part = status ? "spec" : "status";
  json[part] = old ? old->value(part, Json::object()) : Json::object();
}

// `given` is set for a new object, `old` for a change.
Result<WrittenKept> judged(JsonText text, const KeptRequest& request, const NewKept* given,
                           const core::Kept* old) {
  WrittenKept out;
  Json& json = text.value;
  const bool event = request.kind == core::KeptKind::event;
  const bool name_space = request.kind == core::KeptKind::name_space;
  const bool owned = has_owner(request.kind);
  const bool cron = request.kind == core::KeptKind::cron_job;
  const bool events_words = event && request.words == EventWords::events_v1;
  const Json before = old ? Json::parse(old->json) : Json::object();
  auto unknown = conform(json, events_words ? "Event.events" : kind_of(request));
  if (!unknown) return unknown.error();
  auto complaints = field_complaints(*unknown, text.duplicates, request.unknown_fields);
  if (!complaints) return complaints.error();
  out.warnings = std::move(*complaints);

  const std::string kind = kind_of(request), version = version_of(request);
  if (json.value("kind", kind) != kind || json.value("apiVersion", version) != version)
    return invalid("apiVersion and kind: found " + json.value("apiVersion", version) + " " +
                   json.value("kind", kind) + ", expected " + version + " " + kind);
  if (!json.contains("metadata")) json["metadata"] = Json::object();
  if (cron) keep_other_part(json, old ? &before : nullptr, request.sub == "status");
  Json& meta = json["metadata"];
  // An empty value counts as absent.
  auto differs = [&meta](const char* field, const std::string& is) {
    const std::string text = member_text(meta, field);
    return !text.empty() && text != is;
  };
  if (differs("namespace", request.ns))
    return invalid("metadata.namespace: the namespace of the object (" +
                   member_text(meta, "namespace") +
                   ") does not match the namespace of the request (" + request.ns + ")");
  if (!request.name.empty() && differs("name", request.name))
    return invalid("metadata.name: the name of the object (" + member_text(meta, "name") +
                   ") does not match the name of the request (" + request.name + ")");
  out.resource_version = member_text(meta, "resourceVersion");
  if (old && differs("uid", old->uid))
    return Error{Errc::conflict,
                 "Precondition failed: UID in precondition: " + member_text(meta, "uid") +
                     ", UID in object meta: " + old->uid,
                 {}};
  std::string name = request.name.empty() ? member_text(meta, "name") : request.name;
  if (name.empty() && given && !member_text(meta, "generateName").empty())
    name =
        member_text(meta, "generateName").substr(0, name_space ? kNamespaceBaseMax : kKeptBaseMax) +
        given->name_suffix;
  for (const char* own : {"resourceVersion", "selfLink", "generation", "deletionTimestamp",
                          "deletionGracePeriodSeconds"})
    meta.erase(own);
  meta["name"] = name;
  meta["namespace"] = request.ns;
  if (core::is_cluster_wide(request.kind)) meta.erase("namespace");
  meta["uid"] = given ? given->uid : old->uid;
  meta["creationTimestamp"] =
      given ? time_text(given->now_ms) : member_text(before["metadata"], "creationTimestamp");
  core::Violations found;
  if (name.empty())
    found.required("metadata.name", "name or generateName is required");
  else
    check_metadata(meta, request.kind, found);
  keep_deletion(meta, old ? &before["metadata"] : nullptr, found);
  check_owner_refs(read_owner_refs(meta), found);
  if (owned) check_access(meta, request, old ? &before : nullptr, found);
  if (auto unreadable = complete(json, request, old ? &before : nullptr, found, out.warnings))
    return std::move(*unreadable);
  if (!found.empty()) return Error{Errc::invalid, "the object is invalid", found.take()};
  make_metadata_canonical(json);
  json["kind"] = kind;
  if (events_words) json = in_core_words(std::move(json));
  json["apiVersion"] = event ? kCoreVersion : version;
  out.kept = {.kind = request.kind,
              .ns = request.ns,
              .name = name,
              .uid = member_text(json["metadata"], "uid"),
              .json = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
  if (owned) out.kept.owner = core::owner_uid(strings_of(json["metadata"], "annotations"));
  if (auto why = kept_too_long(out.kept)) return std::move(*why);
  return out;
}

}  // namespace

OrderedJson in_events_words(OrderedJson event) {
  for (const auto& [core, events] : kRenamed) rename(event, core, events);
  event["apiVersion"] = kEventsEvent;
  if (!event.contains("eventTime")) event["eventTime"] = nullptr;
  return event;
}

Json in_core_words(Json event) {
  for (const auto& [core, events] : kRenamed) {
    if (auto it = event.find(events); it != event.end()) {
      event[core] = std::move(*it);
      event.erase(events);
    }
  }
  event["apiVersion"] = kCoreEvent;
  if (!event.contains("involvedObject")) event["involvedObject"] = Json::object();
  return event;
}

OrderedJson kept_json(const core::Kept& kept, uint64_t version, EventWords words) {
  OrderedJson parsed = OrderedJson::parse(kept.json, nullptr, false);
  MUSTER_CHECK(parsed.is_object(), kept.id);
  OrderedJson json = {{"kind", parsed["kind"]}, {"apiVersion", parsed["apiVersion"]}};
  json["metadata"] = std::move(parsed["metadata"]);
  json["metadata"]["resourceVersion"] = std::to_string(version);
  for (auto& [name, value] : parsed.items())
    if (name != "metadata" && name != "kind" && name != "apiVersion") json[name] = std::move(value);
  if (kept.kind != core::KeptKind::event) return json;
  return words == EventWords::core_v1 ? json : in_events_words(std::move(json));
}

namespace {

std::set<std::string> keys_of(const Json& object, const char* member) {
  std::set<std::string> keys;
  if (const auto it = object.find(member); it != object.end())
    for (const auto& [key, value] : it->items()) keys.insert(key);
  return keys;
}

}  // namespace

KeptFacts kept_facts(const core::Kept& kept) {
  KeptFacts facts;
  const Json json = Json::parse(kept.json, nullptr, false);
  MUSTER_CHECK(json.is_object(), kept.id);
  const Json none = Json::object();
  facts.labels = strings_of(json.at("metadata"), "labels");
  facts.owners = read_owner_refs(json.at("metadata"));
  facts.terminating = json.at("metadata").contains("deletionTimestamp");
  facts.finalizers = json.at("metadata").value("finalizers", std::vector<std::string>());
  facts.fields = {{"metadata.name", kept.name}, {"metadata.namespace", kept.ns}};
  if (kept.kind == core::KeptKind::lease) return facts;
  if (kept.kind != core::KeptKind::event)
    facts.created_ms = parse_time(member_text(json.at("metadata"), "creationTimestamp"));
  if (kept.kind == core::KeptKind::config_map) {
    facts.keys = {keys_of(json, "data"), keys_of(json, "binaryData")};
    const core::StringMap annotations = strings_of(json.at("metadata"), "annotations");
    const auto shared = annotations.find(std::string(kSharedKey));
    facts.shared = shared != annotations.end() && shared->second == "true";
    return facts;
  }
  if (kept.kind != core::KeptKind::name_space && kept.kind != core::KeptKind::event) return facts;
  if (kept.kind == core::KeptKind::name_space) {
    facts.fields["status.phase"] = facts.terminating ? kTerminating : kActive;
    facts.finalizers = json.value("spec", none).value("finalizers", std::vector<std::string>());
    return facts;
  }
  const Json object = json.value("involvedObject", none), source = json.value("source", none);
  for (const char* name :
       {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"})
    facts.fields["involvedObject." + std::string(name)] = member_text(object, name);
  for (const char* name : {"reason", "reportingComponent", "type"})
    facts.fields[name] = member_text(json, name);
  const std::string component = member_text(source, "component");
  facts.fields["source"] = component.empty() ? facts.fields["reportingComponent"] : component;
  return facts;
}

const char* managed_type(core::KeptKind kind) {
  return kind_of(KeptRequest{.kind = kind});
}

bool has_owner(core::KeptKind kind) {
  return kind == core::KeptKind::config_map || kind == core::KeptKind::name_space ||
         kind == core::KeptKind::cron_job;
}

std::optional<Error> kept_too_long(const core::Kept& kept) {
  const size_t most = kept.kind == core::KeptKind::config_map ? core::kConfigMapBytesMax
                      : kept.kind == core::KeptKind::cron_job ? core::kCronJobBytesMax
                                                              : core::kKeptBytesMax;
  if (kept.json.size() <= most) return std::nullopt;
  return Error{Errc::invalid,
               "the object is invalid",
               {{"metadata", Violation::Kind::too_long, "",
                 "the object is " + std::to_string(kept.json.size()) +
                     " bytes; the limit for this kind is " + std::to_string(most)}}};
}

core::Kept namespace_in_use(const std::string& name, const std::string& uid, Millis now_ms) {
  Json json = {{"kind", "Namespace"}, {"apiVersion", kCoreVersion}, {"metadata", {{"name", name}}}};
  complete_namespace(json, nullptr);
  json["metadata"]["creationTimestamp"] = now_ms ? Json(time_text(now_ms)) : Json();
  if (!uid.empty()) json["metadata"]["uid"] = uid;
  return {.kind = core::KeptKind::name_space, .name = name, .uid = uid, .json = json.dump()};
}

core::KeptPtr terminated(const core::Kept& name_space, Millis now_ms, std::optional<uint32_t> by) {
  Json json = Json::parse(name_space.json);
  json["metadata"]["deletionTimestamp"] = time_text(now_ms);
  Json& meta = json["metadata"];
  if (meta.contains("annotations")) meta["annotations"].erase(kDeletedByKey);
  if (by) meta["annotations"][kDeletedByKey] = std::to_string(*by);
  json["status"]["phase"] = kTerminating;
  auto next = std::make_shared<core::Kept>(name_space);
  next->json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return next;
}

core::KeptPtr deleted_in_foreground(const core::Kept& kept, Millis now_ms) {
  Json json = Json::parse(kept.json);
  Json& meta = json["metadata"];
  if (!meta.contains("deletionTimestamp")) meta["deletionTimestamp"] = time_text(now_ms);
  meta["deletionGracePeriodSeconds"] = 0;
  meta["finalizers"] = {core::kForegroundFinalizer};
  auto next = std::make_shared<core::Kept>(kept);
  next->json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return next;
}

core::KeptPtr finalized(const core::Kept& name_space) {
  Json json = Json::parse(name_space.json);
  Json left = Json::array();
  for (Json& one : json["spec"]["finalizers"])
    if (one != kNamespaceFinalizer) left.push_back(std::move(one));
  json["spec"]["finalizers"] = std::move(left);
  auto next = std::make_shared<core::Kept>(name_space);
  next->json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return next;
}

std::optional<uint32_t> terminated_by(const core::Kept& name_space) {
  const core::StringMap annotations =
      strings_of(Json::parse(name_space.json)["metadata"], "annotations");
  const auto by = annotations.find(kDeletedByKey);
  if (by == annotations.end()) return std::nullopt;
  return static_cast<uint32_t>(std::stoul(by->second));
}

core::Kept root_ca(const std::string& ns, const std::string& pem, Millis now_ms) {
  const Json annotations = {
      {"kubernetes.io/description", "Verifies the certificate of the API. Empty without TLS."},
      {kSharedKey, "true"}};
  const Json json = {{"kind", "ConfigMap"},
                     {"apiVersion", kCoreVersion},
                     {"metadata",
                      {{"name", kRootCaName},
                       {"namespace", ns},
                       {"creationTimestamp", time_text(now_ms)},
                       {"annotations", annotations}}},
                     {"data", {{"ca.crt", pem}}}};
  return {.kind = core::KeptKind::config_map,
          .ns = ns,
          .name = std::string(kRootCaName),
          .json = json.dump(),
          .version = 1};
}

Result<WrittenKept> new_kept(JsonText text, const KeptRequest& request, const NewKept& given) {
  return judged(std::move(text), request, &given, nullptr);
}

Result<WrittenKept> changed_kept(JsonText text, const KeptRequest& request, const core::Kept& old) {
  return judged(std::move(text), request, nullptr, &old);
}

}  // namespace muster::api
