#include "api/refused_fields.hpp"

#include <string>

namespace muster::api {
namespace {

using nlohmann::json;

// Refused when written with anything but an empty list, object or text.
constexpr const char* kOfPod[] = {
    "volumes",        "ephemeralContainers", "nodeName",
    "affinity",       "runtimeClassName",    "topologySpreadConstraints",
    "resourceClaims", "resources",           "readinessGates",
    "workloadRef",    "schedulingGroup",
};
// Refused when true: a process shares the machine's network anyway, but is not shown as its
// namespaces' owner.
constexpr const char* kOfPodIfTrue[] = {"hostPID", "hostIPC", "shareProcessNamespace"};
constexpr const char* kOfContainer[] = {
    "envFrom",        "volumeMounts", "volumeDevices", "lifecycle",          "livenessProbe",
    "readinessProbe", "startupProbe", "restartPolicy", "restartPolicyRules",
};
constexpr const char* kOfEnvSource[] = {"resourceFieldRef", "configMapKeyRef", "secretKeyRef",
                                        "fileKeyRef"};

constexpr const char* kNotSupported = "not supported by this version of muster";

bool written(const json& object, const char* name) {
  auto it = object.find(name);
  if (it == object.end()) return false;
  if (it->is_string()) return !it->get_ref<const std::string&>().empty();
  return !it->is_structured() || !it->empty();
}

void refuse(const std::string& path, core::Violations& found) {
  found.forbidden(path, kNotSupported);
}

// Each setting asks for something that is not done, save one that is false: that asks for nothing.
// A forbidden privilege escalation is the exception: there false is the wish.
void refuse_security(const json& owner, const std::string& path, core::Violations& found) {
  auto context = owner.find("securityContext");
  if (context == owner.end()) return;
  if (!context->is_object()) return refuse(path + ".securityContext", found);
  for (auto it = context->begin(); it != context->end(); ++it) {
    bool wish = it.key() == "allowPrivilegeEscalation" ? *it != true : *it != false;
    if (wish && written(*context, it.key().c_str()))
      refuse(path + ".securityContext." + it.key(), found);
  }
}

void refuse_container(const json& container, const std::string& path, core::Violations& found) {
  for (const char* name : kOfContainer)
    if (written(container, name)) refuse(path + "." + name, found);
  refuse_security(container, path, found);
  if (auto resources = container.find("resources");
      resources != container.end() && written(*resources, "claims"))
    refuse(path + ".resources.claims", found);
  auto env = container.find("env");
  if (env == container.end()) return;
  for (size_t i = 0; i < env->size(); ++i) {
    auto from = (*env)[i].find("valueFrom");
    if (from == (*env)[i].end()) continue;
    for (const char* name : kOfEnvSource)
      if (from->contains(name))
        refuse(path + ".env[" + std::to_string(i) + "].valueFrom." + name, found);
  }
}

}  // namespace

core::Violations refused_fields(const json& job) {
  core::Violations found;
  const json pod = job.value(json::json_pointer("/spec/template/spec"), json::object());
  const std::string path = "spec.template.spec";
  for (const char* name : kOfPod)
    if (written(pod, name)) refuse(path + "." + name, found);
  for (const char* name : kOfPodIfTrue)
    if (pod.value(name, false)) refuse(path + "." + name, found);
  if (!pod.value("hostUsers", true)) refuse(path + ".hostUsers", found);
  if (pod.value("schedulerName", "default-scheduler") != "default-scheduler")
    refuse(path + ".schedulerName", found);
  // There are no PriorityClass objects: Kubernetes' own two, or `priority` itself.
  const std::string priority = pod.value("priorityClassName", "");
  if (!priority.empty() && priority != "system-cluster-critical" &&
      priority != "system-node-critical")
    found.forbidden(path + ".priorityClassName",
                    "there are no priority classes here but system-cluster-critical and "
                    "system-node-critical: write the number as priority");
  if (pod.value("preemptionPolicy", "PreemptLowerPriority") != "PreemptLowerPriority")
    refuse(path + ".preemptionPolicy", found);
  refuse_security(pod, path, found);
  for (const char* list : {"containers", "initContainers"}) {
    auto containers = pod.find(list);
    if (containers == pod.end()) continue;
    for (size_t i = 0; i < containers->size(); ++i)
      refuse_container((*containers)[i], path + "." + list + "[" + std::to_string(i) + "]", found);
  }
  if (written(job.value("spec", json::object()), "scheduling")) refuse("spec.scheduling", found);
  return found;
}

}  // namespace muster::api
