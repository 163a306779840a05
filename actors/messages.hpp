// Messages: the plain structs that actors send each other. They never leave the process and are
// cheap to copy.
#pragma once

#include "actors/durable.hpp"
#include "base/result.hpp"
#include "core/cluster/fold/effect.hpp"
#include "core/cluster/fold/event.hpp"
#include "core/job/facts/effect.hpp"
#include "core/job/facts/event.hpp"
#include "core/job/fold/batch.hpp"
#include "core/kept.hpp"
#include "core/quick_ends.hpp"
#include "core/spec/values/steps.hpp"
#include "core/trust.hpp"
#include "storage/journal/journal.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/type_id.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::actors {

// To the journal: rows of one writer. `done` runs on the journal's thread once they are durable and
// have been sent to the read model.
struct Append {
  std::vector<storage::Row> rows;
  std::shared_ptr<const core::JobRecords> records;  // for the read model; may be null
  std::vector<core::NodeInfo> nodes;                // likewise
  // Likewise, but the journal actor builds their rows, since their version is the number of the
  // commit; `rows` contains none of them.
  std::vector<core::KeptChange> kept;
  std::function<void(uint64_t commit)> done;
  bool may_wait = false;  // enough is in flight that this append should share a sync (ADR 51)
};

// To the registry: a validated job to store. `done` is called on some actor's thread.
struct CreateJob {
  core::JobObjectPtr object;
  Reply<Status> done;
};

struct DeleteJob {
  std::string ns, name, uid;  // uid empty: any
  bool background = true;
  bool orphan = false;  // implies background: the pods keep running
  Reply<Status> done;
};

// To the registry: an owner's request about an existing job. `event` is one of those that core
// answers by token (OwnerUpdate, PodsDeletion, PodConditionsWrite, StatusWrite); the JobActor sets
// the token. `done` is called on some actor's thread: not_found, conflict, or done and durable.
struct AskJob {
  std::string ns, name, uid;  // uid empty: any. Name empty: the job `id`, even if hidden
  JobId id = 0;
  core::Event event;
  Reply<Status> done;
};

// To the registry: an agent's report, split by job. `done` is called once every end in it is on
// disk, except for those passed to it: their jobs are quarantined, so the agent must keep them.
struct Report {
  NodeId node = kNoNode;
  std::map<JobId, core::PodsReported> jobs;
  Reply<std::vector<PodId>> done;  // ends that the agent must keep
};

// From the registry to a job.
struct JobReport {
  core::PodsReported report;
  CountdownPtr ack;
};

struct JobDelete {
  bool background = true;
  bool orphan = false;
  CountdownPtr ack;
};

// From the registry to a job.
struct JobAsk {
  core::Event event;
  Reply<Status> done;
};

// From the cluster to the registry, which forwards it to the jobs: an incarnation registers with
// the pods it knows. Each job answers on its own thread with the pods that the agent must end.
struct Reconcile {
  NodeId node = kNoNode;
  uint64_t link = 0;
  std::map<JobId, std::set<PodKey>> known;
  bool restored = false;               // its pods are from before a restore
  Reply<std::vector<PodId>> answered;  // pods to end; called once, when every job has answered
};
struct JobReconcile {
  NodeId node = kNoNode;
  uint64_t link = 0;
  std::set<PodKey> known;
  bool restored = false;
  Reply<std::vector<PodKey>> answered;  // pods to end
};

using core::cluster::NodeIsLost;
using core::cluster::NodeReadyNow;

// A node's answer to a job's question (core::AskNodes): which of the job's pods have ended there
// but were not acknowledged. The RPC thread sends it to the registry, after all earlier reports;
// the registry forwards it to the job.
struct JobHears {
  JobId job = 0;
  core::NodeHeard heard;
};

// From a job to the registry: it has finished, or nothing is left of it. `progress`: set if it
// knows of jobs that follow it index by index, or is forgotten. `outcome`: for the log; may be
// empty if there is none at that level.
struct JobIsOver {
  JobId job = 0;
  core::JobOver how;
  core::ProgressPtr progress;
  std::string outcome;
};

// From the registry to a job: which other jobs wait for its end and have not recorded it yet. While
// any do, it is not forgotten.
struct HasDependents : core::Dependents {};

// From a job to the registry, for the jobs that follow it: how far its indexes are. Sent when it
// learns of them, and after each decision that changes it.
struct JobHasAdvanced {
  JobId job = 0;
  core::ProgressPtr progress;
};

// From a job to the registry: its owner has changed its completions.
struct JobIsResized {
  JobId job = 0;
  std::optional<int32_t> completions;
};

// To the registry, from itself: a job has recorded how another one ended, or is gone.
struct DependentKnows {
  JobId dependent = 0;
  JobId of = 0;
};

