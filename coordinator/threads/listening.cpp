#include "coordinator/threads/listening.hpp"

#include "api/http/unix_port.hpp"
#include "base/log.hpp"
#include "base/peer/peer_uid.hpp"
#include "base/peer/users.hpp"
#include "coordinator/threads/address.hpp"

namespace muster::coordinator {
namespace {

// "the process of mallory (uid 1001) that listens there": any user can take a free port.
std::string holder_of(const std::string& address) {
  PeerLookup lookup;
  for (const std::string& host : {host_of(address), std::string("127.0.0.1"), std::string("::1")}) {
    const auto end = socket_address(host, port_of(address));
    if (!end) continue;
    if (const auto user = lookup.listener_uid(*end))
      return "the process of " + user_text(*user) + " that listens there";
  }
  return "the other process";
}

Error listen_error(const std::string& flag, const std::string& address, const kj::Exception& e) {
  struct Known {
    const char* said;
    const char* meant;
  };
  static constexpr Known kKnown[] = {
      {"Permission denied", "permission denied; ports below 1024 require root"},
      {"Cannot assign requested address", "this machine has no such address"}};
  const std::string said = e.getDescription().cStr();
  std::string meant = said;
  if (said.find("Address already in use") != std::string::npos)
    meant = "address already in use; choose another port (0 picks a free one) or stop " +
            holder_of(address);
  for (const Known& known : kKnown) {
    if (said.find(known.said) != std::string::npos) meant = known.meant;
  }
  return {Errc::unavailable, flag + " " + address + ": " + meant, {}};
}

}  // namespace

Result<kj::Own<kj::ConnectionReceiver>> listen_on(kj::AsyncIoContext& io, const std::string& flag,
                                                  const std::string& address, mode_t mode) {
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix)) {
    auto port = api::listen_unix(address.substr(kUnix.size()), mode);
    if (!port.ok()) return Error{Errc::unavailable, flag + " " + port.error().message, {}};
    return io.lowLevelProvider->wrapListenSocketFd(
        port->release(), kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP |
                             kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                             kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
  }
  kj::Own<kj::ConnectionReceiver> port;
  auto failed = kj::runCatchingExceptions(
      [&] { port = io.provider->getNetwork().parseAddress(address).wait(io.waitScope)->listen(); });
  KJ_IF_MAYBE (e, failed) return listen_error(flag, address, *e);
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
