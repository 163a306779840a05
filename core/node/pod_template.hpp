// PodTemplate: what all pods of a job have in common (wire::PodTemplate), and the PodPlan derived
// from it.
#pragma once

#include "core/node/confinement.hpp"
#include "core/node/values.hpp"
#include "core/spec/fields/config_maps.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/fields/process_settings.hpp"
#include "core/spec/values/inputs.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::core::node {

struct TemplateContainer {
  Container what;
  std::optional<uint64_t> memory_limit_bytes;
  std::optional<uint64_t> cpu_limit_millis;
  uint32_t cpus = 0;          // that it may have for itself (whole_cpus()); 0: none
  DeviceCounts devices;       // named resources it requests
  Confinement confinement{};  // not in permits
  bool operator==(const TemplateContainer&) const = default;
};

// A permit (trust/permit/permit.hpp) as the coordinator sent it.
struct SignedPermit {
  std::string bytes, signature;
  std::string job{};  // the bytes of its template, unless they are part of `bytes`
};
using SignedPermitPtr = std::shared_ptr<const SignedPermit>;

struct PodTemplate {
  JobId job = 0;
  int64_t generation = 0;
  std::string job_name;
  std::string job_uid;
  std::string ns;
  std::optional<uint32_t> owner_uid{};  // the job's owner; absent: users have no roles
  SignedPermitPtr permit{};             // for a keeper that runs processes as their owners
  bool indexed = false;
  std::optional<int32_t> completions;
  int32_t parallelism = 0;
  Millis grace_ms = 0;
  bool restarts = false;  // restartPolicy OnFailure
  Millis restart_delay_ms = 0;
  std::optional<Millis> active_deadline_ms{};
  std::optional<LimitSignal> signal{};     // muster.dev/signal
  std::optional<Millis> fence_after_ms{};  // muster.dev/fence-after
  size_t init_containers = 0;
  std::vector<uint16_t> sidecars{};           // PodPlan::sidecars
  std::vector<TemplateContainer> containers;  // init containers first
  StringMap labels;
  StringMap annotations;
  std::string mpi{};          // the job's annotation muster.dev/mpi; empty: not an MPI job
  InputTablePtr inputs{};     // muster.dev/inputs; null: none
  std::string inputs_file{};  // muster.dev/inputs-file; empty: none
  std::vector<Volume> volumes{};
  bool private_tmp = false;  // muster.dev/private-tmp
  ProcessSettings process{};
  // The config maps that its containers use (config_maps.hpp). Their contents are present only in a
  // template that was fetched for processes about to start (agent/run/config_desk.hpp).
  ConfigNeeds config_needs{};
  ConfigMaps configs{};
  std::string refusal{};  // why no process of it can start on this node; empty: they can
  PodPlanPtr plan;        // null: one process, never restarted, not in an MPI job
  std::string wire;       // with a plan: the message, for a restarted agent (TemplateStore)
};
using PodTemplatePtr = std::shared_ptr<const PodTemplate>;

// How many CPUs a container may have for itself: those that it requests, if that is a whole number
// and it may not use more (its limit, if any, is the same); else 0. In thousandths, as the limit,
// where 0 stands for none. As with the kubelet's static policy for CPUs.
uint32_t whole_cpus(uint64_t request_millis, uint64_t limit_millis);

// How long the prologs and epilogs of a node may take; absent: it has none.
struct HookLimits {
  std::optional<Millis> prolog_ms{}, epilog_ms{};
};

// What a node adds to every template.
struct NodeExtras {
  bool private_tmp = false;  // all pods get their own /tmp
  HookLimits hooks{};
};

// The plan for the job's pods; null if they need none.
PodPlanPtr plan_of(const PodTemplate& job, const HookLimits& hooks = {});

// Which of a pod's devices one of its containers gets. Containers that run at the same time share
// none; each init container that is no sidecar starts from the first device after the sidecars'.
DeviceMap devices_of(const PodTemplate& job, size_t container, const DeviceMap& of_pod);

}  // namespace muster::core::node
