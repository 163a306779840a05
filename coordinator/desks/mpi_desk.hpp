// MpiDesk: serves MPI jobs at the agents' port: tells nodes where the pods of a job are, answers
// calls of its ranks, and has the nodes try whether they reach each other.
//
// Invariants: nodes learn of a job's pods before these are launched, and nodes that no longer have
// any learn that, too; a call is answered only for a node that has a pod of the job.
//
// Belongs to the RPC thread.
#pragma once

#include "coordinator/desks/fence_desk.hpp"
#include "coordinator/desks/host_desk.hpp"
#include "coordinator/desks/reach_desk.hpp"
#include "coordinator/links/agent_links.hpp"
#include "coordinator/links/rpc_context.hpp"
#include "core/job/fold/hosts.hpp"

#include <capnp/capability.h>
#include <kj/async.h>

#include <schema/agent.capnp.h>
#include <set>

namespace muster::coordinator {

class MpiDesk {
 public:
  MpiDesk(RpcContext& context, AgentLinks& links)
      : context_(context), links_(links), reach_(context, links) {}

  HostDesk& hosts() { return desk_; }
  void set(JobId job, const core::HostListPtr& hosts);
  void connected(NodeId node);
  void stop() { reach_.stop(); }
  // Whether the job's nodes have tried each other: resolves as ReachDesk::first_try().
  kj::Promise<void> tried(JobId job) { return reach_.first_try(job); }

  // From a registered agent.
  using FenceCall = capnp::CallContext<wire::Session::FenceParams, wire::Session::FenceResults>;
  using GatherCall = capnp::CallContext<wire::Session::GatherParams, wire::Session::GatherResults>;
  kj::Promise<void> fence(FenceCall context, NodeId node);
  kj::Promise<void> gather(GatherCall context, NodeId node);

 private:
  void send_hosts(NodeId node, JobId job);

  RpcContext& context_;
  AgentLinks& links_;
  HostDesk desk_;
  FenceDesk fences_;
  ReachDesk reach_;
  std::set<JobId> hosts_due_;  // jobs with state changes not sent to all nodes yet
};

}  // namespace muster::coordinator
