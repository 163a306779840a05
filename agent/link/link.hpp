// Link: one connection to the coordinator, from connect to disconnect.
//
// Requests in flight die with it; the state behind them is in core::node::Node and is sent again
// over the next link. Members are destroyed in reverse order, the stream last.
#pragma once

#include "base/clock.hpp"
#include "trust/tls/link.hpp"

#include <capnp/message.h>
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <cstdint>
#include <schema/agent.capnp.h>
#include <string>
#include <utility>

namespace muster::agent {

// Why a connection or a call on it failed.
inline std::string text_of(const kj::Exception& exception) {
  if (auto meant = tls::explained(exception)) return std::move(*meant);
  return {exception.getDescription().cStr(), exception.getDescription().size()};
}

struct Link {
  static capnp::ReaderOptions limits() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = (64u << 20) / sizeof(capnp::word);
    return options;
  }

  Link(uint64_t nth, kj::Own<kj::AsyncIoStream> connected, kj::TaskSet::ErrorHandler& errors)
      : number(nth),
        stream(kj::mv(connected)),
        net(*stream, capnp::rpc::twoparty::Side::CLIENT, limits()),
        rpc(capnp::makeRpcClient(net)),
        tasks(errors) {
    auto lost = kj::newPromiseAndFulfiller<void>();
    broken = kj::mv(lost.fulfiller);
    loss = kj::mv(lost.promise);
    auto in = kj::newPromiseAndFulfiller<void>();
    let_in = kj::mv(in.fulfiller);
    welcomed = in.promise.fork();
  }

  wire::Coordinator::Client coordinator() {
    capnp::MallocMessageBuilder message(8);
    auto vat = message.getRoot<capnp::rpc::twoparty::VatId>();
    vat.setSide(capnp::rpc::twoparty::Side::SERVER);
    return rpc.bootstrap(vat).castAs<wire::Coordinator>();
  }

  // Gives up the connection. The first reason counts.
  void give_up(const std::string& reason) {
    if (why.empty()) why = reason;
    broken->fulfill();
  }

  const uint64_t number;
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork net;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  kj::Maybe<wire::Session::Client> session;  // none: not registered yet
  kj::Own<kj::PromiseFulfiller<void>> broken, let_in;
  kj::Promise<void> loss = nullptr;
  kj::ForkedPromise<void> welcomed = nullptr;  // calls from the coordinator wait for it
  std::string why;
  bool other_cluster = false;  // than our work-dir's: does not get its key
  Millis answered_at = 0;      // boot time of the last answer
  Millis heartbeat_ms = 0;
  Millis silence_max_ms = 0;
  kj::TaskSet tasks;  // heartbeats and reports
};

}  // namespace muster::agent