// From a job to the registry: it is no longer shown, so its name is free.
struct JobIsHidden {
  JobId job = 0;
};

using core::cluster::Freed;          // from a job to the cluster
using core::cluster::QueuesChanged;  // from the API
using core::cluster::Want;           // likewise
// From the cluster to a job: every node that could take its pods is one that could not start them.
struct HasNowhere {};
using core::cluster::JobLeft;  // from the registry to the cluster: its actor has ended
// From the cluster to a job: preempt this many of its pods on each node, for pods of higher
// priority.
struct Preempt {
  std::map<NodeId, uint32_t> slots;
  core::Steps steps{};  // of the pods
};
// From the cluster to a job: its pods must leave these nodes (taint NoExecute).
struct LeaveNodes {
  std::vector<NodeId> nodes;
  core::Steps steps{};  // of the pods
};
// From the cluster to a job.
struct Granted {
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint64_t> links;  // each node's registration when they were granted
  bool keep = false;                 // its next pods may reuse slots freed there, until ReturnSlots
  core::Steps steps{};               // of the pods that they are for
};
// From the cluster to a job: from now on, slots that its pods free go back to the cluster.
struct ReturnSlots {};

// What an agent reports about itself at registration.
struct AgentHello : core::cluster::Hello {
  // Ends that an earlier agent left, with `node` unset. If this is a new incarnation, they belong
  // to the one before it.
  std::map<JobId, core::PodsReported> ends{};
};
using core::cluster::HelloAnswer;
struct RegisterAgent {
  AgentHello hello;
  Reply<HelloAnswer> done;
};
// From the RPC thread to the cluster.
using core::cluster::AgentLeaves;
using core::cluster::Heartbeat;
using core::cluster::LinkDown;
using core::cluster::LinkUp;

// To the cluster: a client changes a node. `conflict` if its spec is no longer `seen`; not_found.
struct ChangeNode {
  std::string name;
  core::NodeSpec seen, spec;
  Reply<Status> done;
};
// Its pods end with DisruptionTarget/DeletionByPodGC; a live agent registers again.
struct DeleteNode {
  std::string name;
  Reply<Status> done;
};
// Its agent ends the pods that a restored state does not contain.
struct EndUnknownPods {
  std::string name;
  Reply<Status> done;
};

// To the KeptActor: a client creates, updates or deletes a stored object. exists: `seen` is null
// but the object exists; conflict: its version is not that of `seen`; not_found: it is gone;
// overloaded: too many of its kind are stored, or too many of its owner's. `done` is called on some
// actor's thread.
struct WriteKept {
  core::KeptPtr seen;  // as it was shown; nullptr: create it
  core::KeptPtr next;  // the new object, without id and version; nullptr: delete it
  Reply<Status> done;
  core::KeptQuota quota{};  // of the new object's owner
};

// From a job to one of its index actors.
struct FollowKill {
  PodKey pod;
  NodeId node = kNoNode;
  Millis deadline_ms = 0;  // job time: SIGKILL then
  Durable durable;
};
struct FollowEnd {
  PodKey pod;
};

}  // namespace muster::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Append)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::CreateJob)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::DeleteJob)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::AskJob)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobAsk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Preempt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::LeaveNodes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::ReturnSlots)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::ChangeNode)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::DeleteNode)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::EndUnknownPods)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::WriteKept)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobReport)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobDelete)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Reconcile)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobReconcile)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::NodeReadyNow)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::NodeIsLost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobHears)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobIsOver)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobIsHidden)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::HasDependents)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobHasAdvanced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobIsResized)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::DependentKnows)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::QueuesChanged)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Want)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Freed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::HasNowhere)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobLeft)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Granted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::RegisterAgent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::LinkUp)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::LinkDown)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Heartbeat)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::AgentLeaves)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::FollowKill)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::FollowEnd)

CAF_BEGIN_TYPE_ID_BLOCK(muster, caf::first_custom_type_id)
CAF_ADD_ATOM(muster, muster::actors, commit_atom, "commit")
CAF_ADD_ATOM(muster, muster::actors, begin_atom, "begin")
CAF_ADD_ATOM(muster, muster::actors, sync_atom, "sync")
CAF_ADD_ATOM(muster, muster::actors, durable_atom, "durable")
CAF_ADD_ATOM(muster, muster::actors, wake_atom, "wake")
CAF_ADD_ATOM(muster, muster::actors, beat_atom, "beat")
CAF_ADD_ATOM(muster, muster::actors, place_atom, "place")
CAF_ADD_ATOM(muster, muster::actors, stop_atom, "stopnow")
CAF_END_TYPE_ID_BLOCK(muster)
