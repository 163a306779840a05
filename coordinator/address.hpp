// Addresses that may be served without --insecure: loopback, and Unix sockets. This API runs
// programs.
#pragma once

#include "base/result.hpp"

#include <string>

namespace muster::coordinator {

// Refuses (invalid) an address that is neither loopback nor a Unix socket, and says why.
Status check_address(const std::string& flag, const std::string& address, bool insecure);

// The host of HOST:PORT, [V6]:PORT.
std::string host_of(const std::string& address);

}  // namespace muster::coordinator
