#include "base/peer/peer_uid.hpp"

#include "base/log.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

namespace muster {
namespace {

constexpr int kTableLooks = 3;            // a read can miss a line while the table changes
constexpr int kServerLooks = 3;           // a server may accept while we look
constexpr size_t kTableMax = 256u << 20;  // bytes

Error unavailable(std::string why) {
  return {Errc::unavailable, std::move(why), {}};
}
Error no_socket() {
  return {Errc::not_found, "no process on this machine holds the other end", {}};
}

struct DiagRequest {
  nlmsghdr head;
  inet_diag_req_v2 request;
};

DiagRequest diag_request(uint8_t family, uint8_t protocol, uint16_t flags, uint32_t sequence) {
  DiagRequest ask = {};
  ask.head.nlmsg_len = sizeof ask;
  ask.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  ask.head.nlmsg_seq = sequence;
  ask.request.sdiag_family = family;
  ask.request.sdiag_protocol = protocol;
  return ask;
}

// Returns the kernel's answer to this request, in `buffer`; skips answers to earlier requests.
Result<const nlmsghdr*> exchange(int fd, const DiagRequest& ask, char* buffer, size_t size) {
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  ssize_t n;
  do n = sendto(fd, &ask, sizeof ask, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof ask))
    return unavailable(std::string("sock_diag: ") + strerror(errno));
  for (;;) {
    sockaddr_nl from = {};
    socklen_t from_size = sizeof from;
    n = recvfrom(fd, buffer, size, 0, reinterpret_cast<sockaddr*>(&from), &from_size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unavailable(std::string("sock_diag: ") + strerror(errno));
    const auto* head = reinterpret_cast<const nlmsghdr*>(buffer);
    if (from.nl_pid == 0 && NLMSG_OK(head, static_cast<uint32_t>(n)) &&
        head->nlmsg_seq == ask.head.nlmsg_seq)
      return head;
  }
}

// The number in a message of type NLMSG_ERROR or NLMSG_DONE: 0 or -errno.
int number_in(const nlmsghdr* head) {
  int number = 0;
  if (head->nlmsg_len >= NLMSG_LENGTH(sizeof number))
    memcpy(&number, NLMSG_DATA(head), sizeof number);
  return number;
}

Result<std::string> read_table(int fd) {
  std::string text;
  for (;;) {
    const size_t had = text.size();
    text.resize(had + (64u << 10));
    const ssize_t n = pread(fd, text.data() + had, text.size() - had, static_cast<off_t>(had));
    if (n < 0 && errno != EINTR) return unavailable(strerror(errno));
    text.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return text;
    if (text.size() > kTableMax) return unavailable("it is too long");
  }
}

}  // namespace

PeerLookup::PeerLookup(Source source, std::string proc) : source_(source), proc_(std::move(proc)) {
  open();
}

void PeerLookup::open() {
  if (source_ != Source::proc) open_diag();
  if (diag_ || source_ == Source::sock_diag) return;
  open_tables();
  if (table4_ && source_ == Source::best)
    log::warn("{}: connections are looked up in {}/tcp instead, which is slower", diag_lacks_,
              proc_);
}

void PeerLookup::open_diag() {
  diag_ = Fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!diag_) {
    diag_lacks_ = std::string("no socket for sock_diag: ") + strerror(errno);
    return;
  }
  const timeval patience = {1, 0};
  setsockopt(diag_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (diag_knows(IPPROTO_TCP)) return;
  diag_ = Fd();
  diag_lacks_ = "this kernel has no tcp_diag";
}

void PeerLookup::open_tables() {
  table4_ = Fd(::open((proc_ + "/tcp").c_str(), O_RDONLY | O_CLOEXEC));
  if (!table4_) table_lacks_ = proc_ + "/tcp cannot be read: " + strerror(errno);
  // Missing on a kernel without IPv6, which has no sockets to list in it.
  table6_ = Fd(::open((proc_ + "/tcp6").c_str(), O_RDONLY | O_CLOEXEC));
}

// Requests a dump that matches no state. It ends at once, with an error if the kernel has no
// handler for the protocol.
bool PeerLookup::diag_knows(uint8_t protocol) {
  alignas(nlmsghdr) char buffer[8192];
  auto answer = exchange(diag_.get(), diag_request(AF_INET, protocol, NLM_F_DUMP, ++sequence_),
                         buffer, sizeof buffer);
  return answer && (*answer)->nlmsg_type == NLMSG_DONE && number_in(*answer) == 0;
}

Result<TcpSocket> PeerLookup::ask_diag(uint8_t family, const TcpEnd& own, const TcpEnd& other) {
  DiagRequest ask = diag_request(family, IPPROTO_TCP, 0, ++sequence_);
  const TcpEnd source = family == AF_INET6 ? own.mapped() : own;
  const TcpEnd target = family == AF_INET6 ? other.mapped() : other;
  ask.request.idiag_states = ~0u;
  ask.request.id.idiag_sport = own.port;
  ask.request.id.idiag_dport = other.port;
  memcpy(ask.request.id.idiag_src, source.words.data(), sizeof source.words);
  memcpy(ask.request.id.idiag_dst, target.words.data(), sizeof target.words);
  ask.request.id.idiag_cookie[0] = ask.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  alignas(nlmsghdr) char buffer[8192];
  auto answer = exchange(diag_.get(), ask, buffer, sizeof buffer);
  if (!answer) return answer.error();
  const nlmsghdr* head = *answer;
  if (head->nlmsg_type == NLMSG_ERROR && number_in(head) != -ENOENT)
    return unavailable(std::string("sock_diag: ") + strerror(-number_in(head)));
  if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      head->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
    return no_socket();
  inet_diag_msg found;
  memcpy(&found, NLMSG_DATA(head), sizeof found);
  // The kernel answers with a listener when no connection has these ends.
  if (found.id.idiag_sport != own.port || found.id.idiag_dport != other.port) return no_socket();
  return TcpSocket{found.idiag_state, found.idiag_inode, found.idiag_uid};
}

// Looks in both tables: an IPv6 socket may have an IPv4 peer.
Result<TcpSocket> PeerLookup::ask_tables(
    const TcpEnd& own,
    const std::function<std::optional<TcpSocket>(std::string_view table, bool mapped)>& find) {
  for (int look = 0; look < kTableLooks; ++look) {
    if (own.family == AF_INET) {
      auto table = read_table(table4_.get());
      if (!table) return unavailable(proc_ + "/tcp cannot be read: " + table.error().message);
      if (auto found = find(*table, false)) return *found;
    }
    if (!table6_) continue;
    auto table = read_table(table6_.get());
    if (!table) return unavailable(proc_ + "/tcp6 cannot be read: " + table.error().message);
    if (auto found = find(*table, true)) return *found;
  }
  return no_socket();
}

Status PeerLookup::look_open() {
  if (!diag_ && !table4_) open();  // opening failed earlier, perhaps for lack of descriptors
  if (diag_ || table4_) return Nothing{};
  std::string lacks = diag_lacks_;
  if (!lacks.empty() && !table_lacks_.empty()) lacks += ", and ";
  return unavailable(lacks + table_lacks_);
}

// The kernel looks up a listener as it does for an incoming connection, including the wildcard
// addresses and IPv6 sockets that accept IPv4.
Result<TcpSocket> PeerLookup::ask_listener(const TcpEnd& own) {
  const TcpEnd none{own.family, 0, {}};
  if (diag_) return ask_diag(own.family, own, none);
  return ask_tables(own, [&own](std::string_view table, bool mapped) {
    return find_listener_in_proc(table, mapped ? own.mapped() : own);
  });
}

Result<uid_t> PeerLookup::listener_uid(const sockaddr_storage& address) {
  const auto own = TcpEnd::of(address);
  if (!own) return no_socket();
  if (Status s = look_open(); !s) return s.error();
  auto found = ask_listener(*own);
  if (!found) return found.error();
  if (!found->listens()) return no_socket();
  return found->uid;
}

Result<uid_t> PeerLookup::tcp_uid(const sockaddr_storage& peer, const sockaddr_storage& local) {
  const auto own = TcpEnd::of(peer);
  const auto other = TcpEnd::of(local);
  if (!own || !other || own->family != other->family) return no_socket();
  if (Status s = look_open(); !s) return s.error();
  Result<TcpSocket> found = no_socket();
  if (diag_) {
    found = ask_diag(own->family, *own, *other);
    if (own->family == AF_INET && !found && found.error().code == Errc::not_found)
      found = ask_diag(AF_INET6, *own, *other);
  } else {
    found = ask_tables(*own, [&](std::string_view table, bool mapped) {
      return find_in_proc(table, mapped ? own->mapped() : *own, mapped ? other->mapped() : *other);
    });
  }
  if (!found) return found.error();
  if (!found->held()) return no_socket();
  return found->uid;
}

Result<uid_t> PeerLookup::uid(int fd) {
  sockaddr_storage peer = {}, local = {};
  socklen_t peer_size = sizeof peer, local_size = sizeof local;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) return no_socket();
  if (local.ss_family == AF_UNIX) {
    ucred who = {};
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return no_socket();
    return who.uid;
  }
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return no_socket();
  auto found = tcp_uid(peer, local);
  // Once our own socket has been reset, another connection may reuse its addresses.
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_state == TCP_CLOSE)
    return no_socket();
  return found;
}

