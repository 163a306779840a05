// ClusterActor: nodes, leases, slots, and the jobs that wait for slots.
//
// The only writer of the nodes' rows. All rules are in core/cluster: each message is an event for
// its decide(); this actor has the mailbox, the timers and the gate, and carries the effects out.
// Stores nothing about slots: free = registered - held, where held slots are granted here, freed by
// the jobs, and passed in at start. Its death ends the process.
#pragma once

#include "actors/interfaces.hpp"
#include "core/cluster/fold/cluster.hpp"

#include <caf/actor_system.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace muster::actors {

struct ClusterOptions {
  core::cluster::Settings settings;
  std::function<uint64_t()> last_commit;              // highest durable commit number
  std::function<void(const core::NodeHealth&)> show;  // to the read model
  std::function<void(const core::cluster::ShowShares&)> show_shares = [](const auto&) {};
  std::shared_ptr<const std::atomic<JobId>> next_job;  // no job has this id or a higher one
  std::function<void(const std::string&)>
      outdated;  // called when an agent proves that it knows more than our data-dir
  // Called once, when every node on record has registered without contradicting our data-dir. Not
  // called if there are no such nodes.
  std::function<void()> all_here = [] {};
};

// Slots that the open pods of a job occupy, and its object, which says what each of them requests.
struct HeldSlots {
  core::JobObjectPtr object;
  std::map<NodeId, uint32_t> slots;
};

// `registry` is called when first needed, since the two actors refer to each other. `holds`: slots
// of the recovered jobs, by in_steps().
cluster_actor spawn_cluster(caf::actor_system& system, journal_actor journal,
                            std::function<registry_actor()> registry, SealedLink link,
                            WallClock clock, ClusterOptions options,
                            std::vector<core::NodeInfo> nodes, std::map<JobId, HeldSlots> holds);

}  // namespace muster::actors
