// RegistryActor: the way to every job.
//
// Owns the registry of all jobs that exist (core/registry/registry.hpp), which decides what this
// actor does: spawns a JobActor for each job that is not over, and forwards requests, reports,
// registrations and losses of nodes to the jobs. Its death ends the process. A finished job has no
// actor: it is loaded from disk for a request, or when its TTL expires.
//
// Invariants: a job id is durable before anything uses it; a job has at most one actor, counting
// one that was asked to stop; a report that names a job that is gone is acknowledged (its id was
// issued, and there is no such job), unless the job is quarantined.
//
// A job whose rows can't be read is quarantined: its name stays taken, requests to it fail with the
// reason, and agents neither end its pods nor get their ends acknowledged.
#pragma once

#include "actors/cluster_actor.hpp"
#include "actors/interfaces.hpp"
#include "actors/job_actor.hpp"
#include "storage/recovery.hpp"

#include <caf/actor_system.hpp>

#include <unordered_map>

namespace muster::actors {

// Where the open pods of all jobs are, and which of these nodes are gone: a crash may have come
// after the loss of a node was recorded and before its jobs recorded it.
struct HeldAtStart {
  std::map<JobId, HeldSlots> slots;
  std::vector<NodeId> lost;
};
HeldAtStart held_slots(const storage::Recovered& recovered);

// Loads a job that has no actor from disk; an error quarantines it.
using LoadJob = std::function<Result<storage::RecoveredJob>(JobId)>;

// The recovered state. Every job is notified of the lost nodes before anything else.
struct RegistryStart {
  std::vector<storage::RecoveredJob> jobs;
  std::vector<storage::DamagedJob> damaged;
  std::vector<core::JobSummary> unloaded;
  std::vector<NodeId> lost;
  JobId next_job = 1;
};

struct RegistryOptions {
  WallClock clock;
  ElapsedClock elapsed;
  core::Knobs knobs;
  LoadJob load_job;
  // Kept at the next id to issue.
  std::shared_ptr<std::atomic<JobId>> next_job = std::make_shared<std::atomic<JobId>>();
  uint64_t finished_jobs_max = UINT64_MAX;  // to keep; the oldest beyond it are deleted
  uint64_t tail_bytes_min = kTailBytesMin;
  bool history = true;  // see JobSurroundings
  decltype(JobSurroundings::synced) synced = nullptr;
  std::shared_ptr<WaitingPods> waiting = std::make_shared<WaitingPods>();
};

registry_actor spawn_registry(caf::actor_system& system, journal_actor journal,
                              cluster_actor cluster, SealedLink link, RegistryStart start,
                              RegistryOptions options);

}  // namespace muster::actors
