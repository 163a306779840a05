// Ends: the addresses of a connection, for logs and checks.
#pragma once

#include <kj/async-io.h>

#include <string>

namespace muster::api {

int fd_of(kj::AsyncIoStream& stream);  // -1: it has none
// Our own address, without port; empty unless it is an IP connection.
std::string local_host(int fd);
// The peer: "unix", or its address without port; empty if unknown.
std::string source_of(int fd);

}  // namespace muster::api
