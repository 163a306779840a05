// Registration: wire::Coordinator, what an agent can call on a connection before it has a session.
//
// The ClusterActor decides whether an agent is admitted; an admitted agent gets a session.
//
// Invariants: a connection registers once, and a node over TLS only under the name in its
// certificate; a refusal says which pods the agent must end; a connection that is refused too often
// is closed.
//
// Belongs to the RPC thread.
#pragma once

#include "actors/messages.hpp"
#include "base/seldom.hpp"
#include "coordinator/links/agent_ports.hpp"
#include "coordinator/rpc/agent_session.hpp"
#include "core/ids.hpp"

#include <capnp/capability.h>
#include <kj/async.h>

#include <cstdint>
#include <schema/agent.capnp.h>
#include <string>
#include <vector>

namespace muster::coordinator {

class Registration {
 public:
  // Both must outlive this object and the sessions.
  Registration(const SessionDesks& desks, AgentPorts& ports) : desks_(desks), ports_(ports) {}

  wire::Coordinator::Client bootstrap(uint64_t number);  // of this connection

  using RegisterCall =
      capnp::CallContext<wire::Coordinator::RegisterParams, wire::Coordinator::RegisterResults>;
  using CertifyCall =
      capnp::CallContext<wire::Coordinator::CertifyParams, wire::Coordinator::CertifyResults>;
  using ProveCall =
      capnp::CallContext<wire::Coordinator::ProveParams, wire::Coordinator::ProveResults>;
  kj::Promise<void> enroll(RegisterCall context, uint64_t number);
  kj::Promise<void> certify(CertifyCall context, uint64_t number);
  void prove(ProveCall context) const;

 private:
  kj::Promise<void> refuse(RegisterCall context, uint64_t number, wire::Refusal::Why why,
                           const std::string& message, const std::vector<PodId>& end);
  void write_welcome(const core::cluster::HelloAnswer& answer,
                     wire::Welcome::Builder welcome) const;
  void take_proof(wire::Hello::Reader from, bool remote, actors::AgentHello& hello) const;

  const SessionDesks& desks_;
  AgentPorts& ports_;
  Seldom refusals_;
};

}  // namespace muster::coordinator
