#include "api/view/query/object_json.hpp"

#include "api/view/model/event_text.hpp"
#include "base/check.hpp"
#include "base/text/time_text.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster::api {
namespace {

std::string held_text(const core::NodeInfo& node) {
  return node.loss_held ? "; no node responds, so none is lost" : "";
}

// The last heartbeat is unknown for a node that was lost before the coordinator started.
std::string unresponsive(const core::NodeInfo& node) {
  return (node.heartbeat_ms == 0
              ? "the agent does not respond"
              : "the agent has not responded since " + time_text(node.heartbeat_ms)) +
         held_text(node);
}

// Whether the node enforces the limits of containers.
OrderedJson limits_condition(const core::NodeInfo& node, const std::string& since) {
  const core::LimitSupport& limits = node.limits;
  OrderedJson condition = {{"type", "LimitsEnforced"}};
  if (node.health == core::NodeInfo::Health::unknown) {
    condition.update({{"status", "Unknown"},
                      {"reason", "NodeStatusNeverUpdated"},
                      {"message", "the agent has not registered since the coordinator's start"}});
  } else if (limits.memory && limits.cpu) {
    condition.update({{"status", "True"},
                      {"reason", "CgroupControllersAvailable"},
                      {"message", "memory and cpu limits are enforced"}});
  } else {
    const char* missing = limits.cpu      ? "memory limits are"
                          : limits.memory ? "cpu limits are"
                                          : "memory and cpu limits are";
    condition.update({{"status", "False"},
                      {"reason", "CgroupControllersUnavailable"},
                      {"message", std::string(missing) + " not enforced: " + limits.why}});
  }
  condition["lastTransitionTime"] = since;
  return condition;
}

}  // namespace

core::NodeTrouble reported_trouble(const core::NodeInfo& node) {
  if (node.trouble) return node.trouble;
  if (node.check.fails()) return {"HealthCheckFailed", node.check.failure};
  if (!node.starts_failing.empty()) return {"StartsFailing", node.starts_failing};
  return {};
}

ReadyCondition ready_condition(const core::NodeInfo& node) {
  using Health = core::NodeInfo::Health;
  if (has_left(node))
    return {"False", "AgentLeft",
            "the agent announced its shutdown and left: " + unresponsive(node)};
  switch (node.health) {
    case Health::ready:
      if (node.draining)
        return {"False", "AgentDraining", "the agent is terminating its pods and shutting down"};
      if (core::NodeTrouble found = reported_trouble(node))
        return {"False", std::move(found.reason), std::move(found.message)};
      return {"True", "AgentReady", "the agent is connected"};
    case Health::suspect:
      return {"Unknown", "NodeStatusUnknown", unresponsive(node)};
    case Health::lost:
      return {"Unknown", "NodeStatusUnknown", "the node is lost: " + unresponsive(node)};
    case Health::unknown:
      return {"Unknown", "NodeStatusNeverUpdated",
              "the agent has not registered since the coordinator's start" + held_text(node)};
  }
  return {"Unknown", "", ""};
}

std::optional<std::string_view> node_label(const core::NodeInfo& node, std::string_view key) {
  if (key == "kubernetes.io/hostname") return node.name;
  if (key == "kubernetes.io/os") return "linux";
  for (const core::StringMap* labels : {&node.spec.labels, &node.labels})
    if (auto it = labels->find(std::string(key)); it != labels->end()) return it->second;
  return std::nullopt;
}

bool has_left(const core::NodeInfo& node) {
  using Health = core::NodeInfo::Health;
  return (node.draining || node.left_ms != 0) && node.health != Health::ready;
}

// The condition for pods that run on the node but are unknown to a state restored from a backup. A
// person must decide what to do with them.
OrderedJson strangers_json(const core::NodeInfo& node) {
  constexpr size_t kNamed = 20;
  std::string pods;
  for (size_t i = 0; i < std::min(kNamed, node.strangers.size()); ++i)
    pods += (i > 0 ? ", " : "") + to_string(node.strangers[i]);
  if (node.strangers.size() > kNamed)
    pods += " and " + std::to_string(node.strangers.size() - kNamed) + " more";
  return {{"type", "UnknownPods"},
          {"status", "True"},
          {"reason", "RestoredFromBackup"},
          {"message",
           "pods that were started after the restored backup are still running; they are left "
           "alone and not counted (`muster node end-unknown " +
               node.name + "` ends them): " + pods}};
}

// The condition for a node with a health check.
OrderedJson healthy_json(const core::NodeInfo& node, const std::string& since) {
  const bool fails = node.check.fails();
  return {{"type", "Healthy"},
          {"status", fails ? "False" : "True"},
          {"lastTransitionTime", since},
          {"reason", fails ? "HealthCheckFailed" : "HealthCheckPassed"},
          {"message", fails ? node.check.failure : "the health check passes"}};
}

// The condition for a node that gets no pods but probes.
OrderedJson starts_failing_json(const core::NodeInfo& node, const std::string& since) {
  return {{"type", "StartsFailing"},
          {"status", "True"},
          {"lastTransitionTime", since},
          {"reason", "PodsCannotStart"},
          {"message", node.starts_failing +
                          "; one pod at a time is let through until one starts, and `muster "
                          "uncordon " +
                          node.name + "` lets all through"}};
}

// Who cordoned and tainted the node, when and why, as the text of a JSON list.
std::string reasons_text(const core::NodeSpec& spec) {
  OrderedJson all = OrderedJson::array();
  for (const core::NodeReason& one : spec.reasons)
    all.push_back(
        {{"what", one.what}, {"by", one.by}, {"at", time_text(one.at_ms)}, {"reason", one.text}});
  return dumped(all);
}

