// LocalClient: how programs in a pod reach their node's agent (schema/local.capnp).
#pragma once

#include "base/result.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <schema/local.capnp.h>
#include <string>

namespace muster::agent {

class LocalClient {
 public:
  struct Connection {
    explicit Connection(kj::Own<kj::AsyncIoStream> one);
    wire::Local::Client local();
    kj::Own<kj::AsyncIoStream> stream;
    capnp::TwoPartyVatNetwork network;
    capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  };

  // With the token that MUSTER_RSH_TOKEN_FILE names. `invalid`: there is none.
  static Result<LocalClient> of_environment();

  const std::string& token() const { return token_; }
  kj::Promise<kj::Own<Connection>> connecting(kj::AsyncIoContext& io) const;
  kj::Own<Connection> connect(kj::AsyncIoContext& io) const {
    return connecting(io).wait(io.waitScope);
  }

 private:
  LocalClient(std::string token, std::string dir)
      : token_(std::move(token)), dir_(std::move(dir)) {}
  std::string token_, dir_;  // dir_: of the socket
};

}  // namespace muster::agent
