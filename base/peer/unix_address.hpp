// Unix address: the address of a socket in an open directory, whose full path may exceed the 108
// bytes of an address.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>

namespace muster {

// nullopt: the name is too long even so. Valid while `dir` is open.
inline std::optional<sockaddr_un> unix_address(int dir, const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const int size = std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s",
                                 dir, name.c_str());
  if (size < 0 || static_cast<size_t>(size) >= sizeof address.sun_path) return std::nullopt;
  return address;
}

}  // namespace muster
