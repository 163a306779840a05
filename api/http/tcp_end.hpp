// TcpEnd: one end of a TCP connection, and what the kernel's table in /proc/net tells of a socket.
//
// The table is for kernels without tcp_diag: its text is read as a whole and searched for one
// connection. Pure; who reads the files is PeerLookup.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/types.h>

namespace muster::api {

// An address as the kernel files it: IPv4 that came in over an IPv6 socket is IPv4 for the peer.
struct TcpEnd {
  uint8_t family = 0;  // AF_INET or AF_INET6
  uint16_t port = 0;   // network order
  std::array<uint32_t, 4> words{};

  // Nothing: it is no IP address.
  static std::optional<TcpEnd> of(const sockaddr_storage& address);
  // The same address as a socket of IPv6 files it.
  TcpEnd mapped() const;
  bool loopback() const;
  std::string host() const;  // "127.0.0.1", "::1"
};

struct TcpSocket {
  int state = 0;
  uint64_t inode = 0;  // 0: no process holds it any more
  uid_t uid = 0;       // 0 too when the socket is closed, whoever made it

  // Is there a process whose socket this is, and has it been connected? A half-closed one has.
  bool held() const;
};

// The socket with these ends in the text of /proc/net/tcp or /proc/net/tcp6; one that is held comes
// before one that is not. Nothing: there is none.
std::optional<TcpSocket> find_in_proc(std::string_view table, const TcpEnd& own,
                                      const TcpEnd& other);

}  // namespace muster::api
