// What Node is told and what it orders, as plain values (node.hpp).
//
// Instants are boot-time milliseconds.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/node/devices.hpp"
#include "core/pod_end.hpp"

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace muster::core::node {

// One process of a pod. Containers are numbered init containers first; `instance` counts restarts
// in place.
struct Step {
  uint16_t container = 0;
  uint16_t instance = 0;
  auto operator<=>(const Step&) const = default;
};

// Whose orders: `nonce` tells two coordinators apart that came to the same epoch on copies of one
// data-dir.
struct Term {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  bool operator==(const Term&) const = default;
  // Whether who has obeyed this one may obey `next`: not an earlier epoch, and not another
  // coordinator of the same one.
  bool yields_to(const Term& next) const {
    return next.epoch > epoch || (next.epoch == epoch && (nonce == 0 || nonce == next.nonce));
  }
};

// What the pods of one template go through.
struct PodPlan {
  uint16_t init_containers = 0;  // one after another, before all others
  uint16_t containers = 1;       // together
  bool restarts = false;         // restartPolicy OnFailure
  Millis restart_delay_ms = 10'000;
  Millis deadline_ms = 0;  // activeDeadlineSeconds of the pod, from its first process; 0: none
  DeviceCounts devices;    // named resources that a pod of it holds while it has a slot
  bool operator==(const PodPlan&) const = default;
};
using PodPlanPtr = std::shared_ptr<const PodPlan>;

struct Launch {
  PodId pod;
  Millis grace_ms = 0;  // between SIGTERM and SIGKILL, when the agent itself has to end it
  PodPlanPtr plan{};    // null: one process, never restarted
};

struct Kill {
  PodId pod;
  Millis grace_ms = 0;  // 0: SIGKILL at once
};

// What is known of a pod by what was noted beside one of its processes, when the agent has been
// restarted.
struct Origin {
  PodPlanPtr plan{};          // null: one process, never restarted
  Millis grace_ms = 0;        // of the pod
  Millis pod_started_at = 0;  // 0: with this process
  uint16_t level = 0;         // StartOrder::level of this process
  DeviceMapPtr devices{};
};

struct ProcessStart {
  PodId pod;
  Step step;
  int pid = 0;
  Millis at = 0;
};

struct ProcessEnd {
  PodId pod;
  Step step;
  uint64_t entry = 0;  // in the keeper's spool; 0: none
  int pid = 0;         // 0: it never started
  int exit_code = 0;
  int signal = 0;
  bool lost = false;  // its keeper died: the exit code is unknown
  std::string error;  // why it could not be started
  Millis started_at = 0;
  Millis ended_at = 0;
  bool out_of_memory = false;  // its memory limit ended it
  bool unstarted = false;      // the executor did not start it and won't, unless ordered to again
  Origin origin{};             // read only when its pod is not known
};

// A living process that the executor knows, at their (re)connect.
struct Living {
  ProcessStart process;
  Millis grace_ms = 0;
  bool killing = false;  // a kill was ordered already
  Origin origin{};       // its grace is the one above
};

struct PodStarted {
  PodId pod;
  int pid = 0;  // of the first container's newest process
  Millis at = 0;
  int32_t restarts = 0;  // in place, of all containers
  Readiness readiness = Readiness::ready;
};

using PodEnded = PodEndReport<PodId, Millis>;

struct Report {
  uint64_t id = 0;
  std::vector<PodStarted> starts;  // without those whose end is known already
  std::vector<PodEnded> ends;
};

struct StartOrder {
  PodId pod;
  Step step;
  // To be noted beside the process, so that a restarted agent goes on from there:
  uint16_t level = 0;         // restarts in a row, which make the delay before the next one
  Millis pod_started_at = 0;  // 0: this is the pod's first process
  DeviceMapPtr devices{};     // that the pod holds; null: none
  // The end of the lease: the executor must not start it then or later, whatever held them up.
  Millis not_after = 0;
};

struct KillOrder {
  PodId pod;
  Step step;
  Millis grace_ms = 0;
};

// To be carried out in this order: kills before starts.
struct Orders {
  std::vector<KillOrder> kills;
  std::vector<StartOrder> starts;
  std::vector<Report> reports;
  std::vector<uint64_t> forget;  // entries of the spool that nobody needs any more
  std::vector<PodId> over;       // nothing of these will be started any more
  Millis again_at = 0;           // ask again then, at the latest; 0: whenever something happens
};

struct Welcome {
  Term term;
  std::vector<PodId> end;  // not open for this node
  Millis lease_ms = 0;
};

}  // namespace muster::core::node
