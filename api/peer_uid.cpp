#include "api/peer_uid.hpp"

#include <arpa/inet.h>
#include <cstring>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

namespace muster::api {
namespace {

// An address as the kernel files it: IPv4 that came in over an IPv6 socket is IPv4 for the peer.
struct End {
  uint8_t family = 0;
  uint16_t port = 0;  // network order
  uint32_t words[4] = {};
};

std::optional<End> end_of(const sockaddr_storage& address) {
  End end;
  if (address.ss_family == AF_INET) {
    sockaddr_in in;
    memcpy(&in, &address, sizeof in);
    end.family = AF_INET;
    end.port = in.sin_port;
    end.words[0] = in.sin_addr.s_addr;
    return end;
  }
  if (address.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 in;
  memcpy(&in, &address, sizeof in);
  end.port = in.sin6_port;
  if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) {
    end.family = AF_INET;
    memcpy(end.words, in.sin6_addr.s6_addr + 12, 4);
  } else {
    end.family = AF_INET6;
    memcpy(end.words, in.sin6_addr.s6_addr, 16);
  }
  return end;
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Asks for the socket of one family with these ends.
std::optional<uid_t> lookup(int netlink, uint8_t family, const End& own, const End& other) {
  struct {
    nlmsghdr head;
    inet_diag_req_v2 request;
  } ask = {};
  ask.head.nlmsg_len = sizeof ask;
  ask.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.head.nlmsg_flags = NLM_F_REQUEST;
  ask.request.sdiag_family = family;
  ask.request.sdiag_protocol = IPPROTO_TCP;
  ask.request.idiag_states = ~0u;
  ask.request.id.idiag_sport = own.port;
  ask.request.id.idiag_dport = other.port;
  ask.request.id.idiag_cookie[0] = ask.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (family == AF_INET6 && own.family == AF_INET) {  // an IPv6 socket that speaks IPv4
    ask.request.id.idiag_src[2] = ask.request.id.idiag_dst[2] = htonl(0xffff);
    ask.request.id.idiag_src[3] = own.words[0];
    ask.request.id.idiag_dst[3] = other.words[0];
  } else {
    memcpy(ask.request.id.idiag_src, own.words, sizeof own.words);
    memcpy(ask.request.id.idiag_dst, other.words, sizeof other.words);
  }
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  if (sendto(netlink, &ask, sizeof ask, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) !=
      static_cast<ssize_t>(sizeof ask))
    return std::nullopt;
  alignas(nlmsghdr) char buffer[8192];
  const ssize_t n = recv(netlink, buffer, sizeof buffer, 0);
  if (n < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
  const auto* head = reinterpret_cast<const nlmsghdr*>(buffer);
  if (!NLMSG_OK(head, static_cast<uint32_t>(n)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      head->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
    return std::nullopt;
  inet_diag_msg found;
  memcpy(&found, NLMSG_DATA(head), sizeof found);
  // The kernel answers with a listener when no connection has these ends.
  if (found.id.idiag_sport != own.port || found.id.idiag_dport != other.port) return std::nullopt;
  return found.idiag_uid;
}

}  // namespace

std::optional<uid_t> tcp_socket_uid(const sockaddr_storage& peer, const sockaddr_storage& local) {
  const auto own = end_of(peer);
  const auto other = end_of(local);
  if (!own || !other || own->family != other->family) return std::nullopt;
  Fd netlink(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (netlink.get() < 0) return std::nullopt;
  const timeval patience = {1, 0};
  setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (auto uid = lookup(netlink.get(), own->family, *own, *other)) return uid;
  if (own->family == AF_INET) return lookup(netlink.get(), AF_INET6, *own, *other);
  return std::nullopt;
}

std::optional<uid_t> peer_uid(int fd) {
  sockaddr_storage peer = {}, local = {};
  socklen_t peer_size = sizeof peer, local_size = sizeof local;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) return std::nullopt;
  if (local.ss_family == AF_UNIX) {
    ucred who = {};
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return std::nullopt;
    return who.uid;
  }
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return std::nullopt;
  return tcp_socket_uid(peer, local);
}

bool is_loopback(const sockaddr_storage& address) {
  const auto end = end_of(address);
  if (!end) return false;
  if (end->family == AF_INET) return ntohl(end->words[0]) >> 24 == 127;
  return end->words[0] == 0 && end->words[1] == 0 && end->words[2] == 0 &&
         end->words[3] == htonl(1);
}

bool peer_trusted(int fd) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  if (peer.ss_family != AF_UNIX && !is_loopback(peer)) return false;
  const auto uid = peer_uid(fd);
  return uid && (*uid == 0 || *uid == geteuid());
}

}  // namespace muster::api
