// JobSpec: what a user requested, as plain values (batch/v1 Job; job-semantics 1.1 to 1.4).
//
// Parsed from JSON at the edge of the API (api/kube/objects/manifest.hpp), completed by
// defaults.hpp, checked by validation.hpp. Values are kept as written, even invalid ones, so that
// validation can report all of them at once. Fields without meaning for a process are omitted; they
// remain in the owner's JSON text, which the API returns.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/spec/fields/owner_ref.hpp"
#include "core/spec/values/volumes.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::core {

using StringMap = std::map<std::string, std::string>;

// A key of a secret: a file of the job's owner on the node.
struct SecretRef {
  std::string name, key;
  bool optional = false;  // it may be missing; then so is the variable
  bool operator==(const SecretRef&) const = default;
};

// A key of a config map.
struct ConfigKeyRef {
  std::string name, key;
  bool optional = false;  // either may be missing; then so is the variable
  bool operator==(const ConfigKeyRef&) const = default;
};

// How much a container of the pod requests or may use.
struct ResourceRef {
  std::string container;  // name; empty: the one with the variable
  std::string resource;   // limits.cpu, requests.memory, …
  std::string divisor;    // a quantity; empty or 0: 1
  bool operator==(const ResourceRef&) const = default;
};

struct EnvVar {
  std::string name;
  std::string value;                      // unless it comes from one of the following
  std::string field_path;                 // valueFrom.fieldRef.fieldPath; empty: none
  std::optional<SecretRef> secret{};      // valueFrom.secretKeyRef
  std::optional<ConfigKeyRef> config{};   // valueFrom.configMapKeyRef
  std::optional<ResourceRef> resource{};  // valueFrom.resourceFieldRef
  bool operator==(const EnvVar&) const = default;
};

// Each key of a config map's data as a variable (envFrom).
struct EnvSource {
  std::string prefix, config_map;
  bool optional = false;  // it may be missing
  bool operator==(const EnvSource&) const = default;
};

struct Resources {
  StringMap requests;  // resource name -> quantity as written ("500m", "1Gi")
  StringMap limits;
  bool operator==(const Resources&) const = default;
};

// The user and the privileges of processes. A container's settings override the pod's.
struct SecurityContext {
  std::optional<int64_t> run_as_user{}, run_as_group{};
  std::optional<bool> run_as_non_root{};
  // For containers only:
  std::optional<bool> escalation{};                 // allowPrivilegeEscalation
  std::vector<std::string> dropped_capabilities{};  // ALL, NET_RAW, …
  bool operator==(const SecurityContext&) const = default;
};

struct Container {
  std::string name;
  std::string image;  // stored, never pulled
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::string working_dir;
  std::vector<EnvVar> env;
  Resources resources;
  std::vector<VolumeMount> volume_mounts{};
  std::vector<EnvSource> env_from{};
  SecurityContext security{};
  bool sidecar = false;  // of an init container: restartPolicy Always
  bool operator==(const Container&) const = default;
};

struct Toleration {
  std::string key, op, value, effect;  // op: Exists or Equal (also when empty)
  std::optional<int64_t> seconds;
  bool operator==(const Toleration&) const = default;
};

struct SelectorRequirement {
  std::string key, op;
  std::vector<std::string> values;
  bool operator==(const SelectorRequirement&) const = default;
};

// Requirements, all of which a node must meet (v1 NodeSelectorTerm).
struct NodeTerm {
  std::vector<SelectorRequirement> labels;
  std::vector<SelectorRequirement> fields;  // metadata.name is the only field
  bool operator==(const NodeTerm&) const = default;
};

struct PreferredNodes {
  int32_t weight = 0;
  NodeTerm nodes;
  bool operator==(const PreferredNodes&) const = default;
};

// v1 NodeAffinity.
struct NodeAffinity {
  std::optional<std::vector<NodeTerm>> required{};  // any of these; absent: any node
  std::vector<PreferredNodes> preferred{};
  bool operator==(const NodeAffinity&) const = default;
};

