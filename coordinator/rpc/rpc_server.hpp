// RpcServer: the agents' port, on its own KJ thread.
//
// Owns all connections of agents. To the actors it is the AgentLink: it gathers orders by node and
// sends them in lists. To the agents it is wire::Coordinator: registrations and heartbeats go to
// the ClusterActor, reports to the RegistryActor, and a report returns once it is in the journal.
//
//   agent_ports   connections, from accept to close
//   registration  wire::Coordinator: certificates and registration of a connection
//   agent_session wire::Session: the calls of a registered agent
//   agent_links   registered agents: orders and questions to them
//   mpi_desk      where an MPI job's pods are, and their barriers
//
// Invariants: each registration gets a new session, and calls on an earlier one fail; orders for a
// disconnected node are dropped, since its next registration derives them again.
#pragma once

#include "actors/agent_link.hpp"
#include "actors/interfaces.hpp"
#include "api/request/backend.hpp"
#include "base/result.hpp"
#include "coordinator/links/rpc_options.hpp"

#include <functional>
#include <memory>
#include <string>

namespace muster::coordinator {

class RpcServer : public actors::AgentLink {
 public:
  ~RpcServer() override = default;
  // Binds on a new thread; agents are accepted once serve() has set the actors. `unavailable`: the
  // address can't be listened on.
  static Result<std::unique_ptr<RpcServer>> bind(RpcOptions options);
  virtual void serve(actors::cluster_actor cluster, actors::registry_actor registry) = 0;
  virtual std::string address() const = 0;
  virtual std::string tls_address() const = 0;  // empty: none
  virtual std::string socket() const = 0;       // the path of the Unix socket; empty: none
  // Any thread: ends the connections of the node whose certificate has this name.
  virtual void expel_node(const std::string& node) = 0;
  // Any thread; `done` is called on the RPC thread.
  virtual void read_log(api::LogRequest request,
                        std::function<void(Result<api::LogChunk>)> done) = 0;
  virtual void find_log(api::LogSearch search,
                        std::function<void(Result<api::LogBegins>)> done) = 0;
  // Likewise; see api::Backend.
  virtual void exec(api::ExecRequest request,
                    std::function<void(Result<api::ExecStarted>)> done) = 0;
  virtual void read_exec(api::ExecRead request,
                         std::function<void(Result<api::ExecOutput>)> done) = 0;
  virtual void write_exec(api::ExecWrite request,
                          std::function<void(Result<api::ExecTaken>)> done) = 0;
  virtual void end_exec(api::ExecSession session, std::function<void(Status)> done) = 0;
  // Ends all connections and joins the thread.
  virtual void stop() = 0;
};

}  // namespace muster::coordinator
