// RegistryActor: names and ids of jobs.
//
// Owns the table of all jobs that exist, spawns a JobActor for each that is not over, and hands on
// what concerns jobs: reports, reconciling, lost nodes. Its death ends the process. A finished job
// has no actor: one is spawned from disk when somebody asks something of it, or when its time to
// live is over.
//
// Always holds: two creates of one name can't both win; a job id is durable before anything carries
// it; a report that names a job which is gone is acked (its id was reserved, and there is no such
// job).
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
struct Held {
  std::map<JobId, HeldSlots> slots;
  std::vector<NodeId> lost;
};
Held held_slots(const storage::Recovered& recovered);

// Reads a job that has no actor back from disk.
using LoadJob = std::function<storage::RecoveredJob(JobId)>;

// Tells every job of the lost nodes before anything else. `outdated`: an agent knows of more than
// our data-dir does; must not return in production.
registry_actor spawn_registry(caf::actor_system& system, journal_actor journal,
                              cluster_actor cluster, AgentLink& link, WallClock clock,
                              core::Knobs knobs, LoadJob load_job,
                              std::vector<storage::RecoveredJob> jobs, std::vector<NodeId> lost,
                              JobId next_job, std::function<void(const std::string&)> outdated,
                              uint64_t tail_bytes_min = kTailBytesMin,
                              decltype(JobSurroundings::synced) synced = nullptr);

}  // namespace muster::actors
