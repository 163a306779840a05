// Listening: on an address of either kind; why it fails, and what to do about it.
#pragma once

#include "base/result.hpp"

#include <kj/async-io.h>
#include <kj/exception.h>

#include <string>
#include <sys/types.h>

namespace muster::coordinator {

// Listens on HOST:PORT, or on unix:PATH with this mode. `flag` is named in errors.
Result<kj::Own<kj::ConnectionReceiver>> listen_on(kj::AsyncIoContext& io, const std::string& flag,
                                                  const std::string& address, mode_t mode);

// The address with the port that is really listened on, which matters if it was 0.
std::string with_port(const std::string& address, kj::ConnectionReceiver& port);

}  // namespace muster::coordinator
