#include "api/pod_json.hpp"

#include "api/json.hpp"
#include "api/selector.hpp"
#include "base/check.hpp"
#include "core/pod_name.hpp"
#include "core/spec/well_known.hpp"

#include <algorithm>

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

void add_members(std::string& out, std::string_view members) {
  if (members.empty()) return;
  add_comma(out);
  out += members;
}

void add_condition(std::string& out, std::string_view type, bool status, Millis at_ms,
                   std::string_view reason = {}, std::string_view message = {}) {
  add_comma(out);
  out += '{';
  add(out, "type", type);
  add(out, "status", status ? "True" : "False");
  add_raw(out, "lastProbeTime", "null");
  add(out, "lastTransitionTime", time_text(at_ms));
  if (!reason.empty()) add(out, "reason", reason);
  if (!message.empty()) add(out, "message", message);
  out += '}';
}

struct Disruption {
  std::string_view reason, message;
};

// Ends that the platform caused (job-semantics 6.5).
Disruption disruption(EndCause cause) {
  switch (cause) {
    case EndCause::keeper_lost:
      return {"TerminationByKubelet", "the node's keeper was lost, and the exit code with it"};
    case EndCause::agent_stopped:
      return {"TerminationByKubelet", "the node's agent was shut down"};
    case EndCause::node_lost:
      return {"DeletionByTaintManager", "the node was declared lost"};
    case EndCause::node_deleted:
      return {"DeletionByPodGC", "the node was deleted"};
    case EndCause::exited:
    case EndCause::killed:
    case EndCause::never_started:
    case EndCause::start_failed:
    case EndCause::fenced:
    case EndCause::deadline:
    case EndCause::out_of_memory:
      break;
  }
  return {};
}

std::string_view container_reason(const core::PodEnd& end) {
  switch (end.cause) {
    case EndCause::start_failed:
      return "StartError";
    case EndCause::out_of_memory:
      return "OOMKilled";
    case EndCause::keeper_lost:
    case EndCause::node_lost:
    case EndCause::node_deleted:
      return "ContainerStatusUnknown";
    default:
      return end.exit_code == 0 ? "Completed" : "Error";
  }
}

std::string_view pod_reason(EndCause cause) {
  switch (cause) {
    case EndCause::deadline:
      return "DeadlineExceeded";
    case EndCause::node_lost:
      return "NodeLost";
    case EndCause::agent_stopped:
      return "Terminated";
    default:
      return {};
  }
}

// Containers see their index by a variable, as Kubernetes writes it.
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

PodWriter::PodWriter(core::JobObjectPtr object) : object_(std::move(object)) {
  const core::JobMeta& meta = object_->meta;
  const core::PodTemplate& pod = object_->spec.pod;
  const bool indexed = object_->spec.indexed();
  OrderedJson labels = OrderedJson::object();
  for (const auto& [key, value] : pod.labels)
    if (!indexed || key != core::kCompletionIndexKey) labels[key] = value;
  labels_ = inner(labels);
  OrderedJson annotations = OrderedJson::object();
  for (const auto& [key, value] : pod.annotations)
    if (key != core::kCompletionIndexKey && key != core::kIndexFailureCountKey &&
        key != core::kIndexIgnoredFailureCountKey && key != "muster.dev/pid")
      annotations[key] = value;
  annotations_ = inner(annotations);
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
  const OrderedJson job = OrderedJson::parse(object_->json, nullptr, false);
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
  if (pod.stopping_ms != 0) {
    const int64_t grace = object_->spec.pod.termination_grace_s.value_or(30);
    add(out, "deletionTimestamp", time_text(pod.stopping_ms + grace * 1000));
    add_raw(out, "deletionGracePeriodSeconds", std::to_string(grace));
  }
  out += ",\"labels\":{";
  add_members(out, labels_);
  if (indexed) add(out, core::kCompletionIndexKey, index);
  out += "},\"annotations\":{";
  add_members(out, annotations_);
  if (indexed) add(out, core::kCompletionIndexKey, index);
  if (shown.job->per_index()) {
    add(out, core::kIndexFailureCountKey, std::to_string(pod.failures));
    if (pod.ignored > 0) add(out, core::kIndexIgnoredFailureCountKey, std::to_string(pod.ignored));
  }
  if (pod.pid != 0) add(out, "muster.dev/pid", std::to_string(pod.pid));
  out += '}';
  add_raw(out, "ownerReferences", owner_);
  if (pod.counted == core::Counted::not_yet) add_raw(out, "finalizers", finalizers_);
  out += '}';
}

