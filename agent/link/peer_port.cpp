#include "agent/link/peer_port.hpp"

#include "base/log.hpp"
#include "base/secret.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <utility>

namespace muster::agent {
namespace {

constexpr size_t kGreetingBytes = 16;
constexpr uint32_t kPortsTried = 100;
constexpr Millis kIdleLookMs = 30'000, kPeerAcceptAgainMs = 1'000;

// "no route to host"
std::string error_text(int error) {
  std::string text = strerror(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

struct SocketName {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// Of a numeric address; nullopt: it is none.
std::optional<SocketName> socket_name(const std::string& ip, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(ip.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return std::nullopt;
  SocketName name;
  std::memcpy(&name.address, found->ai_addr, found->ai_addrlen);
  name.size = found->ai_addrlen;
  freeaddrinfo(found);
  return name;
}

}  // namespace

// All peers of a call.
struct PeerPort::Trials {
  std::string from;
  std::vector<Peer> peers;
  Patience patience;
  size_t next = 0;  // to try
  std::vector<std::string> why{};
};

// One attempt to connect.
struct PeerPort::Trial {
  Trial(kj::UnixEventPort& events, Fd socket, std::string greeting)
      : fd(std::move(socket)),
        wanted(std::move(greeting)),
        seen(events, fd.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ_WRITE) {}
  Fd fd;
  const std::string wanted;
  std::string heard{};
  bool connected = false;
  kj::UnixEventPort::FdObserver seen;
};

uint16_t PeerPort::open(const std::string& ip) {
  asked_ms_ = boot_now();
  if (port_.get() != nullptr && ip_ == ip) return static_cast<uint16_t>(port_->getPort());
  if (!ports_) return 0;
  const uint32_t last = std::min<uint32_t>(ports_->last, ports_->first + kPortsTried - 1);
  for (uint32_t port = ports_->first; port <= last; ++port)
    if (listen(ip, static_cast<uint16_t>(port))) return static_cast<uint16_t>(port_->getPort());
  return 0;
}

bool PeerPort::listen(const std::string& ip, uint16_t port) {
  auto name = socket_name(ip, port);
  if (!name) return false;
  kj::Own<kj::ConnectionReceiver> opened;
  const auto failure = kj::runCatchingExceptions([this, &name, &opened] {
    opened = io_.provider->getNetwork().getSockaddr(&name->address, name->size)->listen();
  });
  KJ_IF_MAYBE (exception, failure) {
    log::debug("port {} of {} for other nodes: {}", port, ip, exception->getDescription().cStr());
    return false;
  }
  accepting_ = nullptr;
  port_ = kj::mv(opened);
  ip_ = ip;
  greeting_ = random_hex(kGreetingBytes);
  accepting_ = accept()
                   .exclusiveJoin(close_when_idle())
                   .then([this] { port_ = nullptr; })
                   .eagerlyEvaluate(nullptr);
  return true;
}

kj::Promise<void> PeerPort::accept() {
  return port_->accept()
      .then([this](kj::Own<kj::AsyncIoStream> stream) {
        auto sent = stream->write(greeting_.data(), greeting_.size());
        return sent.attach(kj::mv(stream)).catch_([](kj::Exception&&) {});  // the peer has gone
      })
      .catch_([this](kj::Exception&&) {  // no descriptors are left, for example
        return timer_.afterDelay(kPeerAcceptAgainMs * kj::MILLISECONDS);
      })
      .then([this] { return accept(); });
}

kj::Promise<void> PeerPort::close_when_idle() {
  return timer_.afterDelay(kIdleLookMs * kj::MILLISECONDS).then([this]() -> kj::Promise<void> {
    if (boot_now() - asked_ms_ < kIdleMs) return close_when_idle();
    return kj::READY_NOW;
  });
}

kj::Promise<std::vector<std::string>> PeerPort::reach(const std::string& from,
                                                      std::vector<Peer> peers, Patience patience) {
  auto trials = std::make_shared<Trials>(Trials{from, std::move(peers), patience});
  trials->why.resize(trials->peers.size());
  const size_t at_once = std::min(kAtOnce, trials->peers.size());
  auto tries = kj::heapArrayBuilder<kj::Promise<void>>(at_once);
  for (size_t i = 0; i < at_once; ++i) tries.add(try_rest(trials));
  return kj::joinPromises(tries.finish()).then([trials] { return std::move(trials->why); });
}

// Tries one peer after the other, of those whose try has not begun.
kj::Promise<void> PeerPort::try_rest(const std::shared_ptr<Trials>& trials) {
  if (trials->next == trials->peers.size()) return kj::READY_NOW;
  const size_t i = trials->next++;
  return try_peer(trials->from, trials->peers[i], trials->patience)
      .then([this, trials, i](std::string why) {
        trials->why[i] = std::move(why);
        return try_rest(trials);
      });
}

kj::Promise<std::string> PeerPort::try_peer(const std::string& from, const Peer& peer,
                                            Patience patience) {
  return try_once(from, peer, patience.each_ms)
      .then([this, from, peer, patience](std::string why) mutable -> kj::Promise<std::string> {
        if (why.empty() || --patience.tries <= 0) return why;
        return timer_.afterDelay(patience.pause_ms * kj::MILLISECONDS)
            .then([this, from, peer, patience] { return try_peer(from, peer, patience); });
      });
}

kj::Promise<std::string> PeerPort::try_once(const std::string& from, const Peer& peer,
                                            Millis each_ms) {
  const auto to = socket_name(peer.ip, peer.port);
  if (!to) return std::string("its address is not an IP address");
  Fd socket(::socket(to->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return std::string();  // no descriptors are left: nothing is known
  const auto own = socket_name(from, 0);
  if (own && own->address.ss_family == to->address.ss_family &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own->address), own->size) != 0)
    return "no socket on " + from + ": " + error_text(errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to->address), to->size) != 0 &&
      errno != EINPROGRESS)
    return error_text(errno);
  auto trial = kj::heap<Trial>(io_.unixEventPort, std::move(socket), peer.greeting);
  Trial& one = *trial;
  auto heard = one.seen.whenBecomesWritable().then([&one]() -> kj::Promise<std::string> {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(one.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return error_text(error);
    one.connected = true;
    return hear(one);
  });
  return heard
      .exclusiveJoin(timer_.afterDelay(each_ms * kj::MILLISECONDS).then([&one, each_ms] {
        return one.connected ? "" : "no answer within " + std::to_string(each_ms) + " ms";
      }))
      .attach(kj::mv(trial));
}

kj::Promise<std::string> PeerPort::hear(Trial& trial) {
  std::array<char, 2 * kGreetingBytes> bytes{};
  const ssize_t got = ::recv(trial.fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return trial.seen.whenBecomesReadable().then([&trial] { return hear(trial); });
  if (got < 0) return error_text(errno);
  trial.heard.append(bytes.data(), static_cast<size_t>(got));
  if (trial.heard == trial.wanted) return std::string();
  if (got > 0 && trial.heard.size() < trial.wanted.size()) return hear(trial);
  return std::string("another machine answers at its address");
}

}  // namespace muster::agent
