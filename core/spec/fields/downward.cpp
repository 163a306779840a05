#include "core/spec/fields/downward.hpp"

#include "core/spec/values/quantity.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace muster::core {
namespace {

constexpr std::string_view kResources[] = {"limits.cpu", "limits.memory", "requests.cpu",
                                           "requests.memory"};
constexpr const char* kDefaultServiceAccount = "default";

bool is_cpu(const std::string& resource) {
  return resource.ends_with(".cpu");
}

const Container* container_named(const PodTemplate& pod, const std::string& name) {
  for (const auto* list : {&pod.containers, &pod.init_containers})
    for (const Container& one : *list)
      if (one.name == name) return &one;
  return nullptr;
}

// In thousandths; absent or 0: not set.
int64_t amount_in(const StringMap& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  if (found == amounts.end()) return 0;
  const auto milli = parse_quantity_milli(found->second);
  return milli ? std::max<int64_t>(*milli, 0) : 0;
}

int64_t ratio_up(int64_t amount, int64_t divisor) {
  return amount / divisor + (amount % divisor > 0 ? 1 : 0);
}

// As Kubernetes does: CPUs in thousandths and memory in bytes, divided and rounded up.
std::string value_of(const ResourceRef& ref, const Container& of, const NodeFigures& node) {
  const bool cpu = is_cpu(ref.resource), limit = ref.resource.starts_with("limits.");
  const std::string name = cpu ? "cpu" : "memory";
  const int64_t limited = amount_in(of.resources.limits, name);
  int64_t milli = limited;
  if (!limit && of.resources.requests.contains(name))
    milli = amount_in(of.resources.requests, name);
  const auto divisor = parse_quantity_milli(ref.divisor.empty() ? "1" : ref.divisor);
  const int64_t by = divisor && *divisor > 0 ? *divisor : 1000;
  if (cpu) {
    if (limit && limited == 0) milli = static_cast<int64_t>(node.cpu_millis);
    return std::to_string(ratio_up(milli, by));
  }
  int64_t bytes = ratio_up(milli, 1000);
  if (limit && limited == 0) bytes = static_cast<int64_t>(node.memory_bytes);
  return std::to_string(ratio_up(bytes, ratio_up(by, 1000)));
}

// Escapes $, since the values of variables are expanded.
std::string literal(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

// nullopt: the node fills it in.
std::optional<std::string> value_of(const std::string& path, const PodTemplate& pod,
                                    const NodeFigures& node) {
  if (path == "status.hostIP" || path == "status.hostIPs" || path == "status.podIP" ||
      path == "status.podIPs")
    return node.ip;
  if (path == "spec.serviceAccountName")
    return pod.service_account.empty() ? kDefaultServiceAccount : pod.service_account;
  return std::nullopt;
}

bool is_subscript(std::string_view path, std::string_view map) {
  return path.starts_with(map) && path.size() > map.size() + 4 &&
         path.substr(map.size()).starts_with("['") && path.ends_with("']");
}

// Whether Kubernetes allows this divisor for the resource.
bool is_divisor(const std::string& text, bool cpu) {
  static constexpr std::string_view kOfCpu[] = {"1m", "1"};
  static constexpr std::string_view kOfMemory[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                                   "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  const auto divisor = parse_quantity_milli(text);
  if (!divisor) return false;
  if (*divisor == 0) return true;  // as if it were absent
  const auto same = [&](std::string_view one) { return *parse_quantity_milli(one) == *divisor; };
  return cpu ? std::any_of(std::begin(kOfCpu), std::end(kOfCpu), same)
             : std::any_of(std::begin(kOfMemory), std::end(kOfMemory), same);
}

}  // namespace

void put_values(Container& container, const PodTemplate& pod, const NodeFigures& node) {
  for (EnvVar& variable : container.env) {
    if (variable.resource) {
      const std::string& name = variable.resource->container;
      const Container* const of = name.empty() ? &container : container_named(pod, name);
      if (of != nullptr) variable.value = value_of(*variable.resource, *of, node);
      variable.resource.reset();
    } else if (auto value = value_of(variable.field_path, pod, node)) {
      variable.value = literal(*value);
      variable.field_path.clear();
    }
  }
}

void validate_field_path(const std::string& at, const std::string& field_path, Violations& found) {
  static constexpr std::string_view kPlain[] = {"metadata.name",
                                                "metadata.namespace",
                                                "metadata.uid",
                                                "spec.nodeName",
                                                "spec.serviceAccountName",
                                                "status.hostIP",
                                                "status.hostIPs",
                                                "status.podIP",
                                                "status.podIPs"};
  if (std::find(std::begin(kPlain), std::end(kPlain), field_path) != std::end(kPlain) ||
      is_subscript(field_path, "metadata.labels") ||
      is_subscript(field_path, "metadata.annotations"))
    return;
  found.not_supported(
      at + ".fieldRef.fieldPath", field_path,
      {"metadata.annotations['<KEY>']", "metadata.labels['<KEY>']", "metadata.name",
       "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
       "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"});
}

void validate_resource_ref(const std::string& at, const ResourceRef& ref, const PodTemplate& pod,
                           Violations& found) {
  const std::string path = at + ".resourceFieldRef";
  if (!ref.container.empty() && container_named(pod, ref.container) == nullptr)
    found.not_found(path + ".containerName", ref.container);
  if (ref.resource.empty()) return found.required(path + ".resource");
  if (std::find(std::begin(kResources), std::end(kResources), ref.resource) == std::end(kResources))
    return found.not_supported(path + ".resource", ref.resource,
                               {kResources[0], kResources[1], kResources[2], kResources[3]});
  if (ref.divisor.empty() || is_divisor(ref.divisor, is_cpu(ref.resource))) return;
  found.invalid(path + ".divisor", ref.divisor,
                is_cpu(ref.resource)
                    ? "only divisor's values 1m and 1 are supported with the cpu resource"
                    : "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, "
                      "1Ei are supported with the memory resource");
}

}  // namespace muster::core
