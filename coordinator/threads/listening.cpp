#include "coordinator/threads/listening.hpp"

#include "api/http/unix_port.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/network/address_list.hpp"
#include "base/peer/peer_uid.hpp"
#include "base/peer/users.hpp"
#include "coordinator/threads/address.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <sys/socket.h>
#include <utility>

namespace muster::coordinator {
namespace {

// "the process of mallory (uid 1001) that listens there": any user can take a free port.
std::string holder_of(const std::string& address) {
  PeerLookup lookup;
  for (const std::string& host :
       {address_host(address), std::string("127.0.0.1"), std::string("::1")}) {
    const auto end = socket_address(host, port_of(address));
    if (!end) continue;
    if (const auto user = lookup.listener_uid(*end))
      return "the process of " + user_text(*user) + " that listens there";
  }
  return "the other process";
}

Error listen_error(const std::string& flag, const std::string& address, const std::string& said) {
  struct Known {
    const char* said;
    const char* meant;
  };
  static constexpr Known kKnown[] = {
      {"Permission denied", "permission denied; ports below 1024 require root"},
      {"Cannot assign requested address", "this machine has no such address"}};
  std::string meant = said;
  if (said.find("Address already in use") != std::string::npos)
    meant = "address already in use; choose another port " +
            std::string(flag == "--peers" ? "" : "(0 picks a free one) ") + "or stop " +
            holder_of(address);
  for (const Known& known : kKnown) {
    if (said.find(known.said) != std::string::npos) meant = known.meant;
  }
  return {Errc::unavailable, flag + " " + address + ": " + meant, {}};
}

// The ports that stay open, by flag and address. Each role that listens has a duplicate of the
// descriptor.
class KeptPorts {
 public:
  static KeptPorts& of_process() {
    static KeptPorts ports;
    return ports;
  }
  void keep() {
    const std::lock_guard lock(mutex_);
    keeps_ = true;
  }
  // A duplicate of the port at this address, which `open` opens if it is not; none: ports are not
  // kept.
  Result<std::optional<Fd>> find(const std::string& flag, const std::string& address,
                                 const std::function<Result<Fd>()>& open) {
    const std::lock_guard lock(mutex_);
    if (!keeps_ || !of_both_roles(flag)) return std::optional<Fd>();
    const std::pair key(flag, address);
    auto it = ports_.find(key);
    if (it == ports_.end()) {
      auto opened = open();
      if (!opened) return opened.error();
      it = ports_.emplace(key, std::move(*opened)).first;
    }
    return std::optional(Fd(fcntl(it->second.get(), F_DUPFD_CLOEXEC, 0)));
  }

 private:
  // Whether a coordinator has this port both when it leads and when it follows.
  static bool of_both_roles(const std::string& flag) {
    return flag.starts_with("--api") || flag == "--metrics-listen";
  }

  std::mutex mutex_;
  bool keeps_ = false;
  std::map<std::pair<std::string, std::string>, Fd> ports_;
};

// As KJ listens: at the first address of the host.
Result<Fd> listen_tcp(const std::string& flag, const std::string& address) {
  const auto failed = [&](const std::string& why) { return listen_error(flag, address, why); };
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  std::string host = address_host(address);
  const std::string port = std::to_string(port_of(address));
  if (const int error =
          getaddrinfo(host == "*" ? nullptr : host.c_str(), port.c_str(), &hints, &found);
      error != 0)
    return failed(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> freed(found, freeaddrinfo);
  Fd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int one = 1;
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    return failed(std::strerror(errno));
  return fd;
}

kj::Own<kj::ConnectionReceiver> wrapped(kj::AsyncIoContext& io, Fd port) {
  return io.lowLevelProvider->wrapListenSocketFd(port.release(),
                                                 kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP |
                                                     kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                                     kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
}

}  // namespace

void keep_ports() {
  KeptPorts::of_process().keep();
}

Result<kj::Own<kj::ConnectionReceiver>> listen_on(kj::AsyncIoContext& io, const std::string& flag,
                                                  const std::string& address, mode_t mode) {
  constexpr std::string_view kUnix = "unix:";
  const bool local = address.starts_with(kUnix);
  const auto open = [&]() -> Result<Fd> {
    if (!local) return listen_tcp(flag, address);
    auto port = api::listen_unix(address.substr(kUnix.size()), mode);
    if (!port.ok()) return Error{Errc::unavailable, flag + " " + port.error().message, {}};
    return std::move(*port);
  };
  auto kept = KeptPorts::of_process().find(flag, address, open);
  if (!kept) return kept.error();
  if (*kept) return wrapped(io, std::move(**kept));
  if (local) {
    auto port = open();
    if (!port) return port.error();
    return wrapped(io, std::move(*port));
  }
  kj::Own<kj::ConnectionReceiver> port;
  auto failed = kj::runCatchingExceptions(
      [&] { port = io.provider->getNetwork().parseAddress(address).wait(io.waitScope)->listen(); });
  KJ_IF_MAYBE (e, failed) return listen_error(flag, address, e->getDescription().cStr());
  return kj::mv(port);
}

Result<kj::Maybe<kj::Own<kj::ConnectionReceiver>>> listen_also(kj::AsyncIoContext& io,
                                                               const std::string& flag,
                                                               const std::string& path, mode_t mode,
                                                               bool required) {
  using Port = kj::Maybe<kj::Own<kj::ConnectionReceiver>>;
  if (path.empty()) return Port();
  auto opened = listen_on(io, flag, "unix:" + path, mode);
  if (opened) return Port(kj::mv(*opened));
  if (required) return opened.error();
  log::warn("{}; serving without this socket", opened.error().message);
  return Port();
}

std::string with_port(const std::string& address, kj::ConnectionReceiver& port) {
  if (address.starts_with("unix:")) return address;
  return address.substr(0, address.rfind(':')) + ":" + std::to_string(port.getPort());
}

}  // namespace muster::coordinator
