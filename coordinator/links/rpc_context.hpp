// RpcContext: what the parts of the RPC server share.
//
// Belongs to the RPC thread. Outlives the parts; the actors are set before the first agent is
// accepted, and cleared when the thread ends.
#pragma once

#include "actors/interfaces.hpp"
#include "coordinator/links/rpc_options.hpp"
#include "coordinator/threads/replies.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>

namespace muster::coordinator {

constexpr size_t kSealWords = 10;  // of a message, for HistorySeal

struct RpcContext {
  const RpcOptions& options;
  Replies& replies;
  kj::TaskSet& tasks;
  kj::Timer& timer;
  bool serving = false;
  actors::cluster_actor cluster{};
  actors::registry_actor registry{};

  // Tells an agent our latest commit, with our seal.
  template <class Builder>
  void tell(Builder& out) const {
    const uint64_t commit = options.last_commit();
    out.setCommit(commit);
    out.setSeal(options.seal.of({options.epoch, options.nonce, commit}));
  }
};

}  // namespace muster::coordinator
