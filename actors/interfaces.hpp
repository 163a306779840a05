// Interfaces: every typed actor of the system, one comment a message. Open this first.
//
//   RegistryActor  names and ids of jobs, spawns their actors, hands on what concerns jobs
//   JobActor       owns a core::Job; the only writer of its records; supervises its index actors
//   IndexActor     follows the pods of one index from bind to ack; durable nothing
//   ClusterActor   nodes, leases, slots, what waits for them; the only writer of the nodes' records
//   KeptActor      objects that clients keep here; the only writer of their rows
//   JournalActor   group commit
//
// What an actor lets out goes through its gate (gate.hpp)
//
// Stopping goes by message, top down (stop_atom). The death of any actor but an index actor ends
// the process.
#pragma once

#include "actors/agent_link.hpp"
#include "actors/messages.hpp"
#include "base/clock.hpp"

#include <caf/typed_actor.hpp>

namespace muster::actors {

using journal_actor =
    caf::typed_actor<caf::reacts_to<Append>,       // write with what else arrived meanwhile
                     caf::reacts_to<commit_atom>,  // to itself: all that was in the mailbox is in
                                                   // the batch
                     caf::reacts_to<begin_atom>,   // what was held back may be written
                     caf::reacts_to<stop_atom>>;

using index_actor = caf::typed_actor<
    caf::reacts_to<FollowLaunch>,  // its pod is bound, durably: have it launched
    caf::reacts_to<FollowKill>,    // its pod is to end: have it killed, again and again
    caf::reacts_to<FollowEnd>,     // its pod has ended, durably; with the last one the actor goes
    caf::reacts_to<wake_atom, uint64_t>>;  // to itself: ask for the kill again

using job_actor = caf::typed_actor<
    caf::reacts_to<JobReport>,     // starts and ends of its pods; acked when durable
    caf::reacts_to<JobDelete>,     // the owner deletes it
    caf::reacts_to<JobAsk>,        // the owner changes it or its pods
    caf::reacts_to<Preempt>,       // from the cluster: pods of it give way
    caf::reacts_to<LeaveNodes>,    // from the cluster: its pods must leave these nodes
    caf::reacts_to<JobReconcile>,  // a node registers with these pods of it
    caf::reacts_to<NodeReadyNow>,  // launches and kills may be sent (again) to that node
    caf::reacts_to<NodeIsLost>,    // what was bound there is lost
    caf::reacts_to<Granted>,       // slots for its pods
    caf::reacts_to<JobHears>,      // an agent answers what has ended there
    caf::reacts_to<sync_atom>,     // to itself: decide on all that arrived
    caf::reacts_to<durable_atom, uint64_t, uint64_t>,  // from the journal, for the gate
    caf::reacts_to<wake_atom, uint64_t>,               // to itself: an instant that was waited for
    caf::reacts_to<stop_atom>>;

using registry_actor =
    caf::typed_actor<caf::reacts_to<CreateJob>, caf::reacts_to<DeleteJob>, caf::reacts_to<AskJob>,
                     caf::reacts_to<Report>,        // from agents, through the RPC thread
                     caf::reacts_to<Reconcile>,     // from the cluster: ask every job
                     caf::reacts_to<NodeReadyNow>,  // from the cluster: tell every job
                     caf::reacts_to<NodeIsLost>,    // likewise
                     caf::reacts_to<JobHears>,      // from the RPC thread: on to the job
                     caf::reacts_to<JobIsOver>,     // from a job: its actor may go
                     caf::reacts_to<JobIsHidden>,   // from a job: its name is free
                     // From the journal, for the gate: number of the append, and the commit.
                     caf::reacts_to<durable_atom, uint64_t, uint64_t>,
                     caf::reacts_to<sync_atom, uint64_t>,  // to itself: a job that was asked about
                                                           // its name has answered
                     caf::reacts_to<wake_atom, uint64_t>,  // to itself: a finished job is wanted
                     caf::reacts_to<stop_atom>>;

using cluster_actor =
    caf::typed_actor<caf::reacts_to<RegisterAgent>, caf::reacts_to<LinkUp>,
                     caf::reacts_to<LinkDown>, caf::reacts_to<Heartbeat>,
                     caf::reacts_to<AgentLeaves>, caf::reacts_to<Want, job_actor>,  // from a job
                     caf::reacts_to<Freed>,                                         // from a job
                     caf::reacts_to<JobLeft>,  // from the registry: it holds nothing any more
                     caf::reacts_to<ChangeNode>, caf::reacts_to<DeleteNode>,
                     caf::reacts_to<durable_atom, uint64_t, uint64_t>,  // from the journal
                     caf::reacts_to<sync_atom, uint64_t>,  // the jobs have answered a registration
                     caf::reacts_to<place_atom>,           // to itself: hand out free slots
                     caf::reacts_to<beat_atom>,            // to itself: a tick of the leases
                     caf::reacts_to<stop_atom>>;

using kept_actor =
    caf::typed_actor<caf::reacts_to<WriteKept>,
                     caf::reacts_to<durable_atom, uint64_t, uint64_t>,  // from the journal: what
                                                                        // was asked, and the commit
                     caf::reacts_to<wake_atom>,                         // to itself: old events go
                     caf::reacts_to<stop_atom>>;

}  // namespace muster::actors
