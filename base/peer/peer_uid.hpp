// Peer uid: finds out which user is at the other end of a connection on this machine.
//
// Loopback is not a security boundary on a shared node, so every connection is checked. A Unix
// socket knows its peer. For TCP, the peer's socket is looked up in the kernel: over
// NETLINK_SOCK_DIAG (about 10 µs, no privileges) or, without tcp_diag, in /proc/net.
//
// A port that accepts connections judges its peers; a client that connects finds out who serves it
// before it sends anything, because any user may take a port that is free (server_uid()).
//
// Invariant: only a socket that a process holds has a uid. The kernel lists a closed socket, with
// uid 0, until the connection is closed on both sides.
#pragma once

#include "base/fd.hpp"
#include "base/peer/tcp_end.hpp"
#include "base/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/types.h>

namespace muster {

// How a port judges a connection.
struct PeerVerdict {
  enum class Kind {
    trusted,   // root or our own user, over a Unix socket or loopback
    stranger,  // another user, or the peer has closed its socket
    unknown,   // the kernel cannot be asked, which is not the client's fault
  };
  Kind kind;
  std::string who;             // "uid 1000" or "10.0.0.7"; connections are counted per value
  std::string why;             // the reason, unless trusted
  std::optional<uid_t> uid{};  // the user, if it is known
};

// Keeps its netlink socket or tables open, so that a shortage of descriptors does not turn a peer
// into a stranger. For one thread.
class PeerLookup {
 public:
  enum class Source { best, sock_diag, proc };
  // `proc` is the directory of the tables tcp and tcp6.
  explicit PeerLookup(Source source = Source::best, std::string proc = "/proc/net");

  PeerVerdict judge(int fd);
  // The user at the other end of a connected socket. not_found: the peer is not on this machine or
  // has closed its socket. unavailable: the kernel cannot be asked; the message says why.
  Result<uid_t> uid(int fd);
  // The user of the socket on this machine that is bound to `peer` and connected to `local`.
  Result<uid_t> tcp_uid(const sockaddr_storage& peer, const sockaddr_storage& local);
  // The user who serves a connection that we made: the one who has accepted it or, while it waits
  // in a backlog, the one who listens there. Errors as of uid().
  Result<uid_t> server_uid(int fd);
  // The user who listens on this machine at this address, or at the wildcard address. Errors as of
  // uid().
  Result<uid_t> listener_uid(const sockaddr_storage& address);

  // Whether the kernel's sock_diag supports this IP protocol.
  bool diag_knows(uint8_t protocol);

 private:
  void open();
  void open_diag();
  void open_tables();
  Result<TcpSocket> ask_diag(uint8_t family, const TcpEnd& own, const TcpEnd& other);
  Result<TcpSocket> ask_tables(
      const TcpEnd& own,
      const std::function<std::optional<TcpSocket>(std::string_view table, bool mapped)>& find);
  Result<TcpSocket> ask_listener(const TcpEnd& own);
  Status look_open();  // unavailable: neither source can be read

  Source source_;
  std::string proc_;
  Fd diag_, table4_, table6_;
  std::string diag_lacks_, table_lacks_;  // why each is unavailable
  uint32_t sequence_ = 0;
};

}  // namespace muster