void PodWriter::pod(std::string& out, const View& view, const Shown& shown) const {
  const core::Pod& pod = *shown.pod;
  out += R"({"kind":"Pod","apiVersion":"v1",)";
  metadata(out, shown);
  out += ",\"spec\":{";
  add_members(out, spec_);
  if (shown.job->indexed())
    add(out, "hostname", core::pod_hostname(object_->meta.name, object_->meta.uid, true, pod.key));
  if (pod.bound()) add(out, "nodeName", view.node_name(pod.node));
  out += "},";
  status(out, view, shown);
  out += '}';
}

void PodWriter::status(std::string& out, const View&, const Shown& shown) const {
  const core::Pod& pod = *shown.pod;
  const bool running = !pod.ended && pod.started_ms != 0;
  const Millis ready_ms = pod.ended ? pod.end.ended_ms : running ? pod.started_ms : pod.created_ms;
  const std::string_view not_ready = !pod.ended            ? "ContainersNotReady"
                                     : pod.end.succeeded() ? "PodCompleted"
                                                           : "PodFailed";
  out += "\"status\":{";
  add(out, "phase", phase(pod));
  out += ",\"conditions\":[";
  if (pod.ended && !disruption(pod.end.cause).reason.empty()) {
    const Disruption d = disruption(pod.end.cause);
    add_condition(out, "DisruptionTarget", true, pod.end.ended_ms, d.reason, d.message);
  }
  if (pod.bound()) {
    add_condition(out, "Initialized", true, pod.bound_ms);
    add_condition(out, "Ready", running, ready_ms, running ? std::string_view() : not_ready);
    add_condition(out, "ContainersReady", running, ready_ms,
                  running ? std::string_view() : not_ready);
    add_condition(out, "PodScheduled", true, pod.bound_ms);
  } else {
    add_condition(out, "PodScheduled", false, pod.created_ms, "Unschedulable",
                  "waiting for a free slot");
  }
  out += ']';
  if (pod.ended) {
    if (const auto reason = pod_reason(pod.end.cause); !reason.empty()) add(out, "reason", reason);
    if (!pod.end.message.empty()) add(out, "message", pod.end.message);
  }
  add(out, "hostIP", "");
  if (pod.bound()) {
    add(out, "startTime", time_text(pod.bound_ms));
    containers(out, pod);
  }
  add(out, "qosClass", "BestEffort");
  out += '}';
}

void PodWriter::containers(std::string& out, const core::Pod& pod) const {
  const bool running = !pod.ended && pod.started_ms != 0;
  out += ",\"containerStatuses\":[";
  for (const core::Container& container : object_->spec.pod.containers) {
    add_comma(out);
    out += '{';
    add(out, "name", container.name);
    out += ",\"state\":{";
    if (running) {
      out += "\"running\":{";
      add(out, "startedAt", time_text(pod.started_ms));
      out += '}';
    } else if (pod.ended && (pod.started_ms != 0 || pod.end.cause == EndCause::start_failed)) {
      out += "\"terminated\":{";
      add_raw(out, "exitCode", std::to_string(pod.end.exit_code));
      if (pod.end.signal != 0) add_raw(out, "signal", std::to_string(pod.end.signal));
      add(out, "reason", container_reason(pod.end));
      if (!pod.end.message.empty()) add(out, "message", pod.end.message);
      add(out, "startedAt", time_text(pod.started_ms != 0 ? pod.started_ms : pod.end.ended_ms));
      add(out, "finishedAt", time_text(pod.end.ended_ms));
      out += '}';
    } else {
      out += R"("waiting":{"reason":"ContainerCreating"})";
    }
    out += "},\"lastState\":{}";
    add_raw(out, "ready", running ? "true" : "false");
    add_raw(out, "restartCount", std::to_string(pod.restarts));
    add(out, "image", container.image);
    add(out, "imageID", "");
    add_raw(out, "started", running ? "true" : "false");
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
