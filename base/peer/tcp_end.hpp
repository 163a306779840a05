// TcpEnd: one end of a TCP connection, and a parser for the kernel's socket table in /proc/net.
//
// The table is for kernels without tcp_diag: its whole text is searched for one connection. Pure;
// PeerLookup reads the files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/types.h>

namespace muster {

// An address as the peer sees it: IPv4 over an IPv6 socket is plain IPv4.
struct TcpEnd {
  uint8_t family = 0;  // AF_INET or AF_INET6
  uint16_t port = 0;   // network order
  std::array<uint32_t, 4> words{};

  // Nothing if it is not an IP address.
  static std::optional<TcpEnd> of(const sockaddr_storage& address);
  // The same address in the form of an IPv6 socket: IPv4 becomes IPv4-mapped.
  TcpEnd mapped() const;
  bool loopback() const;
  std::string host() const;  // "127.0.0.1", "::1"
};

struct TcpSocket {
  int state = 0;
  uint64_t inode = 0;  // 0: no process holds it
  uid_t uid = 0;       // also 0 once the socket is closed

  // Whether it is connected (possibly half-closed) and held by a process.
  bool held() const;
  bool listens() const;
};

// Finds the socket with these ends in the text of /proc/net/tcp or /proc/net/tcp6, preferring one
// that is held. Nothing if there is none.
std::optional<TcpSocket> find_in_proc(std::string_view table, const TcpEnd& own,
                                      const TcpEnd& other);

// Finds the socket that listens at this address, or at the wildcard of its family, in the same
// text.
std::optional<TcpSocket> find_listener_in_proc(std::string_view table, const TcpEnd& own);

}  // namespace muster
