// ClusterActor: nodes, leases, slots, and what waits for them.
//
// The only writer of the nodes' rows. Keeps nothing durable about slots: free = registered - held,
// where what is held is granted here, returned by the jobs, and told at a start. Its death ends
// the process.
//
// Always holds: a node gets grants only between LinkUp and the loss of its link or lease; an
// incarnation that was replaced or lost never gets one again; a name belongs to one work-dir, and
// to who has its secret, until its holder was silent for a full term; nobody stops the coordinator
// who can't prove to have served it.
#pragma once

#include "actors/interfaces.hpp"
#include "core/cluster/epoch_line.hpp"

#include <caf/actor_system.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace muster::actors {

struct ClusterOptions {
  std::string cluster_id;
  std::string cluster_key;  // given to agents that register; one that has it was here before
  core::EpochLine line;     // ends with this start
  Millis node_grace_ms = 40'000;
  bool require_limits = false;  // keep pods with limits off nodes that do not enforce them
  std::function<uint64_t()> last_commit;  // highest durable commit number
  std::function<void(std::vector<core::NodeInfo>)>
      show;  // what changed about nodes that is not durable
  std::shared_ptr<const std::atomic<JobId>> next_job;  // no job has this id or a higher one
  std::function<void(const std::string&)>
      outdated;  // an agent knows more than our data-dir, and proves it: a loud stop
  // Once, when each node on record has registered with nothing that speaks against our data-dir.
  // Not called when there is none.
  std::function<void()> all_here = [] {};
};

// Slots that the open pods of a job occupy, and what each of them asks for.
struct HeldSlots {
  core::JobObjectPtr object;
  std::map<NodeId, uint32_t> slots;
};

// `registry` is asked for when it is first needed: the two know each other. `holds`: of the folded
// jobs.
cluster_actor spawn_cluster(caf::actor_system& system, journal_actor journal,
                            std::function<registry_actor()> registry, SealedLink link,
                            WallClock clock, ClusterOptions options,
                            std::vector<core::NodeInfo> nodes, std::map<JobId, HeldSlots> holds);

}  // namespace muster::actors
