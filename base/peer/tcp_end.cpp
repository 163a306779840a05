#include "base/peer/tcp_end.hpp"

#include <arpa/inet.h>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace muster {
namespace {

// The address as /proc/net prints it: words in host byte order, the port as a number.
std::string printed(const TcpEnd& end) {
  std::string text;
  char word[16];
  const size_t words = end.family == AF_INET ? 1 : end.words.size();
  for (size_t i = 0; i < words; ++i) {
    snprintf(word, sizeof word, "%08X", end.words[i]);
    text += word;
  }
  snprintf(word, sizeof word, ":%04X", ntohs(end.port));
  return text + word;
}

// The first socket with these ends that is `wanted`, else any other with these ends.
std::optional<TcpSocket> find_line(std::string_view table, const TcpEnd& own, const TcpEnd& other,
                                   bool (TcpSocket::*wanted)() const) {
  const std::string ends = " " + printed(own) + " " + printed(other) + " ";
  std::optional<TcpSocket> found;
  for (size_t at = 0; (at = table.find(ends, at)) != std::string_view::npos; at += ends.size()) {
    const size_t from = at + ends.size();
    const std::string rest(table.substr(from, table.find('\n', from) - from));
    unsigned state = 0, uid = 0;
    uint64_t inode = 0;
    // st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
    if (sscanf(rest.c_str(), "%x %*s %*s %*s %u %*u %" SCNu64, &state, &uid, &inode) != 3) continue;
    const TcpSocket socket{static_cast<int>(state), inode, uid};
    if (!found || (socket.*wanted)()) found = socket;
    if ((socket.*wanted)()) break;
  }
  return found;
}

}  // namespace

std::optional<TcpEnd> TcpEnd::of(const sockaddr_storage& address) {
  TcpEnd end;
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
    memcpy(end.words.data(), in.sin6_addr.s6_addr + 12, 4);
  } else {
    end.family = AF_INET6;
    memcpy(end.words.data(), in.sin6_addr.s6_addr, 16);
  }
  return end;
}

TcpEnd TcpEnd::mapped() const {
  if (family != AF_INET) return *this;
  return {AF_INET6, port, {0, 0, htonl(0xffff), words[0]}};
}

bool TcpEnd::loopback() const {
  if (family == AF_INET) return ntohl(words[0]) >> 24 == 127;
  return words[0] == 0 && words[1] == 0 && words[2] == 0 && words[3] == htonl(1);
}

std::string TcpEnd::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, words.data(), text, sizeof text);
  return text;
}

bool TcpSocket::held() const {
  switch (state) {
    case TCP_ESTABLISHED:
    case TCP_FIN_WAIT1:
    case TCP_FIN_WAIT2:
    case TCP_CLOSE_WAIT:
    case TCP_LAST_ACK:
    case TCP_CLOSING:
      return inode != 0;
    default:
      return false;
  }
}

bool TcpSocket::listens() const {
  return state == TCP_LISTEN && inode != 0;
}

std::optional<TcpSocket> find_in_proc(std::string_view table, const TcpEnd& own,
                                      const TcpEnd& other) {
  return find_line(table, own, other, &TcpSocket::held);
}

std::optional<TcpSocket> find_listener_in_proc(std::string_view table, const TcpEnd& own) {
  const TcpEnd any{own.family, own.port, {}}, none{own.family, 0, {}};
  auto found = find_line(table, own, none, &TcpSocket::listens);
  return found && found->listens() ? found : find_line(table, any, none, &TcpSocket::listens);
}

}  // namespace muster
