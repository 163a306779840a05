// Addresses to serve on. Without --insecure only loopback and Unix sockets are allowed, because
// this API runs programs.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace muster::coordinator {

// `invalid`, with the reason: a malformed address, or, unless `insecure`, one that is neither
// loopback nor a Unix socket.
Status check_address(const std::string& flag, const std::string& address, bool insecure);

// `invalid`: neither empty nor ADDRESS:PORT.
Status check_any_address(const std::string& flag, const std::string& address);

// The port of HOST:PORT or [V6]:PORT; 0: there is none.
uint16_t port_of(const std::string& address);

// Whether this host stands for all addresses of the machine.
bool is_wildcard(const std::string& host);

// The name of this machine; empty: unknown.
std::string own_host_name();

// The host names under which clients on other machines may reach a server at this address: `hosts`
// are those that the user gives.
std::vector<std::string> server_names(const std::vector<std::string>& hosts,
                                      const std::string& address);

// As the system takes it; absent: `host` is not an IP address.
std::optional<sockaddr_storage> socket_address(const std::string& host, uint16_t port);

}  // namespace muster::coordinator
