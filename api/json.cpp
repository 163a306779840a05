#include "api/json.hpp"

#include "api/job_text.hpp"
#include "base/check.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <charconv>

namespace muster::api {
namespace {

// Like std::to_chars, in base 16.
std::string hex(uint64_t n) {
  char text[17];
  auto end = std::to_chars(text, text + sizeof text, n, 16).ptr;
  return std::string(text, end);
}

// Appends what the parser finds. Only the innermost open container grows, so the pointers stay
// good.
class OrderedBuilder : public nlohmann::json_sax<OrderedJson> {
 public:
  OrderedJson take() { return std::move(root_); }

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return put(value) != nullptr;
  }
  bool string(string_t& value) override { return put(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }  // has no JSON text
  bool start_object(size_t) override {
    open_.push_back(put(OrderedJson::object()));
    return true;
  }
  bool start_array(size_t) override {
    open_.push_back(put(OrderedJson::array()));
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  OrderedJson* put(OrderedJson value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    OrderedJson& in = *open_.back();
    if (in.is_array()) {
      in.push_back(std::move(value));
      return &in.back();
    }
    auto& members = in.get_ref<OrderedJson::object_t&>();
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  OrderedJson root_;
  std::vector<OrderedJson*> open_;
  std::string key_;
};

struct Ready {
  const char* status;
  std::string reason;
  std::string message;
};

Ready ready(const core::NodeInfo& node) {
  using Health = core::NodeInfo::Health;
  switch (node.health) {
    case Health::ready:
      if (node.draining)
        return {"False", "AgentDraining", "the agent is ending its pods and leaving"};
      if (node.trouble) return {"False", node.trouble.reason, node.trouble.message};
      return {"True", "AgentReady", "the agent is connected"};
    case Health::suspect:
      return {"Unknown", "NodeStatusUnknown", "the agent's heartbeats are late"};
    case Health::lost:
      return {"Unknown", "NodeStatusUnknown", "the agent stopped posting heartbeats"};
    case Health::unknown:
      return {"Unknown", "NodeStatusNeverUpdated",
              "the agent has not registered since the coordinator's start"};
  }
  return {"Unknown", "", ""};
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

const Json* find_path(const Json& json, std::initializer_list<const char*> names) {
  const Json* at = &json;
  for (const char* name : names) {
    if (!at->is_object()) return nullptr;
    auto it = at->find(name);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at;
}

OrderedJson parse_ordered(std::string_view text) {
  OrderedBuilder builder;
  if (!OrderedJson::sax_parse(text.begin(), text.end(), &builder))
    return OrderedJson(OrderedJson::value_t::discarded);
  return builder.take();
}

std::string dumped(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void append_quoted(std::string& out, std::string_view text) {
  const bool simple = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  });
  if (simple) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += dumped(std::string(text));
  }
}

OrderedJson job_status(const core::Job& job) {
  std::string text;
  append_job_status(text, job);
  return parse_ordered(text);
}

OrderedJson job_json(const core::Job& job, uint64_t version) {
  const core::JobState& s = job.state();
  OrderedJson json = parse_ordered(job.object().json);
  MUSTER_CHECK(json.is_object(), job.id(), job.object().json);
  OrderedJson& meta = json["metadata"];
  meta["resourceVersion"] = std::to_string(version);
  if (s.deleted_ms != 0) {
    meta["deletionTimestamp"] = time_text(s.deleted_ms);
    meta["deletionGracePeriodSeconds"] = 0;
    // It leaves with the last pod; what stays then waits for a finalizer of somebody else.
    bool foreground = !s.background_deleted && !s.orphaned && !s.deletion_waits;
    if (foreground && (!s.open.empty() || !meta.contains("finalizers")))
      meta["finalizers"].push_back("foregroundDeletion");
  }
  json["status"] = job_status(job);
  return json;
}

std::optional<std::string_view> node_label(const core::NodeInfo& node, std::string_view key) {
  if (key == "kubernetes.io/hostname") return node.name;
  if (key == "kubernetes.io/os") return "linux";
  for (const core::StringMap* labels : {&node.spec.labels, &node.labels})
    if (auto it = labels->find(std::string(key)); it != labels->end()) return it->second;
  return std::nullopt;
}

// What runs there and a restored state does not know: for people, since nobody else can tell what
// is to become of it.
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
           "pods run here that were begun after the backup from which the state was "
           "restored; they are left alone and count nowhere: " +
               pods}};
}

OrderedJson node_json(const core::NodeInfo& node, uint64_t version) {
  core::StringMap all = core::labels_of(node);
  all["kubernetes.io/os"] = "linux";
  OrderedJson labels = ordered(all);
  const Ready r = ready(node);
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
  if (node.spec.unschedulable) {
    spec["unschedulable"] = true;
    taints.push_back({{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}});
  }
  if (node.health == core::NodeInfo::Health::lost)
    taints.push_back({{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoExecute"}});
  for (const core::Taint& t : node.spec.taints) {
    OrderedJson taint = {{"key", t.key}};
    if (!t.value.empty()) taint["value"] = t.value;
    taint["effect"] = t.effect;
    taints.push_back(std::move(taint));
  }
  if (!taints.empty()) spec["taints"] = std::move(taints);
  OrderedJson addresses = OrderedJson::array();
  if (!node.address.empty())
    addresses.push_back({{"type", "InternalIP"}, {"address", node.address}});
  addresses.push_back({{"type", "Hostname"}, {"address", node.name}});
  OrderedJson meta = {{"name", node.name},
                      {"uid", node.work_dir_id},
                      {"resourceVersion", std::to_string(version)},
                      {"creationTimestamp", time_text(node.created_ms)},
                      {"labels", std::move(labels)},
                      {"annotations", ordered(node.spec.annotations)}};
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
          {"containerRuntimeVersion", "muster://"},
          {"kubeletVersion", ""},
          {"kubeProxyVersion", ""},
          {"operatingSystem", "linux"},
          {"architecture", ""}}}}}};
  if (!node.strangers.empty()) json["status"]["conditions"].push_back(strangers_json(node));
  return json;
}

