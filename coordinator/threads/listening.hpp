// Listening: on a TCP or Unix socket; errors say why it failed and what to do about it.
#pragma once

#include "base/result.hpp"

#include <kj/async-io.h>
#include <kj/exception.h>

#include <string>
#include <sys/types.h>

namespace muster::coordinator {

// From now on, a port of the API or of metrics that is given up stays open: who connects to it
// waits until the process listens there again. Connections are not refused while the role of a
// coordinator changes.
void keep_ports();

// Listens on HOST:PORT, or on unix:PATH with this mode. `flag` is named in errors. Call it inside a
// promise's callback only for ports that stay open: others wait for the loop.
Result<kj::Own<kj::ConnectionReceiver>> listen_on(kj::AsyncIoContext& io, const std::string& flag,
                                                  const std::string& address, mode_t mode);

// Listens on the Unix socket at this path, too; none if the path is empty or, unless it is
// `required`, if the socket cannot be made, which is logged.
Result<kj::Maybe<kj::Own<kj::ConnectionReceiver>>> listen_also(kj::AsyncIoContext& io,
                                                               const std::string& flag,
                                                               const std::string& path, mode_t mode,
                                                               bool required);

// The address with the actual port, which differs if port 0 was requested.
std::string with_port(const std::string& address, kj::ConnectionReceiver& port);

}  // namespace muster::coordinator
