// ExecRelay: commands that join running pods, for muster-rsh (from one node to another) and for
// `muster exec` (from the API).
//
// The coordinator decides who may do so: muster-rsh reaches only pods of its own job
// (host_desk.hpp), and a user only pods of their own jobs (api/access). Where pods run as their
// owners, it signs what a node may run. Output passes through a capability of the node that runs
// the command. When the coordinator restarts, both sides reconnect and continue the same session.
//
// A user's session belongs to the caller and pod that it was started for; to everyone else it does
// not exist. It is ended after kUnusedMs without reads or writes, so that a dead client leaves
// nothing running.
//
// Belongs to the RPC thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/query/pod_configs.hpp"
#include "coordinator/desks/host_desk.hpp"
#include "coordinator/links/agent_links.hpp"
#include "coordinator/threads/replies.hpp"
#include "core/spec/fields/downward.hpp"
#include "trust/permit/permit.hpp"

#include <kj/async-io.h>

#include <functional>
#include <map>
#include <optional>
#include <schema/agent.capnp.h>
#include <string>
#include <vector>

namespace muster::coordinator {

class ExecRelay {
 public:
  // Provided by the RPC server.
  struct Nodes {
    std::function<std::string(NodeId)> name;                      // empty: unknown
    std::function<kj::Maybe<wire::Agent::Client>(NodeId)> agent;  // none: not connected
    std::function<core::NodeFigures(NodeId)> figures;             // empty: unknown
    std::function<AgentLinks::Takes(NodeId)> takes;
  };
  struct Coordinator {
    std::string cluster_id;
    uint64_t epoch = 0, nonce = 0;
    const std::optional<PermitKey>* permit_key = nullptr;
    // RpcOptions::pod_configs, and the replies that bring its answers to this thread.
    const std::function<void(PodId, NodeId, std::function<void(Result<api::PodConfigs>)>)>*
        pod_configs = nullptr;
    Replies* replies = nullptr;
  };

  ExecRelay(kj::Timer& timer, HostDesk& desk, Nodes nodes, Coordinator coordinator)
      : timer_(timer),
        desk_(desk),
        nodes_(std::move(nodes)),
        coordinator_(std::move(coordinator)),
        dropping_(drop_unused().eagerlyEvaluate(nullptr)) {}

  using ExecCall = capnp::CallContext<wire::Session::ExecParams, wire::Session::ExecResults>;
  // From a registered agent.
  kj::Promise<void> exec(ExecCall context, NodeId node);

  // For a user; see api::Backend.
  kj::Promise<Result<api::ExecStarted>> start(const api::ExecRequest& request);
  kj::Promise<Result<api::ExecOutput>> read(const api::ExecRead& request);
  kj::Promise<Result<api::ExecTaken>> write(const api::ExecWrite& request);
  kj::Promise<Status> end(const api::ExecSession& session);

 private:
  using Answer = capnp::Response<wire::Agent::ExecResults>;
  struct Target {
    PodId pod;
    NodeId node = kNoNode;
    core::JobObjectPtr object;
  };
  kj::Promise<void> exec(ExecCall context, NodeId node, Millis unknown_until);
  struct Command {
    std::vector<std::string> words;
    bool input = false, terminal = false;
    std::optional<uint16_t> container{};  // its position; absent: the first
  };
  kj::Promise<Answer> run(wire::Agent::Client agent, const Target& target,
                          const std::string& session, const Command& command);
  kj::Promise<Answer> run(wire::Agent::Client agent, const Target& target,
                          const std::string& session, const Command& command,
                          const core::ConfigMaps& configs);
  kj::Promise<void> drop_unused();

  struct UserSession {
    api::ExecSession of;
    wire::Process::Client process;
    Millis used_at = 0;
    unsigned calls = 0;  // reads and writes in flight
  };
  // Whether a session of another user or pod has this id.
  bool is_taken(const api::ExecSession& session) const;
  UserSession* find(const api::ExecSession& session);
  // Keeps the session in use for as long as a read or write lasts.
  kj::Own<void> use(const api::ExecSession& session);

  kj::Timer& timer_;
  HostDesk& desk_;
  const Nodes nodes_;
  const Coordinator coordinator_;
  std::map<std::string, UserSession> users_;  // by id
  size_t starting_ = 0;                       // starts in progress
  std::map<NodeId, size_t> asked_;            // exec() calls in progress
  kj::Promise<void> dropping_;
};

}  // namespace muster::coordinator
