// The inputs and outputs of Node (node.hpp), as plain values.
//
// Instants are boot-time milliseconds.
#pragma once

#include "base/clock.hpp"
#include "core/ids.hpp"
#include "core/node/cpus.hpp"
#include "core/node/devices.hpp"
#include "core/pod_end.hpp"
#include "core/spec/fields/limit_signal.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::core::node {

constexpr size_t kHelloEndsMax = 10'000;  // ends of an earlier agent in a registration
constexpr size_t kListMax = 512;          // entries of one list of orders, starts or ends

// One process of a pod. Containers are numbered init containers first; `instance` counts restarts
// in place.
struct Step {
  uint16_t container = 0;
  uint16_t instance = 0;
  auto operator<=>(const Step&) const = default;
};

// The site's programs around a pod (docs/decisions/0089-hooks.md) are processes of it, with numbers
// that no container has: the prolog before all others, the epilog after them.
constexpr uint16_t kProlog = 0x4000, kEpilog = 0x4001;
// What their outputs are named after, which no container can be.
constexpr const char* kPrologLog = "_prolog";
constexpr const char* kEpilogLog = "_epilog";
constexpr bool is_hook(uint16_t container) {
  return container == kProlog || container == kEpilog;
}

// Identifies the coordinator behind an order: `nonce` distinguishes two coordinators that reached
// the same epoch on copies of one data-dir.
struct Term {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  bool operator==(const Term&) const = default;
  // Whether a node that has obeyed this term may obey `next`: not if it is an earlier epoch or
  // another coordinator of the same epoch.
  bool yields_to(const Term& next) const {
    return next.epoch > epoch || (next.epoch == epoch && (nonce == 0 || nonce == next.nonce));
  }
};

// How the containers of a template's pods run.
struct PodPlan {
  uint16_t init_containers = 0;  // one after another, before all others
  // Init containers that are sidecars, in ascending order: the next one starts once they have
  // started, and they are ended when all others have ended for good.
  std::vector<uint16_t> sidecars{};
  uint16_t containers = 1;  // run together
  bool restarts = false;    // restartPolicy OnFailure
  Millis restart_delay_ms = 10'000;
  std::optional<Millis> deadline_ms{};  // activeDeadlineSeconds of the pod, from its first process
  std::optional<LimitSignal> signal{};  // before that
  // After this long without contact with the coordinator, the executor ends the pod on its own.
  std::optional<Millis> fence_after_ms{};
  // How long its prolog and its epilog may take; absent: it has none.
  std::optional<Millis> prolog_ms{}, epilog_ms{};
  DeviceCounts devices;  // named resources that the pod holds while it has a slot
  bool operator==(const PodPlan&) const = default;
};
using PodPlanPtr = std::shared_ptr<const PodPlan>;

struct Launch {
  PodId pod;
  Millis grace_ms = 0;  // between SIGTERM and SIGKILL, if the agent itself ends the pod
  PodPlanPtr plan{};    // null: one process, never restarted
};

// In place of PodPlan::deadline_ms.
struct Limit {
  PodId pod;
  std::optional<Millis> limit_ms{};  // absent: none
};

struct Kill {
  PodId pod;
  Millis grace_ms = 0;  // 0: SIGKILL at once
};

// What a restarted agent knows about a pod: the note stored with one of its processes.
struct Origin {
  PodPlanPtr plan{};                       // null: one process, never restarted
  Millis grace_ms = 0;                     // of the pod
  std::optional<Millis> pod_started_at{};  // absent: when this process started
  uint16_t level = 0;                      // StartOrder::level of this process
  DeviceMapPtr devices{};
  Usage used{};                    // StartOrder::used of this process
  std::optional<EndCause> stop{};  // likewise
};

struct ProcessStart {
  PodId pod;
  Step step;
  int pid = 0;
  Millis at = 0;
  CpuList cpus{};  // that it has for itself; empty: it is not bound, or has ended
};

