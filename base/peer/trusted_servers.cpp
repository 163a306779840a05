#include "base/peer/trusted_servers.hpp"

#include "base/files/owned_path.hpp"
#include "base/peer/users.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster {
namespace {

// Whether root made this directory for its owner: a user cannot create one in /run.
bool belongs_to(const std::string& dir, uid_t user) {
  struct stat info = {};
  return lstat(dir.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == user &&
         (info.st_mode & S_IWOTH) == 0;
}

Error on_another_machine(const std::string& address) {
  return invalid("--coordinator " + address +
                 ": it is on another machine, where only TLS proves who answers; use --token-file "
                 "with a token from `muster token create --node`, or --insecure on a network where "
                 "anyone may pose as the coordinator");
}

}  // namespace

TrustedServers::TrustedServers(std::string coordinator_user, Remote remote, std::string site_dir)
    : coordinator_user_(std::move(coordinator_user)),
      remote_(remote),
      site_dir_(std::move(site_dir)) {}

// The user database is asked last, since it may be slow.
bool TrustedServers::trust(uid_t user) const {
  if (user == 0 || user == geteuid() || belongs_to(site_dir_, user)) return true;
  return !coordinator_user_.empty() && find_user(coordinator_user_) == user;
}

std::optional<Error> TrustedServers::refuses_address(const std::string& address) const {
  sockaddr_storage end = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(end);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(end);
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1)
    v4.sin_family = AF_INET;
  else if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1)
    v6.sin6_family = AF_INET6;
  const auto parsed = TcpEnd::of(end);
  if (remote_ == Remote::accepted || !parsed || parsed->loopback()) return std::nullopt;
  return on_another_machine(address);
}

Status TrustedServers::check(int fd, const std::string& address) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0)
    return invalid("connection reset");
  const auto end = TcpEnd::of(peer);
  if (peer.ss_family != AF_UNIX && !(end && end->loopback())) {
    if (remote_ == Remote::accepted) return Nothing{};
    return on_another_machine(address);
  }
  if (!lookup_) lookup_ = std::make_unique<PeerLookup>();
  const auto user = lookup_->server_uid(fd);
  if (!user && user.error().code == Errc::not_found) return invalid("connection reset");
  if (!user)
    return invalid("cannot determine whose process serves it (" + user.error().message +
                   "), so nothing was sent; use the coordinator's Unix socket, unix:PATH");
  if (trust(*user)) return Nothing{};
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix) && only_by(*user, address.substr(kUnix.size()))) return Nothing{};
  return invalid(address + " is served by " + user_text(*user) +
                 ", who is not trusted to be the coordinator; nothing was sent. If the coordinator "
                 "runs as that user, use --coordinator-user " +
                 user_name(*user).value_or(std::to_string(*user)));
}

}  // namespace muster
