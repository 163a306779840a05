#include "api/kube/objects/job_values.hpp"

#include "api/kube/objects/owner_refs.hpp"
#include "base/text/time_text.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

using nlohmann::json;

// Read a member, which must have the right type. If it is missing, the value stays unchanged.
template <class T>
void read(const json& object, const char* name, T& value) {
  if (auto it = object.find(name); it != object.end()) value = it->get<T>();
}
template <class T>
void read(const json& object, const char* name, std::optional<T>& value) {
  if (auto it = object.find(name); it != object.end()) value = it->get<T>();
}

const json& member(const json& object, const char* name) {
  static const json kMissing = json::object();
  auto it = object.find(name);
  return it == object.end() ? kMissing : *it;
}

// Reads a list; `one` reads each element.
template <class T, class Read>
std::vector<T> read_list(const json& object, const char* name, Read one) {
  std::vector<T> list;
  auto it = object.find(name);
  if (it == object.end()) return list;
  for (const json& element : *it) one(element, list.emplace_back());
  return list;
}

void read_env(const json& from, core::EnvVar& env) {
  read(from, "name", env.name);
  read(from, "value", env.value);
  const json& source = member(from, "valueFrom");
  read(member(source, "fieldRef"), "fieldPath", env.field_path);
  if (auto it = source.find("resourceFieldRef"); it != source.end()) {
    core::ResourceRef& resource = env.resource.emplace();
    read(*it, "containerName", resource.container);
    read(*it, "resource", resource.resource);
    read(*it, "divisor", resource.divisor);
  }
  if (auto it = source.find("secretKeyRef"); it != source.end()) {
    core::SecretRef& secret = env.secret.emplace();
    read(*it, "name", secret.name);
    read(*it, "key", secret.key);
    read(*it, "optional", secret.optional);
  }
  if (auto it = source.find("configMapKeyRef"); it != source.end()) {
    core::ConfigKeyRef& config = env.config.emplace();
    read(*it, "name", config.name);
    read(*it, "key", config.key);
    read(*it, "optional", config.optional);
  }
}

void read_env_source(const json& from, core::EnvSource& source) {
  read(from, "prefix", source.prefix);
  // A secretRef is refused by name (refused_fields.hpp); the placeholder avoids a second error.
  if (from.contains("secretRef") && !from.contains("configMapRef")) source.config_map = "refused";
  const json& map = member(from, "configMapRef");
  read(map, "name", source.config_map);
  read(map, "optional", source.optional);
}

void read_files(const json& from, core::Volume& volume) {
  read(from, "defaultMode", volume.default_mode);
  read(from, "optional", volume.optional);
  volume.items =
      read_list<core::VolumeItem>(from, "items", [](const json& one, core::VolumeItem& into) {
        read(one, "key", into.key);
        read(one, "path", into.path);
        read(one, "mode", into.mode);
      });
}

void read_volume(const json& from, core::Volume& volume) {
  using Kind = core::VolumeKind;
  read(from, "name", volume.name);
  volume.kinds = static_cast<int>(from.size()) - static_cast<int>(from.count("name"));
  if (volume.kinds > 0) volume.kind = Kind::other;
  if (auto it = from.find("emptyDir"); it != from.end()) {
    volume.kind = Kind::empty_dir;
    read(*it, "medium", volume.medium);
    read(*it, "sizeLimit", volume.size_limit);
  } else if (it = from.find("hostPath"); it != from.end()) {
    volume.kind = Kind::host_path;
    read(*it, "path", volume.path);
    read(*it, "type", volume.type);
  } else if (it = from.find("secret"); it != from.end()) {
    volume.kind = Kind::secret;
    read(*it, "secretName", volume.secret);
    read_files(*it, volume);
  } else if (it = from.find("configMap"); it != from.end()) {
    volume.kind = Kind::config_map;
    read(*it, "name", volume.config_map);
    read_files(*it, volume);
  }
}

void read_mount(const json& from, core::VolumeMount& mount) {
  read(from, "name", mount.name);
  read(from, "mountPath", mount.mount_path);
  read(from, "subPath", mount.sub_path);
  read(from, "readOnly", mount.read_only);
}

// For a pod or a container; each has some of these fields.
void read_security(const json& from, core::SecurityContext& security) {
  const json& context = member(from, "securityContext");
  read(context, "runAsUser", security.run_as_user);
  read(context, "runAsGroup", security.run_as_group);
  read(context, "runAsNonRoot", security.run_as_non_root);
  read(context, "allowPrivilegeEscalation", security.escalation);
  read(member(context, "capabilities"), "drop", security.dropped_capabilities);
}

