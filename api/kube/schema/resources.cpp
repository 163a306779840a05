#include "api/kube/schema/resources.hpp"

#include "api/http/words.hpp"

#include <algorithm>

namespace muster::api {
namespace {

constexpr Group kGroups[] = {{"batch", "v1"},
                             {"policy", "v1"},
                             {"authentication.k8s.io", "v1"},
                             {"authorization.k8s.io", "v1"},
                             {"coordination.k8s.io", "v1"},
                             {"events.k8s.io", "v1"}};

constexpr Resource kResources[] = {
    {.version = "v1",
     .name = "pods",
     .kind = "Pod",
     .verbs = "delete deletecollection get list patch update watch",
     .singular = "pod",
     .short_names = "po",
     .category = "all"},
    {.version = "v1",
     .name = "pods/eviction",
     .kind = "Eviction",
     .kind_group_version = "policy/v1",
     .verbs = "create"},
    {.version = "v1", .name = "pods/log", .kind = "Pod", .verbs = "get"},
    {.version = "v1", .name = "pods/status", .kind = "Pod", .verbs = "get patch update"},
    {.version = "v1",
     .name = "nodes",
     .kind = "Node",
     .namespaced = false,
     .verbs = "delete get list patch update watch",
     .singular = "node",
     .short_names = "no"},
    {.version = "v1",
     .name = "events",
     .kind = "Event",
     .verbs = "create delete deletecollection get list patch update watch",
     .singular = "event",
     .short_names = "ev"},
    {.version = "v1",
     .name = "namespaces",
     .kind = "Namespace",
     .namespaced = false,
     .verbs = "create delete get list patch update watch",
     .singular = "namespace",
     .short_names = "ns"},
    {.version = "v1",
     .name = "namespaces/finalize",
     .kind = "Namespace",
     .namespaced = false,
     .verbs = "update"},
    {.version = "v1",
     .name = "namespaces/status",
     .kind = "Namespace",
     .namespaced = false,
     .verbs = "get patch update"},
    {.version = "v1",
     .name = "configmaps",
     .kind = "ConfigMap",
     .verbs = "create delete deletecollection get list patch update watch",
     .singular = "configmap",
     .short_names = "cm"},
    {.version = "v1",
     .name = "serviceaccounts",
     .kind = "ServiceAccount",
     .verbs = "get list watch",
     .singular = "serviceaccount",
     .short_names = "sa"},
    {.version = "v1",
     .name = "services",
     .kind = "Service",
     .verbs = "list",
     .singular = "service",
     .short_names = "svc"},
    {.group = "batch",
     .version = "v1",
     .name = "jobs",
     .kind = "Job",
     .verbs = "create delete deletecollection get list patch update watch",
     .singular = "job",
     .category = "all"},
    {.group = "batch",
     .version = "v1",
     .name = "jobs/scale",
     .kind = "Scale",
     .kind_group_version = "autoscaling/v1",
     .verbs = "get patch update"},
    {.group = "batch",
     .version = "v1",
     .name = "jobs/status",
     .kind = "Job",
     .verbs = "get patch update"},
    {.group = "authentication.k8s.io",
     .version = "v1",
     .name = "selfsubjectreviews",
     .kind = "SelfSubjectReview",
     .namespaced = false,
     .verbs = "create",
     .singular = "selfsubjectreview"},
    {.group = "authorization.k8s.io",
     .version = "v1",
     .name = "selfsubjectaccessreviews",
     .kind = "SelfSubjectAccessReview",
     .namespaced = false,
     .verbs = "create",
     .singular = "selfsubjectaccessreview"},
    {.group = "authorization.k8s.io",
     .version = "v1",
     .name = "selfsubjectrulesreviews",
     .kind = "SelfSubjectRulesReview",
     .namespaced = false,
     .verbs = "create",
     .singular = "selfsubjectrulesreview"},
    {.group = "policy",
     .version = "v1",
     .name = "poddisruptionbudgets",
     .kind = "PodDisruptionBudget",
     .verbs = "list",
     .singular = "poddisruptionbudget",
     .short_names = "pdb"},
    {.group = "coordination.k8s.io",
     .version = "v1",
     .name = "leases",
     .kind = "Lease",
     .verbs = "create delete deletecollection get list patch update watch",
     .singular = "lease"},
    {.group = "events.k8s.io",
     .version = "v1",
     .name = "events",
     .kind = "Event",
     .verbs = "create delete deletecollection get list patch update watch",
     .singular = "event",
     .short_names = "ev"},
};

}  // namespace

bool Resource::can(std::string_view verb) const {
  return has_word(verbs, verb);
}

std::string Resource::group_version() const {
  return (group.empty() ? std::string() : std::string(group) + "/") + std::string(version);
}

std::span<const Resource> resources() {
  return kResources;
}

std::span<const Group> groups() {
  return kGroups;
}

}  // namespace muster::api
