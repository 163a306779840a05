#include "api/kube/objects/template_warnings.hpp"

#include "base/text/json_text.hpp"
#include "core/spec/values/quantity.hpp"
#include "core/spec/values/violations.hpp"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

namespace muster::api {
namespace {

constexpr const char* kSpec = "spec.template.spec";

const Json& inner(const Json& object, const char* name) {
  static const Json kNone;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNone : *found;
}

std::string keyed(const std::string& path, std::string_view key) {
  return path + "[" + std::string(key) + "]";
}

// Why a label of nodes is not to be used any more; nullptr: it may be.
const char* deprecated_label(std::string_view key) {
  static const std::map<std::string_view, const char*> kLabels = {
      {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
      {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
      {"failure-domain.beta.kubernetes.io/region",
       "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
      {"failure-domain.beta.kubernetes.io/zone",
       "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
      {"beta.kubernetes.io/instance-type",
       "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"}};
  const auto found = kLabels.find(key);
  return found == kLabels.end() ? nullptr : found->second;
}

class Warnings {
 public:
  std::vector<std::string> list;

  void of_nodes(const Json& pod) {
    const Json& selector = inner(pod, "nodeSelector");
    if (selector.is_object())
      for (const auto& [key, value] : selector.items())
        if (const char* why = deprecated_label(key))
          add(keyed(std::string(kSpec) + ".nodeSelector", key), why);
    const Json& affinity = inner(inner(pod, "affinity"), "nodeAffinity");
    const std::string path = std::string(kSpec) + ".affinity.nodeAffinity.";
    const char *required = "requiredDuringSchedulingIgnoredDuringExecution",
               *preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    each(inner(inner(affinity, required), "nodeSelectorTerms"),
         path + required + ".nodeSelectorTerms",
         [this](const Json& term, const std::string& at) { of_term(term, at); });
    each(inner(affinity, preferred), path + preferred,
         [this](const Json& term, const std::string& at) {
           of_term(inner(term, "preference"), at + ".preference");
         });
    each(inner(pod, "topologySpreadConstraints"), std::string(kSpec) + ".topologySpreadConstraints",
         [this](const Json& one, const std::string& at) {
           const std::string key = member_text(one, "topologyKey");
           if (const char* why = deprecated_label(key))
             add(at + ".topologyKey", key + " is " + why);
           if (!one.contains("labelSelector"))
             add(at + ".labelSelector", "a null labelSelector results in matching no pod");
         });
  }

  void of_annotations(const Json& annotations) {
    constexpr const char* kSysctls = "non-functional in v1.11+; use the \"sysctls\" field instead";
    for (const auto& [key, why] :
         {std::pair("scheduler.alpha.kubernetes.io/critical-pod",
                    "non-functional in v1.16+; use the \"priorityClassName\" field instead"),
          {"security.alpha.kubernetes.io/sysctls", kSysctls},
          {"security.alpha.kubernetes.io/unsafe-sysctls", kSysctls},
          {"seccomp.security.alpha.kubernetes.io/pod",
           "non-functional in v1.27+; use the \"seccompProfile\" field instead"}})
      if (annotations.is_object() && annotations.contains(key))
        add(keyed("spec.template.metadata.annotations", key), why);
  }

  // An item whose name an earlier one has.
  void of_names(const Json& pod, const char* list, const char* key, const char* what) {
    std::set<std::string> seen;
    each(inner(pod, list), std::string(kSpec) + "." + list,
         [&](const Json& one, const std::string& at) {
           const std::string name = member_text(one, key);
           if (!seen.insert(name).second)
             add(at + "." + key, std::string("duplicate ") + what + " " + core::json_quoted(name));
         });
  }

  void of_container(const Json& container, const std::string& at) {
    for (const char* kind : {"limits", "requests"})
      for (const char* name : {"memory", "ephemeral-storage"})
        of_bytes(inner(inner(container, "resources"), kind), at + ".resources." + kind, name);
    if (inner(inner(container, "securityContext"), "privileged") == Json(true))
      add(at + ".securityContext.privileged",
          "has no effect, the process has the privileges of its user");
    std::set<std::string> seen;
    each(inner(container, "env"), at + ".env", [&](const Json& one, const std::string& place) {
      const std::string name = member_text(one, "name");
      if (seen.insert(name).second) return;
      const std::string reference = "$(" + name + ")", value = member_text(one, "value");
      const bool extends = !one.contains("valueFrom") && value != reference &&
                           value.find(reference) != std::string::npos;
      if (!extends)
        add(place, "hides previous definition of " + core::json_quoted(name) +
                       ", which may be dropped when using apply");
    });
    each(inner(container, "ports"), at + ".ports",
         [this](const Json& one, const std::string& place) { of_port(one, place); });
  }

  void of_bytes(const Json& amounts, const std::string& at, const char* name) {
    const std::string text = member_text(amounts, name);
    if (text.empty()) return;
    const auto milli = core::parse_quantity_milli(text);
    if (milli.ok() && *milli % 1000 != 0)
      add(keyed(at, name),
          "fractional byte value " + core::json_quoted(text) + " is invalid, must be an integer");
  }

  template <class F>
  static void each(const Json& list, const std::string& path, F f) {
    if (!list.is_array()) return;
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].is_object()) f(list[i], core::item(path, i));
  }

 private:
  struct Port {
    std::string at, host_ip;
    int64_t host_port = 0;
  };

  void add(const std::string& path, const std::string& text) {
    if (list.size() < kDuplicatesMax) list.push_back(path + ": " + text);
  }

  void of_term(const Json& term, const std::string& path) {
    each(inner(term, "matchExpressions"), path + ".matchExpressions",
         [this](const Json& one, const std::string& at) {
           const std::string key = member_text(one, "key");
           if (const char* why = deprecated_label(key)) add(at + ".key", key + " is " + why);
         });
  }

  static int64_t number(const Json& object, const char* name) {
    const Json& value = inner(object, name);
    return value.is_number_integer() ? value.get<int64_t>() : 0;
  }

  // The same port in any container of the pod.
  void of_port(const Json& port, const std::string& at) {
    const Port mine{at, member_text(port, "hostIP"), number(port, "hostPort")};
    if (!mine.host_ip.empty() && mine.host_port == 0) add(at, "hostIP set without hostPort");
    auto& others = ports_[{number(port, "containerPort"), member_text(port, "protocol")}];
    for (const Port& other : others) {
      if (mine.host_ip == other.host_ip && mine.host_port == other.host_port)
        add(at, "duplicate port definition with " + other.at);
      else if (mine.host_port == 0 || other.host_port == 0 ||
               (mine.host_port == other.host_port &&
                (mine.host_ip.empty() || other.host_ip.empty())))
        add(at, "overlapping port definition with " + other.at);
    }
    others.push_back(mine);
  }

  std::map<std::tuple<int64_t, std::string>, std::vector<Port>> ports_;
};

}  // namespace

std::vector<std::string> template_warnings(const Json& job) {
  Warnings warnings;
  const Json& pod_template = inner(inner(job, "spec"), "template");
  const Json& pod = inner(pod_template, "spec");
  warnings.of_nodes(pod);
  warnings.of_annotations(inner(inner(pod_template, "metadata"), "annotations"));
  warnings.of_names(pod, "hostAliases", "ip", "ip");
  warnings.of_names(pod, "imagePullSecrets", "name", "name");
  for (const char* name : {"memory", "ephemeral-storage"})
    warnings.of_bytes(inner(pod, "overhead"), std::string(kSpec) + ".overhead", name);
  for (const char* list : {"initContainers", "containers"})
    Warnings::each(inner(pod, list), std::string(kSpec) + "." + list,
                   [&](const Json& one, const std::string& at) { warnings.of_container(one, at); });
  return std::move(warnings.list);
}

}  // namespace muster::api
