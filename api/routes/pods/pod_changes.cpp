#include "api/routes/pods/pod_changes.hpp"

#include "api/request/field_owners.hpp"
#include "api/view/render/pod_json.hpp"
#include "core/job/facts/pod_conditions.hpp"
#include "core/spec/fields/selector.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/violations.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kPodConditionsMax = 100;  // per pod: each is a record and is checked by itself
constexpr size_t kMetaMax = 100;           // labels and annotations beyond the template's

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

Result<core::PodConditionsWrite> pod_changes(const Shown& shown, const Json& before,
                                             const Json& after, const std::string& sub) {
  core::PodConditionsWrite write{.pod = shown.pod->key};
  if (sub.empty() && after.value("spec", Json::object()) != before.value("spec", Json::object())) {
    core::Violations found;
    found.forbidden("spec", kMadeByUs);
    return Error{Errc::invalid, "", found.take()};
  }
  if (!sub.empty()) {
    auto conditions = changed_conditions(before, after);
    if (!conditions.ok()) return conditions.error();
    write.conditions = std::move(*conditions);
  }
  auto meta = changed_meta(shown, before, after);
  if (!meta.ok()) return meta.error();
  write.meta = std::move(*meta);
  const std::string managers = managers_text(after);
  if (managers != managers_text(before))
    write.meta.push_back({false, std::string(kManagersKey),
                          managers.empty() ? std::nullopt : std::optional(managers)});
  return write;
}

void put_managers(Json& pod, const Json& part) {
  const Json* list = find_path(part, {"metadata", "managedFields"});
  if (list)
    pod["metadata"]["managedFields"] = *list;
  else if (pod.contains("metadata"))
    pod["metadata"].erase("managedFields");
}

}  // namespace muster::api
