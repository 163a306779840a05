// AgentSession: wire::Session, the calls of a registered agent.
//
// Invariants: calls under an earlier registration fail; a report returns once it is in the journal.
//
// Belongs to the RPC thread.
#pragma once

#include "coordinator/desks/exec_relay.hpp"
#include "coordinator/desks/mpi_desk.hpp"
#include "coordinator/links/agent_links.hpp"
#include "coordinator/links/rpc_context.hpp"

#include <kj/async.h>

#include <cstdint>
#include <schema/agent.capnp.h>

namespace muster::coordinator {

// What sessions use.
struct SessionDesks {
  RpcContext& context;
  AgentLinks& links;
  MpiDesk& mpi;
  ExecRelay& relay;
};

class AgentSession final : public wire::Session::Server {
 public:
  AgentSession(const SessionDesks& desks, NodeId node, std::string name, uint64_t link)
      : desks_(desks), node_(node), name_(std::move(name)), link_(link) {}
  kj::Promise<void> heartbeat(HeartbeatContext context) override;
  kj::Promise<void> report(ReportContext context) override;
  kj::Promise<void> leave(LeaveContext context) override;
  kj::Promise<void> exec(ExecContext context) override;
  kj::Promise<void> fence(FenceContext context) override;
  kj::Promise<void> gather(GatherContext context) override;
  kj::Promise<void> configs(ConfigsContext context) override;

 private:
  void check_current();
  const SessionDesks& desks_;
  const NodeId node_;
  const std::string name_;
  const uint64_t link_;
};

}  // namespace muster::coordinator
