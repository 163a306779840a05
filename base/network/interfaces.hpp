// The network interfaces of this machine, for programs that must be told which one to use.
#pragma once

#include <string>

namespace muster {

// The interface that has this IP address; empty: none.
std::string interface_of(const std::string& ip);
// The IPv4 network of an interface, as "10.78.0.0/24"; empty: it has none.
std::string network_of(const std::string& interface);
// Whether the machine has RDMA devices (InfiniBand, RoCE, Omni-Path): MPI libraries prefer them.
bool has_rdma();

}  // namespace muster
