#include "coordinator/threads/listening.hpp"

#include "api/http/unix_port.hpp"

namespace muster::coordinator {
namespace {

Error listen_error(const std::string& flag, const std::string& address, const kj::Exception& e) {
  struct Known {
    const char* said;
    const char* meant;
  };
  static constexpr Known kKnown[] = {
      {"Address already in use",
       "address already in use; choose another port (0 picks a free one) or stop the other "
       "process"},
      {"Permission denied", "permission denied; ports below 1024 require root"},
      {"Cannot assign requested address", "this machine has no such address"}};
  const std::string said = e.getDescription().cStr();
  std::string meant = said;
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

std::string with_port(const std::string& address, kj::ConnectionReceiver& port) {
  if (address.starts_with("unix:")) return address;
  return address.substr(0, address.rfind(':')) + ":" + std::to_string(port.getPort());
}

}  // namespace muster::coordinator
