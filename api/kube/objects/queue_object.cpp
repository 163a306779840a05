#include "api/kube/objects/queue_object.hpp"

#include "base/text/json_text.hpp"
#include "core/spec/fields/selector.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/names.hpp"
#include "core/spec/values/quantity.hpp"

#include <charconv>
#include <limits>
#include <set>

namespace muster::api {
namespace {

constexpr int32_t kQueueWeightDefault = 1;
constexpr int32_t kQueueWeightLargest = 1'000'000;
constexpr const char* kWeightRange = "must be between 1 and 1000000, inclusive";
constexpr const char* kPreemptLower = "PreemptLowerPriority";
constexpr const char* kPreemptNever = "Never";
constexpr size_t kAccountNameMax = 256;                  // bytes
constexpr Millis kSpanMaxMs = Millis{INT32_MAX} * 1000;  // as activeDeadlineSeconds

Json part_of(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it == object.end() ? Json::object() : *it;
}

std::optional<uint32_t> as_gid(const std::string& text) {
  uint32_t gid = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, gid);
  return failed == std::errc{} && at == end ? std::optional(gid) : std::nullopt;
}

void check_accounts(const Json& spec, const char* name, core::Violations& found) {
  std::set<std::string> seen;
  const Json names = spec.value(name, Json::array());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string path = core::item(std::string("spec.") + name, i), text = names[i];
    if (text.empty()) found.required(path);
    if (text.size() > kAccountNameMax) found.too_long(path, kAccountNameMax);
    if (!seen.insert(text).second) found.duplicate(path, text);
  }
}

void check_priority(const Json& spec, core::Violations& found) {
  const Json priority = part_of(spec, "priority");
  for (const char* name : {"default", "max"})
    if (const auto value = member_number<int64_t>(priority, name))
      if (*value < -int64_t{core::kPriorityClassMax} || *value > core::kPriorityClassMax)
        found.invalid(std::string("spec.priority.") + name, *value,
                      "must be between -1000000000 and 1000000000, inclusive");
  const auto usual = member_number<int64_t>(priority, "default"),
             most = member_number<int64_t>(priority, "max");
  if (usual && most && *usual > *most)
    found.invalid("spec.priority.default", *usual,
                  "must not be above spec.priority.max, " + std::to_string(*most));
}

// In seconds; nothing: absent or invalid.
std::optional<int64_t> seconds(const Json& limits, const char* name) {
  const std::string text = member_text(limits, name);
  if (text.empty()) return std::nullopt;
  const auto span_ms = core::parse_duration(text);
  if (!span_ms.ok() || *span_ms < 1000 || *span_ms % 1000 != 0 || *span_ms > kSpanMaxMs)
    return std::nullopt;
  return *span_ms / 1000;
}

void check_time_limits(const Json& spec, core::Violations& found) {
  const Json limits = part_of(spec, "timeLimit");
  for (const char* name : {"default", "max"})
    if (limits.contains(name) && !seconds(limits, name))
      found.invalid(std::string("spec.timeLimit.") + name, member_text(limits, name),
                    "must be a duration of whole seconds, such as 90m or 12h, up to 2147483647s");
  const auto usual = seconds(limits, "default"), most = seconds(limits, "max");
  if (usual && most && *usual > *most)
    found.invalid("spec.timeLimit.default", member_text(limits, "default"),
                  "must not be above spec.timeLimit.max, " + member_text(limits, "max"));
}

void check_limits(const Json& spec, const char* name, core::Violations& found) {
  const Json limits = part_of(spec, name);
  for (const auto& [resource, value] : limits.items()) {
    const std::string path = std::string("spec.") + name + "[" + resource + "]";
    const bool counts = resource != "cpu" && resource != "memory";
    if (counts && resource != "pods" && resource != "jobs" &&
        resource.find('/') == std::string::npos) {
      found.invalid(path, resource,
                    "must be pods, jobs, cpu, memory or a device such as nvidia.com/gpu");
      continue;
    }
    for (const std::string& why : core::qualified_name_errors(resource))
      found.invalid(path, resource, why);
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const auto milli = core::parse_quantity_milli(text);
    if (!milli.ok())
      found.invalid(path, text, milli.error().message);
    else if (*milli < 0)
      found.invalid(path, text, "must be greater than or equal to 0");
    else if (counts && *milli % 1000 != 0)
      found.invalid(path, text, "must be an integer");
  }
}

void check_preemption(const Json& spec, core::Violations& found) {
  const Json queues = part_of(spec, "preemption").value("queues", Json::array());
  std::set<std::string> seen;
  for (size_t i = 0; i < queues.size(); ++i) {
    const std::string path = core::item("spec.preemption.queues", i), name = queues[i];
    if (!seen.insert(name).second) found.duplicate(path, name);
    for (const std::string& why : core::dns_label_errors(name)) found.invalid(path, name, why);
  }
}

void check_user_weights(const Json& spec, core::Violations& found) {
  const Json weights = part_of(spec, "userWeights");
  for (const auto& [user, weight] : weights.items()) {
    const std::string path = "spec.userWeights[" + user + "]";
    if (user.empty()) found.required(path);
    if (user.size() > kAccountNameMax) found.too_long(path, kAccountNameMax);
    const auto number = weight.get<int64_t>();
    if (number < 1 || number > kQueueWeightLargest) found.invalid(path, number, kWeightRange);
  }
}

