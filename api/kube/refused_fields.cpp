#include "api/kube/refused_fields.hpp"

#include "api/kube/api_types.hpp"
#include "base/check.hpp"
#include "text/json_text.hpp"

#include <string>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr const char* kNotSupported = "not supported by this version of muster";

// Whether it is more than an empty list, object or string.
bool written(const json& value) {
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.is_structured() || !value.empty();
}

bool is_refused(const ApiField& field, const json& value) {
  switch (field.use) {
    case ApiField::Use::acts:
    case ApiField::Use::kept:
    case ApiField::Use::refused_in_part:  // refused_fields() has the rule
      return false;
    case ApiField::Use::refused:
      return written(value);
    case ApiField::Use::refused_even_empty:
      return true;
    case ApiField::Use::refused_unless:
      return (value.is_string() ? value.get_ref<const std::string&>() : value.dump()) !=
             field.refused_unless;
  }
  return false;
}

void refuse(const std::string& path, const ApiField& field, core::Violations& found) {
  std::string why = kNotSupported;
  if (!field.hint.empty()) why += "; " + std::string(field.hint);
  found.forbidden(path, std::move(why));
}

// Whether a process of this owner has it already (permit/permit.hpp): it runs as the owner, without
// capabilities, and can gain no privileges.
bool is_given(const std::string& key, const json& value, const core::Owner& owner) {
  if (key == "runAsUser") return value == owner.uid;
  if (key == "runAsGroup") return value == owner.gid;
  if (key == "runAsNonRoot") return owner.uid != 0;
  if (key == "allowPrivilegeEscalation") return true;
  return key == "capabilities" && value.is_object() && value.size() == value.count("drop");
}

// Each setting requests something that muster does not do, unless it is false. The exception is
// allowPrivilegeEscalation, where false is the request.
void refuse_security(const json& object, const ApiType& type, const std::string& path,
                     const std::optional<core::Owner>& owner, core::Violations& found) {
  auto context = object.find("securityContext");
  if (context == object.end()) return;
  const ApiField* field = type.field("securityContext");
  MUSTER_CHECK(field != nullptr);
  if (!context->is_object()) return refuse(path + ".securityContext", *field, found);
  for (auto it = context->begin(); it != context->end(); ++it) {
    const bool wish = it.key() == "allowPrivilegeEscalation" ? *it != true : *it != false;
    if (!wish || !written(*it) || (owner && is_given(it.key(), *it, *owner))) continue;
    const std::string at = path + ".securityContext." + it.key();
    if (owner && (it.key() == "runAsUser" || it.key() == "runAsGroup"))
      found.forbidden(at, "must be " +
                              std::to_string(it.key() == "runAsUser" ? owner->uid : owner->gid) +
                              ": pods run as the job's owner");
    else
      refuse(at, *field, found);
  }
}

// Refuses all fields that the types mark as refused, in their order.
void refuse_marked(const json& object, const ApiType& type, const std::string& path,
                   core::Violations& found) {
  for (const ApiField& field : type.fields) {
    auto it = object.find(field.name);
    if (it == object.end()) continue;
    const std::string at = join_path(path, field.name);
    if (is_refused(field, *it))
      refuse(at, field, found);
    else if (field.of == nullptr || field.unread)
      continue;
    else if (field.list)
      for (size_t i = 0; i < it->size(); ++i)
        refuse_marked((*it)[i], *field.of, at + "[" + std::to_string(i) + "]", found);
    else if (field.map)
      for (const auto& [key, value] : it->items())
        refuse_marked(value, *field.of, at + "[" + key + "]", found);
    else
      refuse_marked(*it, *field.of, at, found);
  }
}

}  // namespace

core::Violations refused_fields(const json& job, const std::optional<core::Owner>& owner) {
  core::Violations found;
  const ApiType* type = api_type("Job");
  MUSTER_CHECK(type != nullptr);
  refuse_marked(job, *type, "", found);
  const json pod = job.value(json::json_pointer("/spec/template/spec"), json::object());
  const std::string path = "spec.template.spec";
  // There are no PriorityClass objects, only Kubernetes' own two classes and `priority` itself.
  const std::string priority = pod.value("priorityClassName", "");
  if (!priority.empty() && priority != "system-cluster-critical" &&
      priority != "system-node-critical")
    found.forbidden(path + ".priorityClassName",
                    "there are no priority classes here but system-cluster-critical and "
                    "system-node-critical: write the number as priority");
  const ApiType *pod_type = api_type("PodSpec"), *container_type = api_type("Container");
  MUSTER_CHECK(pod_type != nullptr && container_type != nullptr);
  refuse_security(pod, *pod_type, path, owner, found);
  for (const char* list : {"containers", "initContainers"}) {
    auto containers = pod.find(list);
    if (containers == pod.end()) continue;
    for (size_t i = 0; i < containers->size(); ++i)
      refuse_security((*containers)[i], *container_type,
                      path + "." + list + "[" + std::to_string(i) + "]", owner, found);
  }
  return found;
}

}  // namespace muster::api
