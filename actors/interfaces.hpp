// Interfaces: the typed actors and the messages that each accepts. Start here. (HistoryActor, which
// only cleans up, declares its own in history_actor.hpp.)
//
//   RegistryActor  names and ids of jobs; spawns their actors, forwards messages to them
//   JobActor       owns a core::Job; the only writer of its records; supervises its index actors
//   IndexActor     ends pods of one index: repeats their kills until they have ended
//   ClusterActor   nodes, leases, slots, jobs waiting for slots; the only writer of the nodes' rows
//   KeptActor      objects stored for clients; the only writer of their rows
//   JournalActor   group commit
//
// Everything that an actor sends out of the process goes through its gate (gate.hpp).
//
// Actors are stopped by message, top down (stop_atom). The death of any actor but an index actor
// ends the process.
#pragma once

#include "actors/agent_link.hpp"
#include "actors/messages.hpp"
#include "base/clock.hpp"

#include <caf/typed_actor.hpp>

namespace muster::actors {

using journal_actor =
    caf::typed_actor<caf::reacts_to<Append>,       // write, batched with other appends
                     caf::reacts_to<commit_atom>,  // to itself: the mailbox was drained, so commit
                     caf::reacts_to<begin_atom>,   // deferred appends may be written
                     caf::reacts_to<stop_atom>>;

using index_actor =
    caf::typed_actor<caf::reacts_to<FollowKill>,  // kill its pod, repeatedly until it has ended
                     caf::reacts_to<FollowEnd>,   // its pod has durably ended; quits after the last
                     caf::reacts_to<wake_atom, uint64_t>>;  // to itself: repeat the kills

using job_actor = caf::typed_actor<
    caf::reacts_to<JobReport>,      // starts and ends of its pods; acknowledged when durable
    caf::reacts_to<JobDelete>,      // the owner deletes it
    caf::reacts_to<JobAsk>,         // the owner changes it or its pods
    caf::reacts_to<Preempt>,        // from the cluster: some of its pods are preempted
    caf::reacts_to<LeaveNodes>,     // from the cluster: its pods must leave these nodes
    caf::reacts_to<JobReconcile>,   // a node registers with these pods of the job
    caf::reacts_to<NodeReadyNow>,   // launches and kills may be sent (again) to that node
    caf::reacts_to<NodeIsLost>,     // pods bound there are lost
    caf::reacts_to<Granted>,        // slots for its pods
    caf::reacts_to<HasNowhere>,     // from the cluster: no node is left that might start its pods
    caf::reacts_to<ReturnSlots>,    // from the cluster: its next pods may not reuse freed slots
    caf::reacts_to<JobHears>,       // an agent answers which pods have ended there
    caf::reacts_to<HasDependents>,  // from the registry: who waits for its end
    caf::reacts_to<sync_atom>,      // to itself: decide on everything that arrived
    caf::reacts_to<durable_atom, uint64_t, uint64_t>,  // from the journal
    caf::reacts_to<wake_atom, uint64_t>,               // to itself: the timer for an instant fired
    caf::reacts_to<stop_atom>>;

using registry_actor = caf::typed_actor<
    caf::reacts_to<CreateJob>, caf::reacts_to<DeleteJob>, caf::reacts_to<AskJob>,
    caf::reacts_to<Report>,          // from agents, through the RPC thread
    caf::reacts_to<Reconcile>,       // from the cluster: ask every job
    caf::reacts_to<NodeReadyNow>,    // from the cluster: notify every job
    caf::reacts_to<NodeIsLost>,      // likewise
    caf::reacts_to<JobHears>,        // from the RPC thread: forward to the job
    caf::reacts_to<JobIsOver>,       // from a job: its actor may stop
    caf::reacts_to<JobIsHidden>,     // from a job: its name is free
    caf::reacts_to<JobHasAdvanced>,  // from a job: how far its indexes are
    caf::reacts_to<JobIsResized>,    // from a job: how many indexes it has
    caf::reacts_to<DependentKnows>,  // to itself: a job has recorded the end of another one
    // From the journal, for the gate: number of the append, and the commit.
    caf::reacts_to<durable_atom, uint64_t, uint64_t>,
    caf::reacts_to<sync_atom, uint64_t>,  // to itself: the job that holds a name has answered
    caf::reacts_to<wake_atom, uint64_t>,  // to itself: a finished job is due to be loaded
    caf::reacts_to<stop_atom>>;

using cluster_actor = caf::typed_actor<
    caf::reacts_to<RegisterAgent>, caf::reacts_to<LinkUp>, caf::reacts_to<LinkDown>,
    caf::reacts_to<Heartbeat>, caf::reacts_to<AgentLeaves>, caf::reacts_to<QueuesChanged>,
    caf::reacts_to<Want, job_actor>,  // from a job
    caf::reacts_to<Freed>,            // from a job
    caf::reacts_to<JobLeft>,          // from the registry: it no longer holds slots
    caf::reacts_to<ChangeNode>, caf::reacts_to<DeleteNode>, caf::reacts_to<EndUnknownPods>,
    caf::reacts_to<durable_atom, uint64_t, uint64_t>,  // from the journal
    caf::reacts_to<sync_atom, uint64_t>,               // the jobs have answered a registration
    caf::reacts_to<place_atom>,                        // to itself: hand out free slots
    caf::reacts_to<beat_atom>,                         // to itself: a tick of the leases
    caf::reacts_to<stop_atom>>;

using kept_actor =
    caf::typed_actor<caf::reacts_to<WriteKept>,
                     caf::reacts_to<durable_atom, uint64_t, uint64_t>,  // from the journal
                     caf::reacts_to<wake_atom>,  // to itself: remove old events
                     caf::reacts_to<stop_atom>>;

}  // namespace muster::actors
