// Passage: one direction of a client's connection that a follower passes on to the leader.
#pragma once

#include "base/fd.hpp"

#include <kj/async-io.h>

#include <functional>
#include <memory>
#include <schema/standby.capnp.h>

namespace muster::standby {

// A stream that both directions use.
using SharedStream = std::shared_ptr<kj::Own<kj::AsyncIoStream>>;

// One end of a pair of connected sockets, whose other end `take` gets; null: it does not take it.
SharedStream local_pair(kj::AsyncIoContext& io, const std::function<bool(Fd other)>& take);
// A sink that writes to this stream. end() ends its output; dropping the sink before that drops
// the connection.
wire::ByteSink::Client sink_to(SharedStream stream);
// Copies the input of the stream to a sink until it ends.
kj::Promise<void> pump(SharedStream stream, wire::ByteSink::Client sink);

}  // namespace muster::standby