struct PodTemplate {
  StringMap labels;
  StringMap annotations;
  std::vector<std::string> finalizers;
  std::string restart_policy;  // Never, OnFailure, or whatever was written
  std::vector<Container> init_containers;
  std::vector<Container> containers;
  std::vector<Volume> volumes{};
  std::optional<int64_t> termination_grace_s;  // default 30 (defaults.hpp)
  std::optional<int64_t> active_deadline_s;    // 1…2147483647
  StringMap node_selector;
  std::vector<Toleration> tolerations;
  std::vector<std::string> scheduling_gates;  // names; no pod is bound while there are any
  std::string priority_class_name;
  std::optional<int32_t> priority;
  std::string node_name{};  // the only node for the pods; empty: any
  NodeAffinity node_affinity{};
  SecurityContext security{};
  std::string service_account{};  // a name without meaning here
  std::string kept;  // canonical JSON of the fields not parsed, so that an update detects changes
  bool operator==(const PodTemplate&) const = default;
};

struct OnExitCodes {
  std::optional<std::string> container_name;  // absent: any
  std::string op;                             // In, NotIn
  std::vector<int32_t> values;
  bool operator==(const OnExitCodes&) const = default;
};

struct PodConditionPattern {
  std::string type;
  std::string status;
  bool operator==(const PodConditionPattern&) const = default;
};

struct FailureRule {
  std::string action;  // Ignore, FailJob, FailIndex, Count
  std::optional<OnExitCodes> on_exit_codes;
  std::vector<PodConditionPattern> on_pod_conditions;
  bool operator==(const FailureRule&) const = default;
};

struct FailurePolicy {
  std::vector<FailureRule> rules;
  bool operator==(const FailurePolicy&) const = default;
};

struct SuccessRule {
  std::optional<std::string> succeeded_indexes;
  std::optional<int32_t> succeeded_count;
  bool operator==(const SuccessRule&) const = default;
};

struct SuccessPolicy {
  std::vector<SuccessRule> rules;
  bool operator==(const SuccessPolicy&) const = default;
};

struct LabelSelector {
  StringMap match_labels;
  std::vector<SelectorRequirement> match_expressions;
  bool operator==(const LabelSelector&) const = default;
};

struct JobSpec {
  std::optional<int32_t> parallelism;
  std::optional<int32_t> completions;
  std::string completion_mode;  // NonIndexed, Indexed
  std::optional<int32_t> backoff_limit;
  std::optional<int32_t> backoff_limit_per_index;
  std::optional<int32_t> max_failed_indexes;
  std::optional<FailurePolicy> pod_failure_policy;
  std::optional<SuccessPolicy> success_policy;
  std::optional<int64_t> active_deadline_s;
  std::optional<int32_t> ttl_s;
  std::optional<bool> suspend;
  std::string pod_replacement_policy;  // TerminatingOrFailed, Failed
  std::optional<std::string> managed_by;
  std::optional<bool> manual_selector;
  std::optional<LabelSelector> selector;
  PodTemplate pod;

  bool indexed() const { return completion_mode == "Indexed"; }
  bool replace_only_failed() const { return pod_replacement_policy == "Failed"; }
  bool operator==(const JobSpec&) const = default;
};

struct JobMeta {
  std::string name;
  std::string generate_name;
  std::string ns;   // namespace
  std::string uid;  // RFC 4122 text
  StringMap labels;
  StringMap annotations;
  std::vector<std::string> finalizers;
  std::vector<OwnerRef> owners{};
  int64_t generation = 1;
  Millis created_ms = 0;
  bool operator==(const JobMeta&) const = default;
};

// What the owner wrote, completed by defaults: the parsed values and the JSON text that the API
// returns (metadata without resourceVersion, and spec; never status). Immutable once built; a
// change makes a new one.
struct JobObject {
  JobMeta meta;
  JobSpec spec;
  std::string json;
  // What an operator gave this job (core::placed_object): its template's priority; its queue or
  // time limit, which then does not have to be one that the queue allows. Never stored.
  bool priority_given = false, queue_given = false, time_given = false;
};
using JobObjectPtr = std::shared_ptr<const JobObject>;

}  // namespace muster::core
