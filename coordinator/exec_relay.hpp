// ExecRelay: commands that join running pods, for muster-rsh (from one node to another) and for
// `muster exec` (from the API).
//
// The coordinator decides who may: muster-rsh reaches pods of its own job only (host_desk.hpp), a
// user those of their own jobs (api/access). It signs what a node may run, where pods run as their
// owners. The output passes through as a capability of the node that runs the command; when the
// coordinator is restarted, both sides come back and go on with the same session.
//
// A user's session is that of the caller and pod that it was started for; to everyone else it does
// not exist. It is ended when nobody has read it or written to it for kUnusedMs, so that a client
// that died leaves nothing running.
//
// Belongs to the RPC thread.
#pragma once

#include "api/request/backend.hpp"
#include "api/view/pod_configs.hpp"
#include "coordinator/host_desk.hpp"
#include "coordinator/replies.hpp"
#include "core/spec/downward.hpp"
#include "permit/permit.hpp"

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
  // Of the RPC server.
  struct Nodes {
    std::function<std::string(NodeId)> name;                      // empty: unknown
    std::function<kj::Maybe<wire::Agent::Client>(NodeId)> agent;  // none: not connected
    std::function<core::NodeFigures(NodeId)> figures;             // empty: unknown
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
  // Whether another user's session, or one of another pod, has this id.
  bool is_taken(const api::ExecSession& session) const;
  UserSession* find(const api::ExecSession& session);
  // Of a read or write: it keeps its session while it lasts.
  kj::Own<void> use(const api::ExecSession& session);

  kj::Timer& timer_;
  HostDesk& desk_;
  const Nodes nodes_;
  const Coordinator coordinator_;
  std::map<std::string, UserSession> users_;  // by id
  size_t starting_ = 0;                       // of them, not answered yet
  std::map<NodeId, size_t> asked_;            // calls of exec() in progress
  kj::Promise<void> dropping_;
};

}  // namespace muster::coordinator
