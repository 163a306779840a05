// Messages: the plain structs that actors send each other. None ever leaves the process; all are
// cheap to copy.
#pragma once

#include "actors/durable.hpp"
#include "base/result.hpp"
#include "core/cluster/node_info.hpp"
#include "core/job/batch.hpp"
#include "core/job/event.hpp"
#include "core/kept.hpp"
#include "storage/journal.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/type_id.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace muster::actors {

// To the journal: rows of one writer. `done` runs on the journal's thread once they are durable and
// shown.
struct Append {
  std::vector<storage::Row> rows;
  std::shared_ptr<const core::JobRecords> records;  // for the copy that is shown; may be null
  std::vector<core::NodeInfo> nodes;                // likewise
  // Likewise, but their rows are made when the number of the commit is known, which is their
  // version; `rows` has none of them.
  std::vector<core::KeptChange> kept;
  std::function<void(uint64_t commit)> done;
  bool may_wait = false;  // so much is under way that this one had better share its sync
};

// To the registry: a validated job to store. `done` is called on some actor's thread.
struct CreateJob {
  core::JobObjectPtr object;
  Reply<Status> done;
};

struct DeleteJob {
  std::string ns, name, uid;  // uid empty: any
  bool background = true;
  bool orphan = false;  // implies background: the pods run on
  Reply<Status> done;
};

// To the registry: what an owner asks of a job that exists, by its uid. `event` is one of those
// that core answers with its token (OwnerUpdate, PodsDeletion, PodConditionsWrite, StatusWrite),
// which the JobActor sets. `done` is called on some actor's thread: not_found, conflict, or done
// and durable.
struct AskJob {
  std::string ns, name, uid;  // uid empty: any. Name empty: the job `id`, also one not shown
  JobId id = 0;
  core::Event event;
  Reply<Status> done;
};

// To the registry: an agent's report, split by job. `done` once every end in it is on disk, save
// for those of `kept`, whose jobs are quarantined: the agent is to keep them.
struct Report {
  NodeId node = kNoNode;
  std::map<JobId, core::PodsReported> jobs;
  Reply<std::vector<PodId>> done;  // those that are kept
};

// From the registry to a job.
struct JobReport {
  core::PodsReported report;
  AckPtr ack;
};

struct JobDelete {
  bool background = true;
  bool orphan = false;
  AckPtr ack;
};

// From the registry to a job.
struct JobAsk {
  core::Event event;
  Reply<Status> done;
};

// From the cluster to the registry, and on to the jobs: an incarnation registers with the pods it
// knows. `answered` collects, from each job on its own thread, what the agent must end.
struct Reconcile {
  NodeId node = kNoNode;
  uint64_t link = 0;
  std::map<JobId, std::set<PodKey>> known;
  bool restored = false;               // what it knows is from before a restore
  Reply<std::vector<PodId>> answered;  // what is to end; once, when every job has answered
};
struct JobReconcile {
  NodeId node = kNoNode;
  uint64_t link = 0;
  std::set<PodKey> known;
  bool restored = false;
  Reply<std::vector<PodKey>> answered;  // what is to end
};

struct NodeReadyNow {
  NodeId node = kNoNode;
  uint64_t link = 0;
};
struct NodeIsLost {
  NodeId node = kNoNode;
  core::EndCause cause = core::EndCause::node_lost;
};

// The agent of a node answers a job's question (core::AskNodes): what of it has ended there and was
// not acknowledged. From the RPC thread to the registry, behind all reports that came before, and
// on to the job.
struct JobHears {
  JobId job = 0;
  core::NodeHeard heard;
};

// From a job to the registry: it has finished, or nothing is left of it.
struct JobIsOver {
  JobId job = 0;
  bool forgotten = false;
  Millis wake_ms = 0;  // wanted again then (wall clock); 0: never
};

// From a job to the registry: it is not shown any more, so its name is free.
struct JobIsHidden {
  JobId job = 0;
};

