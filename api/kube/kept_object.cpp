#include "api/kube/kept_object.hpp"

#include "api/kube/fields.hpp"
#include "core/spec/names.hpp"
#include "core/spec/selector.hpp"
#include "core/spec/violations.hpp"
#include "text/time_text.hpp"

#include <optional>
#include <utility>

namespace muster::api {
namespace {

// Fields of an event that have another name in events.k8s.io/v1.
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

constexpr const char* kCoreEvent = "v1";
constexpr const char* kEventsEvent = "events.k8s.io/v1";
constexpr size_t kNoteMax = 1'024;    // bytes, in events.k8s.io/v1
constexpr size_t kInstanceMax = 128;  // bytes; reportingInstance, action and reason
constexpr size_t kKeptBaseMax = 248;  // bytes; leaves room for the suffix in 253

const char* version_of(const KeptRequest& request) {
  if (request.kind == core::KeptKind::lease) return "coordination.k8s.io/v1";
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

void check_metadata(const Json& meta, core::Violations& found) {
  for (const std::string& why : core::dns_subdomain_errors(member_text(meta, "name")))
    found.invalid("metadata.name", member_text(meta, "name"), why);
  for (const std::string& why : core::dns_label_errors(member_text(meta, "namespace")))
    found.invalid("metadata.namespace", member_text(meta, "namespace"), why);
  core::validate_labels("metadata.labels", strings_of(meta, "labels"), found);
  core::validate_annotation_map("metadata.annotations", strings_of(meta, "annotations"), found);
  if (meta.contains("finalizers") && !meta["finalizers"].empty())
    found.forbidden("metadata.finalizers", "finalizers are not supported here");
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

void rename(OrderedJson& object, const char* from, const char* to) {
  if (auto it = object.find(from); it != object.end()) {
    object[to] = std::move(*it);
    object.erase(from);
  }
}

// `given` is set for a new object, `old` for a change.
Result<WrittenKept> judged(JsonText text, const KeptRequest& request, const NewKept* given,
                           const core::Kept* old) {
  WrittenKept out;
  Json& json = text.value;
  const bool lease = request.kind == core::KeptKind::lease;
  const bool events_words = !lease && request.words == EventWords::events_v1;
  auto unknown = conform(json, lease ? "Lease" : events_words ? "Event.events" : "Event");
  if (!unknown) return unknown.error();
  auto complaints = field_complaints(*unknown, text.duplicates, request.unknown_fields);
  if (!complaints) return complaints.error();
  out.warnings = std::move(*complaints);

  const std::string kind = lease ? "Lease" : "Event", version = version_of(request);
  if (json.value("kind", kind) != kind || json.value("apiVersion", version) != version)
    return invalid("apiVersion and kind: found " + json.value("apiVersion", version) + " " +
                   json.value("kind", kind) + ", expected " + version + " " + kind);
  if (!json.contains("metadata")) json["metadata"] = Json::object();
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
    name = member_text(meta, "generateName").substr(0, kKeptBaseMax) + given->name_suffix;
  for (const char* own : {"resourceVersion", "selfLink", "generation", "managedFields",
                          "deletionTimestamp", "deletionGracePeriodSeconds"})
    meta.erase(own);
  meta["name"] = name;
  meta["namespace"] = request.ns;
  meta["uid"] = given ? given->uid : old->uid;
  meta["creationTimestamp"] =
      given ? time_text(given->now_ms)
            : member_text(Json::parse(old->json)["metadata"], "creationTimestamp");
  core::Violations found;
  if (name.empty())
    found.required("metadata.name", "name or generateName is required");
  else
    check_metadata(meta, found);
  if (lease)
    check_lease(json, found);
  else
    check_event(json, request, found);
  if (!found.empty()) return Error{Errc::invalid, "the object is invalid", found.take()};
  json["kind"] = kind;
  if (events_words) json = in_core_words(std::move(json));
  json["apiVersion"] = lease ? version : kCoreEvent;
  out.kept = {.kind = request.kind,
              .ns = request.ns,
              .name = name,
              .uid = member_text(json["metadata"], "uid"),
              .json = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
  if (out.kept.json.size() > core::kKeptBytesMax)
    return Error{Errc::invalid,
                 "the object is invalid",
                 {{"metadata", Violation::Kind::too_long, "",
                   "the object takes " + std::to_string(out.kept.json.size()) +
                       " bytes; of this kind at most " + std::to_string(core::kKeptBytesMax) +
                       " are kept"}}};
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
  if (kept.kind == core::KeptKind::lease) return json;
  return words == EventWords::core_v1 ? json : in_events_words(std::move(json));
}

KeptFacts kept_facts(const core::Kept& kept) {
  KeptFacts facts;
  const Json json = Json::parse(kept.json, nullptr, false);
  MUSTER_CHECK(json.is_object(), kept.id);
  const Json none = Json::object();
  facts.labels = strings_of(json.at("metadata"), "labels");
  facts.fields = {{"metadata.name", kept.name}, {"metadata.namespace", kept.ns}};
  if (kept.kind == core::KeptKind::lease) return facts;
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

Result<WrittenKept> new_kept(JsonText text, const KeptRequest& request, const NewKept& given) {
  return judged(std::move(text), request, &given, nullptr);
}

Result<WrittenKept> changed_kept(JsonText text, const KeptRequest& request, const core::Kept& old) {
  return judged(std::move(text), request, nullptr, &old);
}

}  // namespace muster::api
