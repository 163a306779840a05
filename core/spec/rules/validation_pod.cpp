// Generic rules of the pod template (job-semantics 1.7).
#include "core/spec/fields/affinity.hpp"
#include "core/spec/fields/downward.hpp"
#include "core/spec/fields/security.hpp"
#include "core/spec/fields/selector.hpp"
#include "core/spec/rules/validation.hpp"
#include "core/spec/values/expansion.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/quantity.hpp"

#include <limits>
#include <optional>
#include <set>

namespace muster::core {
namespace {

void validate_config_name(const std::string& path, const std::string& name, Violations& found) {
  if (name.empty()) return found.required(path);
  for (std::string& reason : dns_subdomain_errors(name)) found.invalid(path, name, reason);
}

void validate_config_key(const std::string& path, const ConfigKeyRef& config, Violations& found) {
  validate_config_name(path + ".name", config.name, found);
  if (config.key.empty()) return found.required(path + ".key");
  for (std::string& reason : config_key_errors(config.key))
    found.invalid(path + ".key", config.key, reason);
}

void validate_env_from(const std::string& path, const std::vector<EnvSource>& sources,
                       Violations& found) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string at = item(path, i);
    if (!sources[i].prefix.empty())
      for (std::string& reason : env_name_errors(sources[i].prefix))
        found.invalid(at + ".prefix", sources[i].prefix, reason);
    validate_config_name(at + ".configMapRef.name", sources[i].config_map, found);
  }
}

void validate_secret(const std::string& path, const SecretRef& secret, Violations& found) {
  if (secret.name.empty()) {
    found.required(path + ".name");
  } else {
    for (std::string& reason : dns_subdomain_errors(secret.name))
      found.invalid(path + ".name", secret.name, std::move(reason));
  }
  if (secret.key.empty()) {
    found.required(path + ".key");
  } else {
    for (std::string& reason : config_key_errors(secret.key))
      found.invalid(path + ".key", secret.key, std::move(reason));
  }
}

// Secrets may be used only as variables: all users of a node can read command lines.
void refuse_secrets_in_words(const std::string& at, const Container& container, Violations& found) {
  std::set<std::string> secrets;
  auto check = [&](const std::string& path, const std::string& text) {
    std::string named;
    expand(
        text,
        [&](const std::string& name) {
          if (secrets.contains(name)) named = name;
          return std::nullopt;
        },
        std::string::npos);
    if (!named.empty())
      found.invalid(path, text,
                    "$(" + named +
                        ") is a secret, which can only be a variable of its own; the program can "
                        "read it from its environment");
  };
  for (size_t i = 0; i < container.env.size(); ++i) {
    if (!secrets.empty()) check(item(at + ".env", i) + ".value", container.env[i].value);
    if (container.env[i].secret)
      secrets.insert(container.env[i].name);
    else
      secrets.erase(container.env[i].name);
  }
  if (secrets.empty()) return;
  for (size_t i = 0; i < container.command.size(); ++i)
    check(item(at + ".command", i), container.command[i]);
  for (size_t i = 0; i < container.args.size(); ++i)
    check(item(at + ".args", i), container.args[i]);
}

void validate_env(const std::string& path, const std::vector<EnvVar>& env, const PodTemplate& pod,
                  Violations& found) {
  for (size_t i = 0; i < env.size(); ++i) {
    const std::string at = item(path, i);
    if (env[i].name.empty()) {
      found.required(at + ".name");
    } else {
      for (std::string& reason : env_name_errors(env[i].name))
        found.invalid(at + ".name", env[i].name, std::move(reason));
    }
    const auto& [name, value, field_path, secret, config, resource] = env[i];
    const int sources =
        !field_path.empty() + secret.has_value() + config.has_value() + resource.has_value();
    if (sources == 0) continue;
    const std::string from = at + ".valueFrom";
    if (!value.empty())
      found.invalid_object(from, "may not be specified when `value` is not empty");
    if (sources > 1)
      found.invalid_object(from, "may not have more than one field specified at a time");
    if (config) validate_config_key(from + ".configMapKeyRef", *config, found);
    if (secret) validate_secret(from + ".secretKeyRef", *secret, found);
    if (!field_path.empty()) validate_field_path(from, field_path, found);
    if (resource) validate_resource_ref(from, *resource, pod, found);
  }
}

std::map<std::string, int64_t> validate_quantities(const std::string& path,
                                                   const StringMap& quantities, Violations& found) {
  std::map<std::string, int64_t> parsed;
  for (const auto& [resource, text] : quantities) {
    const std::string at = path + "[" + resource + "]";
    for (std::string& reason : qualified_name_errors(resource))
      found.invalid(at, resource, std::move(reason));
    auto milli = parse_quantity_milli(text);
    if (!milli) {
      found.invalid(at, text, milli.error().message);
      continue;
    }
    if (*milli < 0) found.invalid(at, text, "must be greater than or equal to 0");
    parsed.emplace(resource, *milli);
  }
  return parsed;
}

