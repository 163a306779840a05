#include "api/view/render/pod_json.hpp"

#include "api/view/query/object_json.hpp"
#include "api/view/query/pod_configs.hpp"
#include "api/view/query/selector.hpp"
#include "base/check.hpp"
#include "base/text/time_text.hpp"
#include "core/job/facts/pod_conditions.hpp"
#include "core/pod_name.hpp"
#include "core/spec/rules/retry_steps.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>
#include <optional>

namespace muster::api {
namespace {

using core::EndCause;

// {"a":1} -> "a":1
std::string inner(const OrderedJson& object) {
  const std::string text = dumped(object);
  return text.substr(1, text.size() - 2);
}

void add_comma(std::string& out) {
  if (out.back() != '{' && out.back() != '[') out += ',';
}

void add(std::string& out, std::string_view key, std::string_view value) {
  add_comma(out);
  append_quoted(out, key);
  out += ':';
  append_quoted(out, value);
}

void add_raw(std::string& out, std::string_view key, std::string_view text) {
  add_comma(out);
  append_quoted(out, key);
  out += ':';
  out += text;
}

// With milliseconds: "1.204".
std::string seconds_text(uint64_t us) {
  const std::string ms = std::to_string(us / 1000 % 1000);
  return std::to_string(us / 1'000'000) + "." + std::string(3 - ms.size(), '0') + ms;
}

void add_members(std::string& out, std::string_view members) {
  if (members.empty()) return;
  add_comma(out);
  out += members;
}

void add_condition(std::string& out, const core::PodCondition& c) {
  add_comma(out);
  out += '{';
  add(out, "type", c.type);
  add(out, "status", c.status);
  add_raw(out, "lastProbeTime", "null");
  add(out, "lastTransitionTime", time_text(c.at_ms));
  if (!c.reason.empty()) add(out, "reason", c.reason);
  if (!c.message.empty()) add(out, "message", c.message);
  out += '}';
}

// Gives containers their index in a variable, written as Kubernetes writes it.
void add_index_env(OrderedJson& spec, const char* kind) {
  if (!spec.contains(kind)) return;
  for (OrderedJson& container : spec[kind]) {
    OrderedJson& env = container["env"];
    if (!env.is_array()) env = OrderedJson::array();
    const bool defined = std::any_of(env.begin(), env.end(), [](const OrderedJson& v) {
      return v.is_object() && v.contains("name") && v["name"] == "JOB_COMPLETION_INDEX";
    });
    if (defined) continue;
    const std::string path =
        "metadata.annotations['" + std::string(core::kCompletionIndexKey) + "']";
    env.push_back(
        {{"name", "JOB_COMPLETION_INDEX"}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
  }
}

}  // namespace

std::string_view container_reason(EndCause cause, int32_t exit_code) {
  switch (cause) {
    case EndCause::start_failed:
      return "StartError";
    case EndCause::out_of_memory:
      return "OOMKilled";
    case EndCause::keeper_lost:
    case EndCause::node_lost:
    case EndCause::node_deleted:
      return "ContainerStatusUnknown";
    case EndCause::never_started:
    case EndCause::returned:
      return "Error";
    case EndCause::exited:
    case EndCause::killed:
    case EndCause::agent_stopped:
    case EndCause::fenced:
    case EndCause::deadline:
    case EndCause::evicted:
    case EndCause::worker_unreachable:
      break;
  }
  return exit_code == 0 ? "Completed" : "Error";
}

std::string_view pod_reason(EndCause cause) {
  switch (cause) {
    case EndCause::deadline:
      return "DeadlineExceeded";
    case EndCause::node_lost:
      return "NodeLost";
    case EndCause::agent_stopped:
      return "Terminated";
    case EndCause::evicted:
      return "Evicted";
    case EndCause::worker_unreachable:
      return "WorkerUnreachable";
    case EndCause::exited:
    case EndCause::killed:
    case EndCause::never_started:
    case EndCause::start_failed:
    case EndCause::keeper_lost:
    case EndCause::fenced:
    case EndCause::out_of_memory:
    case EndCause::node_deleted:
    case EndCause::returned:
      break;
  }
  return {};
}

PodWriter::PodWriter(core::JobObjectPtr object) : object_(std::move(object)) {
  const core::JobMeta& meta = object_->meta;
  const core::PodTemplate& pod = object_->spec.pod;
  const bool indexed = object_->spec.indexed();
  uses_configs_ = !core::config_needs(pod).empty();
  labels_ = members(true, {});
  annotations_ = members(false, {});
  OrderedJson finalizers = OrderedJson::array();
  for (const std::string& finalizer : pod.finalizers) finalizers.push_back(finalizer);
  finalizers.push_back(core::kTrackingFinalizer);
  finalizers_ = dumped(finalizers);
  const OrderedJson owner = OrderedJson::array({OrderedJson{{"apiVersion", "batch/v1"},
                                                            {"kind", "Job"},
                                                            {"name", meta.name},
                                                            {"uid", meta.uid},
                                                            {"controller", true},
                                                            {"blockOwnerDeletion", true}}});
  owner_ = dumped(owner);
  OrderedJson spec = OrderedJson::object();
  const OrderedJson job = parse_ordered(object_->json);
  MUSTER_CHECK(!job.is_discarded(), meta.name);
  const OrderedJson::json_pointer path("/spec/template/spec");
  if (job.contains(path) && job.at(path).is_object()) spec = job.at(path);
  spec.erase("nodeName");
  if (indexed) {
    spec.erase("hostname");
    add_index_env(spec, "initContainers");
    add_index_env(spec, "containers");
  }
  spec_ = inner(spec);
}

std::string PodWriter::spec_with(core::Steps steps) const {
  OrderedJson spec = parse_ordered("{" + spec_ + "}");
  if (const auto time_s = core::time_limit_of(*object_, steps); time_s && steps.time > 0)
    spec["activeDeadlineSeconds"] = *time_s;
  const auto memory = core::memory_of(*object_, steps);
  if (memory && steps.memory > 0 && spec["containers"].is_array())
    for (OrderedJson& container : spec["containers"])
      for (const char* kind : {"limits", "requests"})
        if (const OrderedJson::json_pointer limit("/resources/limits/memory"),
            path(std::string("/resources/") + kind + "/memory");
            container.contains(limit) && container.contains(path))
          container[path] = *memory;
  return inner(spec);
}

std::string PodWriter::members(bool labels, const std::vector<core::PodMetaChange>& changes) const {
  const core::PodTemplate& pod = object_->spec.pod;
  core::StringMap map = labels ? pod.labels : pod.annotations;
  for (const core::PodMetaChange& change : changes) {
    if (change.label != labels) continue;
    if (change.value)
      map[change.key] = *change.value;
    else
      map.erase(change.key);
  }
  // Leave out what metadata() adds for each pod.
  if (labels) {
    if (object_->spec.indexed()) map.erase(std::string(core::kCompletionIndexKey));
  } else {
    for (std::string_view own : kOwnAnnotations) map.erase(std::string(own));
  }
  return inner(ordered(map));
}

void PodWriter::metadata(std::string& out, const Shown& shown) const {
  const core::JobMeta& meta = object_->meta;
  const core::Pod& pod = *shown.pod;
  const bool indexed = shown.job->indexed();
  const std::string index = indexed ? std::to_string(pod.key.index) : std::string();
  out += "\"metadata\":{";
  add(out, "name", core::pod_name(meta.name, meta.uid, indexed, pod.key));
  add(out, "namespace", meta.ns);
  add(out, "uid", core::pod_uid(meta.uid, pod.key));
  add(out, "resourceVersion", std::to_string(shown.version));
  add(out, "creationTimestamp", time_text(pod.created_ms));
  if (pod.stopping_at) {
    const int64_t grace =
        pod.grace_ms ? *pod.grace_ms / 1000 : object_->spec.pod.termination_grace_s.value_or(30);
    add(out, "deletionTimestamp", time_text(*pod.stopping_at + grace * 1000));
    add_raw(out, "deletionGracePeriodSeconds", std::to_string(grace));
  }
  out += ",\"labels\":{";
  add_members(out, pod.meta.empty() ? labels_ : members(true, pod.meta));
  if (indexed) add(out, core::kCompletionIndexKey, index);
  out += "},\"annotations\":{";
  add_members(out, pod.meta.empty() ? annotations_ : members(false, pod.meta));
  if (indexed) add(out, core::kCompletionIndexKey, index);
  if (shown.job->per_index()) {
    add(out, core::kIndexFailureCountKey, std::to_string(pod.failures));
    if (pod.ignored > 0) add(out, core::kIndexIgnoredFailureCountKey, std::to_string(pod.ignored));
  }
  if (pod.pid) add(out, "muster.dev/pid", std::to_string(*pod.pid));
  if (!pod.cpus.empty()) add(out, "muster.dev/cpus", pod.cpus);
  if (!pod.runs.empty()) add(out, kRunsKey, dumped(runs_json(object_->spec.pod, pod)));
  if (pod.ended && pod.end.used.known()) {
    add(out, "muster.dev/cpu-seconds", seconds_text(pod.end.used.cpu_us()));
    add(out, "muster.dev/peak-memory-bytes", std::to_string(pod.end.used.peak_bytes));
  }
  out += '}';
  if (!shown.job->state().orphaned) add_raw(out, "ownerReferences", owner_);
  if (pod.counted == core::Counted::not_yet) add_raw(out, "finalizers", finalizers_);
  for (const core::PodMetaChange& change : pod.meta)
    if (!change.label && change.key == kManagersKey && change.value)
      add_raw(out, "managedFields", *change.value);
  out += '}';
}

void PodWriter::pod(std::string& out, const View& view, const Shown& shown,
                    std::string_view unplaced) const {
  const core::Pod& pod = *shown.pod;
  out += R"({"kind":"Pod","apiVersion":"v1",)";
  metadata(out, shown);
  out += ",\"spec\":{";
  add_members(out, pod.steps.any() ? spec_with(pod.steps) : spec_);
  if (shown.job->indexed())
    add(out, "hostname", core::pod_hostname(object_->meta.name, object_->meta.uid, true, pod.key));
  if (pod.bound()) add(out, "nodeName", view.node_name(pod.node));
  out += "},";
  status(out, view, shown, unplaced);
  out += '}';
}

void PodWriter::status(std::string& out, const View& view, const Shown& shown,
                       std::string_view unplaced) const {
  const core::Pod& pod = *shown.pod;
  const std::string missing = uses_configs_ ? missing_config(view, *shown.job, pod) : "";
  out += "\"status\":{";
  add(out, "phase", phase(pod));
  out += ",\"conditions\":[";
  for (core::PodCondition& condition :
       core::pod_conditions(pod, shown.job->gated(), object_->spec.pod.init_containers)) {
    if (!unplaced.empty() && condition.type == "PodScheduled") condition.message = unplaced;
    add_condition(out, condition);
  }
  out += ']';
  if (pod.ended) {
    if (const auto reason = pod_reason(pod.end.cause); !reason.empty()) add(out, "reason", reason);
    if (!pod.end.message.empty()) add(out, "message", pod.end.message);
  }
  const core::NodeInfo* const node = pod.bound() ? view.node_info(pod.node) : nullptr;
  const std::string ip = node == nullptr ? "" : node->ip;
  add(out, "hostIP", ip);
  if (!ip.empty()) {  // a pod uses its node's network
    const std::string list = dumped(OrderedJson::array({OrderedJson{{"ip", ip}}}));
    add_raw(out, "hostIPs", list);
    add(out, "podIP", ip);
    add_raw(out, "podIPs", list);
  }
  if (pod.bound()) {
    add(out, "startTime", time_text(pod.bound_ms));
    const size_t init = object_->spec.pod.init_containers.size();
    if (init > 0)
      containers(out, pod, "initContainerStatuses", object_->spec.pod.init_containers, 0, missing);
    containers(out, pod, "containerStatuses", object_->spec.pod.containers, init, missing);
  }
  add(out, "qosClass", "BestEffort");
  out += '}';
}

// What is known of one container.
struct PodWriter::Status {
  std::optional<core::ContainerEnd> end{};   // how it ended, for good
  std::optional<core::ContainerEnd> last{};  // how an earlier process of it ended
  std::optional<Millis> since{};             // its process runs
  std::string waits{};                       // else why it waits
  std::string message{};
  int32_t restarts = 0;
  bool ready = false;
};

// `at`: its position in PodEnd::containers. A pod of one container reports no more than its own
// state.
PodWriter::Status PodWriter::status_of(const core::Pod& pod, size_t at,
                                       const std::string& missing) const {
  const size_t inits = object_->spec.pod.init_containers.size();
  const bool init = at < inits, sidecar = init && object_->spec.pod.init_containers[at].sidecar,
             one = inits + object_->spec.pod.containers.size() == 1;
  Status status;
  if (pod.ended) {
    if (at < pod.end.containers.size()) {
      const core::ContainerEnd& end = pod.end.containers[at];
      if (end.has_exit_code()) status.end = end;
      status.restarts = end.restarts;
    } else if (one && (pod.started_at || pod.end.cause == EndCause::start_failed)) {
      status.end = {pod.end.cause, pod.end.exit_code, pod.end.signal,
                    pod.restarts,  pod.started_at,    pod.end.ended_at};
      status.restarts = pod.restarts;
    }
    if (status.end && one) status.message = pod.end.message;
    status.ready = init && !sidecar && status.end && status.end->exit_code == 0;
  } else if (at < pod.containers.size()) {
    const core::ContainerNow& now = pod.containers[at];
    status.restarts = now.restarts;
    if (now.phase == core::ContainerPhase::ended)
      status.end = now.last;
    else
      status.last = now.last;
    if (now.phase == core::ContainerPhase::running)
      status.since = now.since.value_or(pod.started_at.value_or(pod.bound_ms));
    if (now.phase == core::ContainerPhase::waiting) {
      status.waits = "CrashLoopBackOff";
      const auto& list = init ? object_->spec.pod.init_containers : object_->spec.pod.containers;
      const core::JobMeta& meta = object_->meta;
      status.message =
          "back-off restarting failed container=" + list[at - (init ? 0 : inits)].name +
          " pod=" + core::pod_name(meta.name, meta.uid, object_->spec.indexed(), pod.key) + "_" +
          meta.ns + "(" + core::pod_uid(meta.uid, pod.key) + ")";
    }
    status.ready =
        init && !sidecar ? status.end && status.end->exit_code == 0 : status.since.has_value();
  } else if (pod.started_at && (one || (pod.readiness == core::Readiness::ready && !init))) {
    status.restarts = pod.restarts;
    if (pod.readiness == core::Readiness::ready)
      status.since = *pod.started_at;
    else
      status.waits = "CrashLoopBackOff";
    status.ready = status.since.has_value();
  }
  if (status.end || status.since || !status.waits.empty()) return status;
  status.waits = !missing.empty() ? "CreateContainerConfigError"
                 : inits > 0      ? "PodInitializing"
                                  : "ContainerCreating";
  if (!missing.empty()) status.message = missing;
  return status;
}

namespace {

void add_terminated(std::string& out, const core::ContainerEnd& end, const std::string& message) {
  out += "\"terminated\":{";
  add_raw(out, "exitCode", std::to_string(end.exit_code));
  if (end.signal != 0) add_raw(out, "signal", std::to_string(end.signal));
  add(out, "reason", container_reason(end.cause, end.exit_code));
  if (!message.empty()) add(out, "message", message);
  add(out, "startedAt", time_text(end.started_at.value_or(end.ended_at)));
  add(out, "finishedAt", time_text(end.ended_at));
  out += '}';
}

}  // namespace

// `first`: the position of list[0] in PodEnd::containers.
void PodWriter::containers(std::string& out, const core::Pod& pod, std::string_view member,
                           const std::vector<core::Container>& list, size_t first,
                           const std::string& missing) const {
  out += ",\"";
  out += member;
  out += "\":[";
  for (size_t i = 0; i < list.size(); ++i) {
    const Status status = status_of(pod, first + i, missing);
    add_comma(out);
    out += '{';
    add(out, "name", list[i].name);
    out += ",\"state\":{";
    if (status.end) {
      add_terminated(out, *status.end, status.message);
    } else if (status.since) {
      out += "\"running\":{";
      add(out, "startedAt", time_text(*status.since));
      out += '}';
    } else {
      out += "\"waiting\":{";
      add(out, "reason", status.waits);
      if (!status.message.empty()) add(out, "message", status.message);
      out += '}';
    }
    out += "},\"lastState\":{";
    if (status.last) add_terminated(out, *status.last, "");
    out += '}';
    add_raw(out, "ready", status.ready ? "true" : "false");
    add_raw(out, "restartCount", std::to_string(status.restarts));
    add(out, "image", list[i].image);
    add(out, "imageID", "");
    add_raw(out, "started", status.since ? "true" : "false");
    out += '}';
  }
  out += ']';
}

const PodWriter& PodWriters::of(const core::Job& job) {
  auto it = writers_.find(job.id());
  if (it != writers_.end() && it->second->object() == job.object_ptr()) return *it->second;
  if (writers_.size() >= kMax) writers_.clear();
  auto& writer = writers_[job.id()];
  writer = std::make_unique<PodWriter>(job.object_ptr());
  return *writer;
}

}  // namespace muster::api