core::QueueLimits limits_of(const Json& spec, const char* name) {
  core::QueueLimits limits;
  const Json given = part_of(spec, name);
  for (const auto& [resource, value] : given.items()) {
    const auto milli =
        core::parse_quantity_milli(value.is_string() ? value.get<std::string>() : value.dump());
    if (!milli.ok()) continue;
    const int64_t units = *milli / 1000;
    const auto count =
        static_cast<uint32_t>(std::min<int64_t>(units, std::numeric_limits<uint32_t>::max()));
    if (resource == "pods")
      limits.pods = count;
    else if (resource == "jobs")
      limits.jobs = count;
    else if (resource == "cpu")
      limits.cpu_millis = *milli;
    else if (resource == "memory")
      limits.memory_bytes = units;
    else
      limits.named[resource] = units;
  }
  return limits;
}

}  // namespace

void settle_queue(Json& queue, core::Violations& found) {
  if (!queue.contains("spec") || !queue["spec"].is_object()) queue["spec"] = Json::object();
  const Json& spec = queue["spec"];
  // Names that are none at all have been found before.
  const std::string name = member_text(queue["metadata"], "name");
  if (!name.empty() && core::dns_subdomain_errors(name).empty())
    for (const std::string& why : core::dns_label_errors(name))
      found.invalid("metadata.name", name, why);
  core::validate_labels("spec.nodeSelector", spec.value("nodeSelector", core::StringMap()), found);
  check_accounts(spec, "users", found);
  check_accounts(spec, "groups", found);
  check_priority(spec, found);
  check_time_limits(spec, found);
  check_limits(spec, "limits", found);
  check_limits(spec, "userLimits", found);
  if (const auto weight = member_number<int64_t>(spec, "weight"))
    if (*weight < 1 || *weight > kQueueWeightLargest)
      found.invalid("spec.weight", *weight, kWeightRange);
  check_user_weights(spec, found);
  check_preemption(spec, found);
}

void settle_priority_class(Json& priority_class, const Json* old, core::Violations& found) {
  const std::string name = member_text(priority_class["metadata"], "name");
  if (name.starts_with(core::kSystemPrefix))
    found.forbidden("metadata.name", "priority class names with '" +
                                         std::string(core::kSystemPrefix) +
                                         "' prefix are reserved for system use only");
  if (member_number<int64_t>(priority_class, "value").value_or(0) > core::kPriorityClassMax)
    found.forbidden("value", "maximum allowed value of a user defined priority is " +
                                 std::to_string(core::kPriorityClassMax));
  if (member_text(priority_class, "preemptionPolicy").empty())
    priority_class["preemptionPolicy"] = kPreemptLower;
  if (const std::string policy = member_text(priority_class, "preemptionPolicy");
      policy != kPreemptLower && policy != kPreemptNever)
    found.not_supported("preemptionPolicy", policy, {kPreemptLower, kPreemptNever});
  if (!priority_class.contains("value")) priority_class["value"] = 0;
  for (const char* fixed : {"value", "preemptionPolicy"})
    if (old && (*old)[fixed] != priority_class[fixed])
      found.forbidden(fixed, "may not be changed in an update.");
}

core::Queue queue_of(const Json& queue, const GroupIds& groups) {
  const Json spec = part_of(queue, "spec");
  const Json priority = part_of(spec, "priority"), time = part_of(spec, "timeLimit");
  core::Queue out;
  out.name = member_text(queue.at("metadata"), "name");
  out.node_selector = spec.value("nodeSelector", core::StringMap());
  out.users = spec.value("users", std::vector<std::string>());
  for (const std::string& name : spec.value("groups", std::vector<std::string>())) {
    const auto known = groups.find(name);
    // A group that does not exist has no members, but the queue is not open to everybody either.
    const std::optional<uint32_t> gid = known == groups.end() ? as_gid(name) : known->second;
    out.groups.push_back(gid.value_or(core::kNoGroup));
    out.group_names.push_back(name);
  }
  out.priority_default = member_number<int32_t>(priority, "default");
  out.priority_max = member_number<int32_t>(priority, "max");
  out.time_max_s = seconds(time, "max");
  out.time_default_s = seconds(time, "default");
  if (!out.time_default_s) out.time_default_s = out.time_max_s;
  out.total = limits_of(spec, "limits");
  out.per_user = limits_of(spec, "userLimits");
  out.weight = member_number<int32_t>(spec, "weight").value_or(kQueueWeightDefault);
  out.user_weights = spec.value("userWeights", std::map<std::string, double>());
  if (spec.contains("preemption"))
    out.preempts = part_of(spec, "preemption").value("queues", std::vector<std::string>());
  return out;
}

core::PriorityClass priority_class_of(const Json& priority_class) {
  return {member_number<int32_t>(priority_class, "value").value_or(0),
          priority_class.value("globalDefault", false),
          member_text(priority_class, "preemptionPolicy") != kPreemptNever};
}

std::vector<std::string> group_names_of(const Json& queue) {
  std::vector<std::string> names;
  for (std::string& name : part_of(queue, "spec").value("groups", std::vector<std::string>()))
    if (!as_gid(name)) names.push_back(std::move(name));
  return names;
}

}  // namespace muster::api