namespace {

const core::Taint kCordonTaint{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
const core::Taint kLostTaint{"node.kubernetes.io/unreachable", "", "NoExecute"};

}  // namespace

bool is_shown_taint(const core::Taint& taint) {
  return taint == kCordonTaint || taint == kLostTaint;
}

OrderedJson node_json(const core::NodeInfo& node, uint64_t version) {
  OrderedJson labels = ordered(core::labels_of(node));
  const ReadyCondition r = ready_condition(node);
  const Millis beat = node.heartbeat_ms != 0 ? node.heartbeat_ms : node.created_ms;
  const Millis since = node.changed_ms != 0 ? node.changed_ms : node.created_ms;
  std::string cpu = node.cpu_millis % 1000 == 0 ? std::to_string(node.cpu_millis / 1000)
                                                : std::to_string(node.cpu_millis) + "m";
  OrderedJson capacity = {{"cpu", cpu},
                          {"memory", std::to_string(node.memory_bytes / 1024) + "Ki"},
                          {"pods", std::to_string(node.slots)}};
  for (const auto& [name, count] : node.resources) capacity[name] = std::to_string(count);
  OrderedJson spec = OrderedJson::object();
  OrderedJson taints = OrderedJson::array();
  auto show = [&taints](const core::Taint& t) {
    OrderedJson taint = {{"key", t.key}};
    if (!t.value.empty()) taint["value"] = t.value;
    taint["effect"] = t.effect;
    taints.push_back(std::move(taint));
  };
  if (node.spec.unschedulable) {
    spec["unschedulable"] = true;
    show(kCordonTaint);
  }
  if (node.health == core::NodeInfo::Health::lost) show(kLostTaint);
  for (const core::Taint& t : node.spec.taints) show(t);
  if (!taints.empty()) spec["taints"] = std::move(taints);
  OrderedJson addresses = OrderedJson::array();
  if (const std::string& at = node.ip.empty() ? node.address : node.ip; !at.empty())
    addresses.push_back({{"type", "InternalIP"}, {"address", at}});
  addresses.push_back({{"type", "Hostname"}, {"address", node.name}});
  OrderedJson meta = {{"name", node.name},
                      {"uid", node.work_dir_id},
                      {"resourceVersion", std::to_string(version)},
                      {"creationTimestamp", time_text(node.created_ms)},
                      {"labels", std::move(labels)},
                      {"annotations", ordered(node.spec.annotations)}};
  if (!node.spec.reasons.empty()) meta["annotations"][kReasonsKey] = reasons_text(node.spec);
  if (node.until_ms) meta["annotations"][kUntilKey] = time_text(*node.until_ms);
  if (!node.spec.managers.empty()) meta["managedFields"] = parse_ordered(node.spec.managers);
  OrderedJson json = {
      {"kind", "Node"},
      {"apiVersion", "v1"},
      {"metadata", std::move(meta)},
      {"spec", std::move(spec)},
      {"status",
       {{"capacity", capacity},
        {"allocatable", capacity},
        {"conditions", OrderedJson::array({OrderedJson{{"type", "Ready"},
                                                       {"status", r.status},
                                                       {"lastHeartbeatTime", time_text(beat)},
                                                       {"lastTransitionTime", time_text(since)},
                                                       {"reason", r.reason},
                                                       {"message", r.message}},
                                           limits_condition(node, time_text(since))})},
        {"addresses", std::move(addresses)},
        {"nodeInfo",
         {{"machineID", ""},
          {"systemUUID", ""},
          {"bootID", node.boot_id},
          {"kernelVersion", ""},
          {"osImage", ""},
          {"containerRuntimeVersion", "muster://" + node.keeper_version},
          {"kubeletVersion", node.agent_version},
          {"kubeProxyVersion", ""},
          {"operatingSystem", "linux"},
          {"architecture", ""}}}}}};
  OrderedJson& conditions = json["status"]["conditions"];
  if (node.check.runs) conditions.push_back(healthy_json(node, time_text(since)));
  if (!node.starts_failing.empty())
    conditions.push_back(starts_failing_json(node, time_text(since)));
  if (!node.strangers.empty()) conditions.push_back(strangers_json(node));
  return json;
}

OrderedJson event_json(const core::Job& job, const core::JobEvent& event, uint64_t version) {
  const core::JobMeta& meta = job.object().meta;
  const std::string at = time_text(event.at_ms);
  return {{"kind", "Event"},
          {"apiVersion", "v1"},
          {"metadata",
           {{"name", event_name(job, event)},
            {"namespace", meta.ns},
            {"uid", core::pod_uid(meta.uid + "/events", {static_cast<uint32_t>(event.nr >> 32),
                                                         static_cast<uint32_t>(event.nr)})},
            {"resourceVersion", std::to_string(version)},
            {"creationTimestamp", at}}},
          {"involvedObject",
           {{"kind", "Job"},
            {"namespace", meta.ns},
            {"name", meta.name},
            {"uid", meta.uid},
            {"apiVersion", "batch/v1"}}},
          {"reason", event_reason(job, event)},
          {"message", event_message(job, event)},
          {"source", {{"component", "job-controller"}}},
          {"firstTimestamp", at},
          {"lastTimestamp", at},
          {"count", 1},
          {"type", event.warning() ? "Warning" : "Normal"},
          {"eventTime", nullptr},
          {"reportingComponent", "job-controller"},
          {"reportingInstance", ""}};
}

}  // namespace muster::api
