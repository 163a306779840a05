// Peer uid: which user is at the other end of a connection on this machine?
//
// Loopback is no boundary on a shared node, so whoever connects is looked up: a Unix socket knows
// its peer; for TCP the kernel is asked for the peer's socket, by NETLINK_SOCK_DIAG (about 10 µs,
// no privilege needed) or, when it has no tcp_diag, by its table in /proc/net.
//
// Always holds: only a socket that a process holds has a uid. The kernel goes on listing a closed
// one, with uid 0, until the connection is over on both sides.
#pragma once

#include "api/http/tcp_end.hpp"
#include "base/result.hpp"

#include <string>
#include <sys/socket.h>
#include <sys/types.h>

namespace muster::api {

// A descriptor that is closed at the end of its owner.
class OwnFd {
 public:
  OwnFd() = default;
  explicit OwnFd(int fd) : fd_(fd) {}
  ~OwnFd();
  OwnFd(OwnFd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  OwnFd& operator=(OwnFd&& other) noexcept;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// What a port does with a connection.
struct Verdict {
  enum class Kind {
    trusted,   // root or our own user, over a Unix socket or loopback
    stranger,  // somebody else, or nobody any more
    unknown,   // the kernel could not be asked: not the client's fault
  };
  Kind kind;
  std::string who;  // "uid 1000", "10.0.0.7": connections are counted by it
  std::string why;  // not trusted: the reason
};

// Keeps open what it asks the kernel with, so that a lack of descriptors makes nobody a stranger.
// For one thread.
class PeerLookup {
 public:
  enum class Source { best, sock_diag, proc };
  // `proc` is where the tables tcp and tcp6 are.
  explicit PeerLookup(Source source = Source::best, std::string proc = "/proc/net");

  Verdict judge(int fd);
  // Of a connected socket. not_found: the peer is not on this machine, or has closed its socket;
  // unavailable: it cannot be told, and why.
  Result<uid_t> uid(int fd);
  // Of the socket on this machine whose own address is `peer` and which is connected to `local`.
  Result<uid_t> tcp_uid(const sockaddr_storage& peer, const sockaddr_storage& local);

  // Does the kernel's sock_diag know this protocol of IP?
  bool diag_knows(uint8_t protocol);

 private:
  void open();
  void open_diag();
  void open_tables();
  Result<TcpSocket> ask_diag(uint8_t family, const TcpEnd& own, const TcpEnd& other);
  Result<TcpSocket> ask_tables(const TcpEnd& own, const TcpEnd& other);

  Source source_;
  std::string proc_;
  OwnFd diag_, table4_, table6_;
  std::string diag_lacks_, table_lacks_;  // why they can't be asked
  uint32_t sequence_ = 0;
};

}  // namespace muster::api
