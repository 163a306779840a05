#include "api/http/ends.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace muster::api {
namespace {

// The address as text; empty unless it is an IP address.
std::string host_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  else if (address.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text,
              sizeof text);
  return text;
}

}  // namespace

int fd_of(kj::AsyncIoStream& stream) {
  KJ_IF_MAYBE (fd, stream.getFd()) return *fd;
  return -1;
}

std::string local_host(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (fd < 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return host_text(address);
}

std::string source_of(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (fd < 0 || getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address.ss_family == AF_UNIX ? "unix" : host_text(address);
}

}  // namespace muster::api
