// PodTemplate: what all pods of a job have in common (wire::PodTemplate), and the plan for
// core::node made from it.
#pragma once

#include "core/node/values.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

struct Container {
  core::Container what;
  std::optional<uint64_t> memory_limit_bytes;
  std::optional<uint64_t> cpu_limit_millis;
  core::node::DeviceCounts devices;  // named resources it requests
};

struct PodTemplate {
  JobId job = 0;
  int64_t generation = 0;
  std::string job_name;
  std::string job_uid;
  std::string ns;
  std::optional<uint32_t> owner_uid{};  // the user that the job belongs to; absent: not told apart
  bool indexed = false;
  std::optional<int32_t> completions;
  int32_t parallelism = 0;
  Millis grace_ms = 0;
  bool restarts = false;  // restartPolicy OnFailure
  Millis restart_delay_ms = 0;
  std::optional<Millis> active_deadline_ms{};
  size_t init_containers = 0;
  std::vector<Container> containers;  // init containers first
  core::StringMap labels;
  core::StringMap annotations;
  core::node::PodPlanPtr plan;  // null: one process, never restarted
  std::string wire;             // with a plan: the message, for a restarted agent (TemplateStore)
};
using PodTemplatePtr = std::shared_ptr<const PodTemplate>;

// The plan of the job's pods; null if they need none.
core::node::PodPlanPtr plan_of(const PodTemplate& job);

// The devices of a pod that one of its containers gets. Containers that run at the same time share
// none; each init container starts from the first device.
core::node::DeviceMap devices_of(const PodTemplate& job, size_t container,
                                 const core::node::DeviceMap& of_pod);

}  // namespace muster::agent
