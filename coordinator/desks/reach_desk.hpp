// ReachDesk: has the nodes of each MPI job try whether they reach each other, as soon as its pods
// have their nodes, and every kReachEachMs from then on (core/cluster/nodes/reach.hpp).
//
// In a round, each node first opens a port, and then the nodes try those of others. A launcher is
// let to the other pods after the first round, or after kFirstTryMs: it goes on whatever the nodes
// find. That is shown and logged when it changes, and stored nowhere: a restarted coordinator finds
// it out again.
//
// A node that is not connected, does not answer, or has an agent of an earlier version neither
// tries others nor is tried: what is known of it stays. So does what an agent found while it or its
// peer registered again, since the peer may have been about to open its port.
//
// Belongs to the RPC thread.
#pragma once

#include "coordinator/links/agent_links.hpp"
#include "coordinator/links/rpc_context.hpp"
#include "core/cluster/nodes/reach.hpp"
#include "core/job/fold/hosts.hpp"

#include <kj/async.h>
#include <kj/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::coordinator {

class ReachDesk {
 public:
  static constexpr Millis kReachEachMs = 30'000;
  static constexpr Millis kFirstTryMs = 1'000;

  ReachDesk(RpcContext& context, AgentLinks& links) : context_(context), links_(links) {}

  // The job has these pods now; none: it is over.
  void set(JobId job, const core::HostList& hosts);
  // A node has registered, so more can be found out about its jobs.
  void connected(NodeId node);
  // Resolves when the job's nodes have tried each other once, or kFirstTryMs after the job got
  // them; at once if they do not try.
  kj::Promise<void> first_try(JobId job);
  void stop() { watches_.clear(); }

 private:
  struct Watch {
    std::string name;           // of the job, as "default/a"
    std::vector<NodeId> nodes;  // by their lowest index: the leader's is the first
    core::Reach reach{};
    std::map<NodeId, core::Unreached::End> ends{};  // of nodes that have tried or were tried
    std::vector<core::Unreached> shown{};
    kj::TimePoint first_try_until = kj::origin<kj::TimePoint>();
    std::vector<kj::Own<kj::PromiseFulfiller<void>>> until_tried{};  // first_try()
    kj::Promise<void> rounds = nullptr;
  };
  struct Member {
    NodeId node = kNoNode;
    uint64_t link = 0;  // 0: not connected
    std::string ip{};
    uint16_t port = 0;  // 0: cannot be tried, and tries no other
    std::string greeting{};
  };
  using Members = std::vector<Member>;

  kj::Promise<void> rounds(JobId job, Millis pause_ms);
  void start(JobId job, Watch& watch, Millis pause_ms);
  // The first try is over.
  static void tried(Watch& watch);
  kj::Promise<void> round(JobId job);
  kj::Promise<void> meet(Member& member);
  // Has the member at `i` try those that it has to.
  kj::Promise<void> reach(JobId job, const Members& members, size_t i);
  void heard(JobId job, const Member& from, const std::vector<const Member*>& tried,
             capnp::List<capnp::Text>::Reader failures);
  // `tried`: nodes have just tried each other; else what is left is what they knew before.
  void show(JobId job, Watch& watch, bool tried);

  RpcContext& context_;
  AgentLinks& links_;
  std::map<JobId, Watch> watches_;
};

}  // namespace muster::coordinator