void read_container(const json& from, core::Container& container) {
  read(from, "name", container.name);
  read(from, "image", container.image);
  read(from, "command", container.command);
  read(from, "args", container.args);
  read(from, "workingDir", container.working_dir);
  container.sidecar = from.value("restartPolicy", "") == "Always";
  container.env = read_list<core::EnvVar>(from, "env", read_env);
  container.volume_mounts = read_list<core::VolumeMount>(from, "volumeMounts", read_mount);
  container.env_from = read_list<core::EnvSource>(from, "envFrom", read_env_source);
  read(member(from, "resources"), "requests", container.resources.requests);
  read(member(from, "resources"), "limits", container.resources.limits);
  read_security(from, container.security);
}

void read_toleration(const json& from, core::Toleration& toleration) {
  read(from, "key", toleration.key);
  read(from, "operator", toleration.op);
  read(from, "value", toleration.value);
  read(from, "effect", toleration.effect);
  read(from, "tolerationSeconds", toleration.seconds);
}

void read_requirement(const json& from, core::SelectorRequirement& wanted) {
  read(from, "key", wanted.key);
  read(from, "operator", wanted.op);
  read(from, "values", wanted.values);
}

void read_node_term(const json& from, core::NodeTerm& term) {
  using Requirement = core::SelectorRequirement;
  term.labels = read_list<Requirement>(from, "matchExpressions", read_requirement);
  term.fields = read_list<Requirement>(from, "matchFields", read_requirement);
}

void read_node_affinity(const json& from, core::NodeAffinity& affinity) {
  if (auto it = from.find("requiredDuringSchedulingIgnoredDuringExecution"); it != from.end())
    affinity.required = read_list<core::NodeTerm>(*it, "nodeSelectorTerms", read_node_term);
  affinity.preferred =
      read_list<core::PreferredNodes>(from, "preferredDuringSchedulingIgnoredDuringExecution",
                                      [](const json& one, core::PreferredNodes& preferred) {
                                        read(one, "weight", preferred.weight);
                                        read_node_term(member(one, "preference"), preferred.nodes);
                                      });
}

// Removes empty members, so that `env: []` and no env compare equal.
void prune(json& value) {
  if (!value.is_structured()) return;
  for (json& child : value) prune(child);
  if (!value.is_object()) return;
  for (auto it = value.begin(); it != value.end();) {
    bool nothing = (it->is_structured() && it->empty()) || *it == "";
    it = nothing ? value.erase(it) : std::next(it);
  }
}

// The template as text, without the fields that core reads and that an update of a suspended job
// may change.
std::string kept_text(json pod_template) {
  pod_template.erase("metadata");
  json& pod = pod_template["spec"];
  if (pod.is_object()) {
    for (const char* name :
         {"nodeSelector", "tolerations", "schedulingGates", "terminationGracePeriodSeconds",
          "restartPolicy", "activeDeadlineSeconds"})
      pod.erase(name);
    if (auto it = pod.find("affinity"); it != pod.end()) it->erase("nodeAffinity");
    for (const char* list : {"containers", "initContainers"})
      if (auto it = pod.find(list); it != pod.end())
        for (json& container : *it) container.erase("resources");
  }
  prune(pod_template);
  return pod_template.dump();
}

void read_template(const json& from, core::PodTemplate& pod) {
  const json& meta = member(from, "metadata");
  read(meta, "labels", pod.labels);
  read(meta, "annotations", pod.annotations);
  read(meta, "finalizers", pod.finalizers);
  const json& spec = member(from, "spec");
  read(spec, "restartPolicy", pod.restart_policy);
  pod.init_containers = read_list<core::Container>(spec, "initContainers", read_container);
  pod.containers = read_list<core::Container>(spec, "containers", read_container);
  pod.volumes = read_list<core::Volume>(spec, "volumes", read_volume);
  read(spec, "terminationGracePeriodSeconds", pod.termination_grace_s);
  read(spec, "activeDeadlineSeconds", pod.active_deadline_s);
  read(spec, "nodeSelector", pod.node_selector);
  pod.tolerations = read_list<core::Toleration>(spec, "tolerations", read_toleration);
  pod.scheduling_gates =
      read_list<std::string>(spec, "schedulingGates",
                             [](const json& gate, std::string& name) { read(gate, "name", name); });
  read(spec, "priorityClassName", pod.priority_class_name);
  read(spec, "priority", pod.priority);
  read(spec, "nodeName", pod.node_name);
  read_node_affinity(member(member(spec, "affinity"), "nodeAffinity"), pod.node_affinity);
  read_security(spec, pod.security);
  read(spec, "serviceAccount", pod.service_account);
  read(spec, "serviceAccountName", pod.service_account);
  pod.kept = kept_text(from);
}

void read_failure_rule(const json& from, core::FailureRule& rule) {
  read(from, "action", rule.action);
  if (auto it = from.find("onExitCodes"); it != from.end()) {
    core::OnExitCodes& codes = rule.on_exit_codes.emplace();
    read(*it, "containerName", codes.container_name);
    read(*it, "operator", codes.op);
    read(*it, "values", codes.values);
  }
  rule.on_pod_conditions = read_list<core::PodConditionPattern>(
      from, "onPodConditions", [](const json& pattern_from, core::PodConditionPattern& pattern) {
        read(pattern_from, "type", pattern.type);
        read(pattern_from, "status", pattern.status);
      });
}