void validate_resources(const std::string& path, const Resources& resources, Violations& found) {
  auto limits = validate_quantities(path + ".limits", resources.limits, found);
  auto requests = validate_quantities(path + ".requests", resources.requests, found);
  for (const auto& [resource, milli] : requests) {
    auto limit = limits.find(resource);
    if (limit != limits.end() && milli > limit->second)
      found.invalid(path + ".requests", resources.requests.at(resource),
                    "must be less than or equal to " + resource + " limit of " +
                        resources.limits.at(resource));
  }
}

void validate_containers(const std::string& path, const std::vector<Container>& containers,
                         const PodTemplate& pod, std::set<std::string>& names, Violations& found) {
  for (size_t i = 0; i < containers.size(); ++i) {
    const Container& container = containers[i];
    const std::string at = item(path, i);
    if (container.name.empty()) {
      found.required(at + ".name");
    } else {
      for (std::string& reason : dns_label_errors(container.name))
        found.invalid(at + ".name", container.name, std::move(reason));
      if (!names.insert(container.name).second) found.duplicate(at + ".name", container.name);
    }
    validate_env(at + ".env", container.env, pod, found);
    validate_env_from(at + ".envFrom", container.env_from, found);
    refuse_secrets_in_words(at, container, found);
    validate_resources(at + ".resources", container.resources, found);
  }
}

void validate_toleration(const std::string& path, const Toleration& toleration, Violations& found) {
  const auto& [key, op, value, effect, seconds] = toleration;
  if (!key.empty())
    for (std::string& reason : qualified_name_errors(key))
      found.invalid(path + ".key", key, std::move(reason));
  if (key.empty() && op != "Exists")
    found.invalid(path + ".operator", op,
                  "operator must be Exists when `key` is empty, which means \"match all values and "
                  "all keys\"");
  if (seconds && effect != "NoExecute")
    found.invalid(path + ".effect", effect,
                  "effect must be 'NoExecute' when `tolerationSeconds` is set");
  if (op.empty() || op == "Equal") {
    for (std::string& reason : label_value_errors(value))
      found.invalid(path + ".operator", value, std::move(reason));
  } else if (op == "Exists") {
    if (!value.empty())
      found.invalid(path + ".operator", value, "value must be empty when `operator` is 'Exists'");
  } else {
    found.not_supported(path + ".operator", op, {"Equal", "Exists"});
  }
  if (!effect.empty() && effect != "NoSchedule" && effect != "PreferNoSchedule" &&
      effect != "NoExecute")
    found.not_supported(path + ".effect", effect, {"NoExecute", "NoSchedule", "PreferNoSchedule"});
}

}  // namespace

void validate_template(const PodTemplate& pod, Violations& found) {
  validate_labels("spec.template.labels", pod.labels, found);
  validate_annotation_map("spec.template.annotations", pod.annotations, found);
  if (pod.finalizers.size() > kFinalizersMax)
    found.too_many("spec.template.finalizers", pod.finalizers.size(), kFinalizersMax);
  const std::string path = "spec.template.spec";
  if (pod.containers.empty()) found.required(path + ".containers");
  std::set<std::string> names;
  validate_containers(path + ".containers", pod.containers, pod, names, found);
  validate_containers(path + ".initContainers", pod.init_containers, pod, names, found);
  validate_security(path, pod, found);
  validate_volumes(path, pod, found);
  if (pod.active_deadline_s &&
      (*pod.active_deadline_s < 1 || *pod.active_deadline_s > std::numeric_limits<int32_t>::max()))
    found.invalid(path + ".activeDeadlineSeconds", *pod.active_deadline_s,
                  "must be between 1 and 2147483647, inclusive");
  if (pod.termination_grace_s)
    found.nonnegative(path + ".terminationGracePeriodSeconds", *pod.termination_grace_s);
  validate_labels(path + ".nodeSelector", pod.node_selector, found);
  validate_node_affinity(path + ".affinity.nodeAffinity", pod.node_affinity, found);
  if (!pod.node_name.empty()) {
    for (std::string& reason : dns_subdomain_errors(pod.node_name))
      found.invalid(path + ".nodeName", pod.node_name, std::move(reason));
    if (!pod.scheduling_gates.empty())
      found.forbidden(path + ".nodeName",
                      "cannot be set until all schedulingGates have been cleared");
  }
  for (size_t i = 0; i < pod.tolerations.size(); ++i)
    validate_toleration(item(path + ".tolerations", i), pod.tolerations[i], found);
  std::set<std::string> gates;
  for (size_t i = 0; i < pod.scheduling_gates.size(); ++i) {
    const std::string& name = pod.scheduling_gates[i];
    for (std::string& reason : qualified_name_errors(name))
      found.invalid(item(path + ".schedulingGates", i), name, std::move(reason));
    if (!gates.insert(name).second) found.duplicate(item(path + ".schedulingGates", i), name);
  }
}

}  // namespace muster::core
