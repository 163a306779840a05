#include "api/http/unix_port.hpp"

#include "base/peer/unix_address.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::api {
namespace {

Error failed(const std::string& path, const std::string& what) {
  return Error{Errc::invalid, path + ": " + what, {}};
}

Fd new_socket() {
  return Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Removes a socket that no process listens on.
Status remove_stale(int dir, const std::string& name, const std::string& path,
                    const sockaddr_un& address) {
  struct stat found = {};
  if (fstatat(dir, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return Nothing{};
  if (!S_ISSOCK(found.st_mode)) return failed(path, "exists and is not a socket");
  const Fd probe = new_socket();
  if (!probe) return failed(path, strerror(errno));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EAGAIN)
    return failed(path, "another process listens on it");
  if (errno != ECONNREFUSED) return failed(path, strerror(errno));
  if (unlinkat(dir, name.c_str(), 0) != 0 && errno != ENOENT)
    return failed(path,
                  std::string("left by an earlier process, cannot be removed: ") + strerror(errno));
  return Nothing{};
}

}  // namespace

Result<Fd> listen_unix(const std::string& path, mode_t mode) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty()) return failed(path, "must be the path of a socket, not of a directory");
  const Fd dir(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return failed(folder, strerror(errno));
  const auto address = unix_address(dir.get(), name);
  if (!address) return failed(path, "the name is too long");
  if (Status s = remove_stale(dir.get(), name, path, *address); !s) return s.error();
  Fd port = new_socket();
  if (!port) return failed(path, strerror(errno));
  if (bind(port.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return failed(path, strerror(errno));
  // No one can connect before listen(), so the mode is right from the start.
  if (fchmodat(dir.get(), name.c_str(), mode, 0) != 0 || listen(port.get(), SOMAXCONN) != 0)
    return failed(path, strerror(errno));
  return port;
}

}  // namespace muster::api