// From a job to the cluster: how many of its pods wait, and how many slots it has received in all.
// What was granted and has not arrived yet counts against the first.
struct Want {
  JobId job = 0;
  uint32_t pending = 0;
  uint64_t received = 0;
  core::JobObjectPtr object;  // what its pods ask for: resources, selector, tolerations, priority
};
// From a job to the cluster: slots that no longer hold a pod of it.
struct Freed {
  JobId job = 0;
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint32_t> quick{};  // of these, by pods that ran for a moment only
};
// From the registry to the cluster: the actor of a job without open pods has gone.
struct JobLeft {
  JobId job = 0;
};
// From the cluster to a job: that many of its pods there give way to pods of a higher priority.
struct Preempt {
  std::map<NodeId, uint32_t> slots;
};
// From the cluster to a job: its pods must leave these nodes (taint NoExecute).
struct LeaveNodes {
  std::vector<NodeId> nodes;
};
// From the cluster to a job.
struct Granted {
  std::map<NodeId, uint32_t> slots;
  std::map<NodeId, uint64_t> links;  // under which each node has them
};

// What an agent says of itself at registration (schema/agent.capnp, Hello).
struct AgentHello {
  uint64_t link = 0;  // the connection, as the RPC thread numbers them
  std::string node, work_dir_id, boot_id, cluster_id;
  std::string secret, cluster_key;  // that prove the work-dir, and that it served this cluster
  uint64_t highest_epoch = 0, epoch_nonce = 0, highest_commit = 0;
  uint32_t slots = 0;
  uint64_t cpu_millis = 0, memory_bytes = 0;
  std::map<std::string, int64_t> resources;  // named ones
  core::StringMap labels;
  std::string address;
  core::LimitSupport limits{};
  std::vector<PodId> running, waiting, ended;
};
struct HelloAnswer {
  enum class Kind { welcome, name_taken, other_cluster, invalid, not_serving };
  Kind kind = Kind::welcome;
  std::string message;
  NodeId node = kNoNode;
  std::vector<PodId> end;
};
struct RegisterAgent {
  AgentHello hello;
  Reply<HelloAnswer> done;
};
// From the RPC thread: the agent of this link was sent its welcome; the link is of use now.
struct LinkUp {
  NodeId node = kNoNode;
  uint64_t link = 0;
};
struct LinkDown {
  NodeId node = kNoNode;
  uint64_t link = 0;
};
struct Heartbeat {
  NodeId node = kNoNode;
  uint64_t link = 0;
  core::NodeTrouble trouble{};
};
struct AgentLeaves {
  NodeId node = kNoNode;
  uint64_t link = 0;
};

// To the cluster: people change a node. `conflict` when its spec is not what was seen; not_found.
struct ChangeNode {
  std::string name;
  core::NodeSpec seen, spec;
  Reply<Status> done;
};
// Its pods end with DisruptionTarget/DeletionByPodGC; an agent that is alive registers anew.
struct DeleteNode {
  std::string name;
  Reply<Status> done;
};

// To the KeptActor: what a client makes of an object that is kept for it. exists: `seen` is nothing
// and it is there; conflict: it has another version than `seen`; not_found: it is gone; overloaded:
// no more of its kind are kept. `done` is called on some actor's thread.
struct WriteKept {
  core::KeptPtr seen;  // as it was shown; nullptr: it is not there
  core::KeptPtr next;  // as it shall be, without id and version; nullptr: it goes
  Reply<Status> done;
};

// From a job to one of its index actors.
struct FollowLaunch {
  PodKey pod;
  NodeId node = kNoNode;
  uint64_t link = 0;
  core::JobObjectPtr object;
  Durable durable;
};
struct FollowKill {
  PodKey pod;
  NodeId node = kNoNode;
  Millis deadline_ms = 0;  // wall clock: SIGKILL then
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
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::ChangeNode)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::DeleteNode)
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
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Want)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Freed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::JobLeft)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Granted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::RegisterAgent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::LinkUp)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::LinkDown)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::Heartbeat)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::AgentLeaves)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(muster::actors::FollowLaunch)
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
