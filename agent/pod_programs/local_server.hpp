// LocalServer: the socket on which the programs of a pod reach this agent (schema/local.capnp).
//
// Only users who have a pod with a token here are served, and the agent's own user and root. What
// each may use of the agent is limited: connections, and bytes of messages that are not finished.
//
// muster-rsh in a pod of an MPI job asks to run a command in another pod of the same job. A caller
// must have the token of a pod that runs here and the uid that this pod runs as. So no other user
// can use the token; a process of the same user that reads it can, but could trace the pod's
// processes anyway. When a caller's connection closes, what it started is ended.
//
// muster-pmi, the parent of a rank without a launcher, exchanges what its rank has put. Its last
// fence is reported again over each new connection to the coordinator, which stores none of it.
//
// Belongs to the agent's KJ thread.
#pragma once

#include "agent/pod_programs/run_dirs.hpp"
#include "base/peer/pool.hpp"
#include "base/seldom.hpp"

#include <kj/async-io.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <schema/agent.capnp.h>
#include <schema/local.capnp.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::agent {

class LocalServer final : private kj::TaskSet::ErrorHandler {
 public:
  // What it needs from the agent.
  class Agent {
   public:
    virtual ~Agent() noexcept(false) = default;
    virtual bool runs(PodId pod) const = 0;
    // None: there is no connection to the coordinator.
    virtual kj::Maybe<wire::Session::Client> session() = 0;
    // Resolves when session() may have changed.
    virtual kj::Promise<void> session_changes() = 0;
    // A launcher in this pod waits for a worker that cannot be reached; `lost`: it once could be.
    virtual void give_up(PodId pod, const std::string& why, bool lost) = 0;
  };

  // Of all users together, and of each.
  struct Limits {
    size_t connections = 2'048, user_connections = 1'024;
    uint64_t bytes = 64u << 20, user_bytes = 16u << 20;
  };

  LocalServer(kj::AsyncIoContext& io, const RunDirs& run_dirs, Agent& agent)
      : LocalServer(io, run_dirs, agent, Limits()) {}
  LocalServer(kj::AsyncIoContext& io, const RunDirs& run_dirs, Agent& agent, const Limits& limits);

  // Starts to listen. `users`: also to users other than ours.
  Status listen(bool users);

 private:
  class Server;
  struct Connection;

  kj::Promise<void> accept();
  void serve(kj::Own<kj::AsyncIoStream> stream, uint32_t uid);
  bool serves(uint32_t uid) const;
  using ExecResult = capnp::Response<wire::Session::ExecResults>;
  template <class T, class Send>
  kj::Promise<T> until_answered(Send send);
  kj::Promise<ExecResult> ask(PodId pod, wire::Local::ExecParams::Reader params);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  using PairsPtr = std::shared_ptr<const Pairs>;
  struct Fence {  // the last one that a rank has reached
    PodId pod;
    uint32_t number = 0;
    Pairs puts;
  };
  kj::Promise<uint64_t> tell(const Fence& fence);
  kj::Promise<PairsPtr> gather(JobId job, uint64_t group, uint32_t number);
  kj::Promise<void> tell_again();
  kj::Promise<void> pause(Millis span);
  void taskFailed(kj::Exception&& exception) override;

  kj::AsyncIoContext& io_;
  const RunDirs& run_dirs_;
  Agent& agent_;
  Pool open_, bytes_;  // connections, and bytes of messages
  Seldom turned_away_;
  kj::Own<kj::ConnectionReceiver> port_;
  std::set<Connection*> connections_;
  struct Gathered {
    uint64_t group = 0;
    uint32_t number = 0;
    kj::ForkedPromise<PairsPtr> all;
  };
  std::map<JobId, Gathered> gathered_;
  kj::TaskSet tasks_;
};

}  // namespace muster::agent