void read_success_rule(const json& from, core::SuccessRule& rule) {
  read(from, "succeededIndexes", rule.succeeded_indexes);
  read(from, "succeededCount", rule.succeeded_count);
}

void read_selector(const json& from, core::LabelSelector& selector) {
  read(from, "matchLabels", selector.match_labels);
  selector.match_expressions =
      read_list<core::SelectorRequirement>(from, "matchExpressions", read_requirement);
}

void read_spec(const json& from, core::JobSpec& spec) {
  read(from, "parallelism", spec.parallelism);
  read(from, "completions", spec.completions);
  read(from, "completionMode", spec.completion_mode);
  read(from, "backoffLimit", spec.backoff_limit);
  read(from, "backoffLimitPerIndex", spec.backoff_limit_per_index);
  read(from, "maxFailedIndexes", spec.max_failed_indexes);
  if (auto it = from.find("podFailurePolicy"); it != from.end())
    spec.pod_failure_policy.emplace().rules =
        read_list<core::FailureRule>(*it, "rules", read_failure_rule);
  if (auto it = from.find("successPolicy"); it != from.end())
    spec.success_policy.emplace().rules =
        read_list<core::SuccessRule>(*it, "rules", read_success_rule);
  read(from, "activeDeadlineSeconds", spec.active_deadline_s);
  read(from, "ttlSecondsAfterFinished", spec.ttl_s);
  read(from, "suspend", spec.suspend);
  read(from, "podReplacementPolicy", spec.pod_replacement_policy);
  read(from, "managedBy", spec.managed_by);
  read(from, "manualSelector", spec.manual_selector);
  if (auto it = from.find("selector"); it != from.end())
    read_selector(*it, spec.selector.emplace());
  read_template(member(from, "template"), spec.pod);
}

// Defaults only add to a map, so an empty one need not be written.
void write_map(json& object, const char* name, const core::StringMap& map) {
  if (!map.empty()) object[name] = map;
}

template <class T>
void write_if(json& object, const char* name, const std::optional<T>& value) {
  if (value) object[name] = *value;
}

}  // namespace

void read_values(const json& document, core::JobMeta& meta, core::JobSpec& spec) {
  const json& from = member(document, "metadata");
  read(from, "name", meta.name);
  read(from, "generateName", meta.generate_name);
  read(from, "namespace", meta.ns);
  read(from, "uid", meta.uid);
  read(from, "labels", meta.labels);
  read(from, "annotations", meta.annotations);
  read(from, "finalizers", meta.finalizers);
  meta.owners = read_owner_refs(from);
  read(from, "generation", meta.generation);
  std::string created;
  read(from, "creationTimestamp", created);
  meta.created_ms = parse_time(created).value_or(0);
  read_spec(member(document, "spec"), spec);
}

void write_values(const core::JobMeta& meta, const core::JobSpec& spec, json& document) {
  json& metadata = document["metadata"];
  metadata["name"] = meta.name;
  metadata["namespace"] = meta.ns;
  metadata["uid"] = meta.uid;
  metadata["generation"] = meta.generation;
  metadata["creationTimestamp"] = time_text(meta.created_ms);
  if (!meta.generate_name.empty()) metadata["generateName"] = meta.generate_name;
  write_map(metadata, "labels", meta.labels);
  write_map(metadata, "annotations", meta.annotations);
  // Set only by the server, never taken from the document.
  for (const char* name :
       {"resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})
    metadata.erase(name);

  json& to = document["spec"];
  write_if(to, "parallelism", spec.parallelism);
  write_if(to, "completions", spec.completions);
  write_if(to, "backoffLimit", spec.backoff_limit);
  write_if(to, "suspend", spec.suspend);
  write_if(to, "manualSelector", spec.manual_selector);
  to["completionMode"] = spec.completion_mode;
  to["podReplacementPolicy"] = spec.pod_replacement_policy;
  if (spec.selector && !spec.selector->match_labels.empty())
    to["selector"]["matchLabels"] = spec.selector->match_labels;
  if (spec.pod_failure_policy) {
    const auto& rules = spec.pod_failure_policy->rules;
    for (size_t i = 0; i < rules.size(); ++i)
      for (size_t j = 0; j < rules[i].on_pod_conditions.size(); ++j)
        to["podFailurePolicy"]["rules"][i]["onPodConditions"][j]["status"] =
            rules[i].on_pod_conditions[j].status;
  }
  json& pod_template = to["template"];
  if (!spec.pod.labels.empty()) pod_template["metadata"]["labels"] = spec.pod.labels;
  json& pod = pod_template["spec"];
  pod["restartPolicy"] = spec.pod.restart_policy;
  write_if(pod, "terminationGracePeriodSeconds", spec.pod.termination_grace_s);
  write_if(pod, "activeDeadlineSeconds", spec.pod.active_deadline_s);
}

}  // namespace muster::api