std::string event_reason(const core::Job& job, const core::JobEvent& event) {
  using Kind = core::JobEvent::Kind;
  switch (event.kind) {
    case Kind::successful_create:
      return "SuccessfulCreate";
    case Kind::successful_delete:
      return "SuccessfulDelete";
    case Kind::completed:
      return "Completed";
    case Kind::failed: {
      const core::Condition* failed = job.condition("Failed");
      return failed ? failed->reason : "Failed";
    }
    case Kind::suspended:
      return "Suspended";
    case Kind::resumed:
      return "Resumed";
    case Kind::too_many_succeeded:
      return "TooManySucceededPods";
  }
  return {};
}

std::string event_message(const core::Job& job, const core::JobEvent& event) {
  using Kind = core::JobEvent::Kind;
  const core::JobMeta& meta = job.object().meta;
  switch (event.kind) {
    case Kind::successful_create:
      return "Created pod: " + core::pod_name(meta.name, meta.uid, job.indexed(), event.pod);
    case Kind::successful_delete:
      return "Deleted pod: " + core::pod_name(meta.name, meta.uid, job.indexed(), event.pod);
    case Kind::completed:
      return "Job completed";
    case Kind::failed: {
      const core::Condition* failed = job.condition("Failed");
      return failed ? failed->message : "";
    }
    case Kind::suspended:
      return "Job suspended";
    case Kind::resumed:
      return "Job resumed";
    case Kind::too_many_succeeded:
      return "Too many succeeded pods running after completion count reached";
  }
  return {};
}

std::string event_name(const core::Job& job, const core::JobEvent& event) {
  return job.object().meta.name + "." + hex(job.id()) + "-" + hex(event.nr);
}

std::optional<Key> parse_event_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  Key key{.kind = Kind::event};
  const char* end = name.data() + name.size();
  auto job = std::from_chars(name.data() + dot + 1, end, key.job, 16);
  if (job.ec != std::errc{} || job.ptr == end || *job.ptr != '-') return std::nullopt;
  auto nr = std::from_chars(job.ptr + 1, end, key.nr, 16);
  if (nr.ec != std::errc{} || nr.ptr != end) return std::nullopt;
  return key;
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

OrderedJson status_json(int code, std::string_view reason, std::string_view message,
                        OrderedJson details) {
  OrderedJson json = {
      {"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", OrderedJson::object()},
      {"status", "Failure"}, {"message", message}, {"reason", reason}};
  if (!details.is_null()) json["details"] = std::move(details);
  json["code"] = code;
  return json;
}

}  // namespace muster::api