struct ProcessEnd {
  PodId pod;
  Step step;
  std::optional<uint64_t> entry{};         // in the keeper's spool
  std::optional<StartOf<Millis>> start{};  // absent: not known to have started
  int exit_code = 0;
  int signal = 0;
  bool lost = false;  // its keeper died: the exit code is unknown
  std::string error;  // why it could not be started
  Millis ended_at = 0;
  bool out_of_memory = false;  // killed at its memory limit
  bool fenced = false;         // ended by the executor (PodPlan::fence_after_ms)
  bool unstarted = false;      // the executor did not start it, and will not until ordered again
  Usage used{};
  Origin origin{};  // used only if the pod is unknown

  // It could not be started for a reason of this node: one that concerns any process
  // (node_fault), or this job's only.
  bool node_fault() const { return unstarted && exit_code == kExitNotHere; }
  bool not_here() const { return !unstarted && !lost && !start && exit_code == kExitNotHere; }
};

// Why a hook has failed, as one line; empty: it has not. `error` of its end is the last line that
// it wrote, if it has started.
std::string hook_failure(const ProcessEnd& end, std::optional<Millis> limit_ms);

// A live process that the executor knows when it (re)connects.
struct Living {
  PodId pod;
  Step step;
  std::optional<StartOf<Millis>> start{};  // absent: the executor has the order and will start it
  Millis grace_ms = 0;
  bool killing = false;  // a kill was already ordered
  Origin origin{};       // its grace_ms is not used; the one above is
  bool queued = false;   // its order is a queued one
  CpuList cpus{};        // as in ProcessStart
};

struct PodStarted {
  PodId pod;
  std::optional<int> pid{};  // of the first container's newest process; absent: none has started
  Millis at = 0;
  int32_t restarts = 0;  // in place, of all containers
  Readiness readiness = Readiness::ready;
  // Init containers first, in the order of the template. Empty: one container, never restarted.
  std::vector<ContainerNowOf<BootInstant>> containers{};
  std::string cpus{};  // that its running processes have for themselves, as "0-3,8"; empty: none
};

using PodEnded = PodEndReport<PodId, BootInstant>;

struct Report {
  uint64_t id = 0;
  std::vector<PodStarted> starts;  // except pods whose end is already known
  std::vector<PodEnded> ends;
};

struct StartOrder {
  PodId pod;
  Step step;
  // Stored with the process, so that a restarted agent can continue from there:
  uint16_t level = 0;                      // consecutive restarts; they determine the next delay
  std::optional<Millis> pod_started_at{};  // absent: this is the pod's first process
  DeviceMapPtr devices{};                  // held by the pod; null: none
  Usage used{};                            // by earlier processes of its container
  std::optional<EndCause> stop{};          // of an epilog: why the pod was ordered to end
  // End of the lease, or of the pod's time without contact (PodPlan::fence_after_ms) if that is
  // earlier: the executor must not start the process then or later, whatever the delay.
  Millis not_after = 0;
  // The executor starts queued orders in the order in which it got them, as long as fewer of their
  // processes are alive than there is room for (Orders::room).
  bool queued = false;
};

struct KillOrder {
  PodId pod;
  Step step;
  Millis grace_ms = 0;
};

struct SignalOrder {
  PodId pod;
  Step step;
  int number = 0;
  bool first_only = false;  // else the process's group
};

// Carried out in this order: kills before starts.
struct Orders {
  // When contact with the coordinator was last proven, if that has changed
  // (PodPlan::fence_after_ms).
  std::optional<Millis> contact_at{};
  std::vector<KillOrder> kills;
  std::vector<SignalOrder> signals;
  std::optional<uint32_t> room{};  // if it changed: maximum live processes of queued orders
  std::vector<PodId> withdrawn;    // queued orders to drop, unless they have been started
  std::vector<StartOrder> starts;
  std::vector<Report> reports;
  std::vector<uint64_t> forget;      // spool entries that are no longer needed
  std::vector<PodId> over;           // pods that will start nothing more
  std::optional<Millis> again_at{};  // call next() again by then; absent: after the next event
};

struct Welcome {
  Term term;
  std::vector<PodId> end;  // not open on this node
  Millis lease_ms = 0;
};

}  // namespace muster::core::node
