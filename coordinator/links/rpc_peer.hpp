// RpcPeer: the server's end of a connection over which Cap'n Proto calls are made.
//
// Dropping it closes the connection. Members are destroyed in reverse order, the stream after its
// users.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <cstdint>

namespace muster::coordinator {

struct RpcPeer {
  static constexpr uint64_t kMessageBytesMax = 64u << 20;  // of one message

  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;

  RpcPeer(kj::Own<kj::AsyncIoStream> s, capnp::Capability::Client bootstrap)
      : stream(kj::mv(s)),
        network(*stream, capnp::rpc::twoparty::Side::SERVER, limits()),
        rpc(capnp::makeRpcServer(network, kj::mv(bootstrap))) {}

 private:
  static capnp::ReaderOptions limits() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = kMessageBytesMax / sizeof(capnp::word);
    return options;
  }
};

}  // namespace muster::coordinator
