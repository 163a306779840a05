// BoundedStream: limits what a connection of a pod's program may make the agent hold.
//
// A message is buffered until it is complete, and then until its call has been taken up: the RPC
// system asks for the next message only if what its calls hold is within the flow limit. So its
// bytes are counted as they arrive, until the next message is read. A connection whose message is
// too long, or that has no share left, fails.
#pragma once

#include "base/peer/pool.hpp"

#include <kj/async-io.h>

#include <string>

namespace muster::agent {

// The longest message: a command as long as exec allows, and what goes with it.
inline constexpr size_t kLocalMessageMax = 4 << 20;
// What the calls of a connection may hold beyond the message that was read last.
inline constexpr size_t kLocalFlowMax = 64 << 10;

// `who` is counted in `bytes`, which must outlive the stream.
kj::Own<kj::AsyncIoStream> bounded(kj::Own<kj::AsyncIoStream> stream, Pool& bytes, std::string who);

}  // namespace muster::agent
