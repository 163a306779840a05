#include "base/peer/local_sockets.hpp"

#include "base/fd.hpp"
#include "base/peer/trusted_servers.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster {
namespace {

bool is_own_dir(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

std::string runtime_dir() {
  if (geteuid() == 0 || is_own_dir(kSiteRuntimeDir)) return kSiteRuntimeDir;
  const char* given = std::getenv("XDG_RUNTIME_DIR");
  if (given != nullptr && given[0] == '/' && is_own_dir(given))
    return std::string(given) + "/muster";
  return "/tmp/muster-" + std::to_string(geteuid());
}

bool listens(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::strcpy(address.sun_path, path.c_str());
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe &&
         (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
          errno == EAGAIN);
}

}  // namespace

Result<std::string> make_runtime_dir() {
  const std::string path = runtime_dir();
  const mode_t mode = path == kSiteRuntimeDir ? 0755 : 0700;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return invalid("cannot make " + path + ": " + std::strerror(errno));
  if (!is_own_dir(path)) return invalid(path + " belongs to another user");
  if (chmod(path.c_str(), mode) != 0)
    return invalid("cannot set the mode of " + path + ": " + std::strerror(errno));
  return path;
}

std::vector<std::string> socket_paths(const std::string& name) {
  const std::string own = runtime_dir();
  std::vector<std::string> paths{own + "/" + name};
  if (own != kSiteRuntimeDir) paths.push_back(std::string(kSiteRuntimeDir) + "/" + name);
  return paths;
}

std::optional<std::string> find_socket(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (listens(path)) return path;
  if (paths.size() > 1 && access(paths.back().c_str(), W_OK) == 0) return paths.back();
  return std::nullopt;
}

}  // namespace muster