Result<uid_t> PeerLookup::server_uid(int fd) {
  for (int look = 0; look < kServerLooks; ++look) {
    auto accepted = uid(fd);
    if (accepted || accepted.error().code != Errc::not_found) return accepted;
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return no_socket();
    auto listener = listener_uid(peer);
    if (!listener) return listener;
    // Still not accepted: then it waits in the backlog of this listener, since a listener that is
    // closed resets what waits there.
    accepted = uid(fd);
    if (!accepted && accepted.error().code == Errc::not_found) return listener;
  }
  return no_socket();
}

PeerVerdict PeerLookup::judge(int fd) {
  using Kind = PeerVerdict::Kind;
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0)
    return {Kind::stranger, "", no_socket().message};
  if (const auto end = TcpEnd::of(peer); end && !end->loopback())
    return {Kind::stranger, end->host(), "it comes from " + end->host() + ", not from loopback"};
  const auto user = uid(fd);
  if (!user && user.error().code == Errc::not_found)
    return {Kind::stranger, "", user.error().message};
  if (!user) return {Kind::unknown, "", "cannot determine its user: " + user.error().message};
  const std::string who = "uid " + std::to_string(*user);
  if (*user == 0 || *user == geteuid()) return {Kind::trusted, who, "", *user};
  return {Kind::stranger, who, "it belongs to " + who, *user};
}

}  // namespace muster
