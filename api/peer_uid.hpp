// Peer uid: which user is at the other end of a connection on this machine?
//
// Loopback is no boundary on a shared node, so whoever connects is looked up: a Unix socket knows
// its peer, for TCP the kernel is asked for the peer's socket (NETLINK_SOCK_DIAG, about 10 µs, no
// privilege needed). libc only.
#pragma once

#include <optional>
#include <sys/socket.h>
#include <sys/types.h>

namespace muster::api {

// Of a connected socket. Nothing: the peer is not on this machine, is gone, or cannot be told.
std::optional<uid_t> peer_uid(int fd);
// Of the TCP socket on this machine whose own address is `peer` and which is connected to `local`.
std::optional<uid_t> tcp_socket_uid(const sockaddr_storage& peer, const sockaddr_storage& local);
// 127.0.0.0/8, ::1, and these mapped into IPv6.
bool is_loopback(const sockaddr_storage& address);
// May this connection's peer use us: root or our own user, over a Unix socket or loopback?
bool peer_trusted(int fd);

}  // namespace muster::api
