// RegistryActor: names and ids of jobs.
//
// Owns the table of all jobs that exist, spawns a JobActor for each that is not over, and hands on
// what concerns jobs: reports, reconciling, lost nodes. Its death ends the process. A finished job
// has no actor: one is spawned from disk when somebody asks something of it, or when its time to
// live is over.
//
// Always holds: two creates of one name can't both win; a job id is durable before anything carries
// it; a report that names a job which is gone is acked (its id was reserved, and there is no such
// job), unless the job is quarantined.
//
// A job whose rows can't be read is quarantined: its name stays taken, whatever is asked of it is
// answered with the damage, and agents are told neither to end its pods nor that their ends were
// taken.
#pragma once

#include "actors/cluster_actor.hpp"
#include "actors/interfaces.hpp"
#include "actors/job_actor.hpp"
#include "storage/recovery.hpp"

#include <caf/actor_system.hpp>

#include <unordered_map>

namespace muster::actors {

// Where the open pods of all jobs are, and which of these nodes are gone: a crash may have come
// between the loss of a node and its jobs' learning of it.
struct HeldAtStart {
  std::map<JobId, HeldSlots> slots;
  std::vector<NodeId> lost;
};
HeldAtStart held_slots(const storage::Recovered& recovered);

// Reads a job that has no actor back from disk; an error sets it aside.
using LoadJob = std::function<Result<storage::RecoveredJob>(JobId)>;

// What was there at the start. Every job is told of the lost nodes before anything else.
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
  std::shared_ptr<std::atomic<JobId>> next_job;  // told of each id that is given; may be null
  uint64_t finished_jobs_max = UINT64_MAX;       // that are kept; the oldest are deleted beyond it
  uint64_t tail_bytes_min = kTailBytesMin;
  decltype(JobSurroundings::synced) synced = nullptr;
};

registry_actor spawn_registry(caf::actor_system& system, journal_actor journal,
                              cluster_actor cluster, SealedLink link, RegistryStart start,
                              RegistryOptions options);

}  // namespace muster::actors
