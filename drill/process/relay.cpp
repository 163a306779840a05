#include "drill/process/relay.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <list>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace muster::cli::drill {
namespace {

constexpr size_t kBufferMax = 4 << 20;  // per direction; beyond it, the sender waits
constexpr int kRelayLookMs = 10;

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// One direction of a connection.
struct Flow {
  std::string buffer;
  bool ended = false;   // its source has closed
  bool passed = false;  // this was passed on to its destination
};

struct Pair {
  Fd agent, coordinator;
  Flow up, down;
  bool dead = false;

  bool over() const { return dead || (up.passed && down.passed); }
};

void take(int fd, Flow& flow, Pair& pair, std::atomic<uint64_t>* held) {
  char bytes[65536];
  const ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n > 0) {
    flow.buffer.append(bytes, static_cast<size_t>(n));
    if (held != nullptr) *held += static_cast<uint64_t>(n);
  } else if (n == 0) {
    flow.ended = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    flow.ended = pair.dead = true;
  }
}

void give(int fd, Flow& flow, Pair& pair) {
  while (!flow.buffer.empty()) {
    const ssize_t n = send(fd, flow.buffer.data(), flow.buffer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n <= 0) {
      if (errno != EAGAIN && errno != EINTR) pair.dead = true;
      return;
    }
    flow.buffer.erase(0, static_cast<size_t>(n));
  }
  if (flow.ended && !flow.passed) {
    shutdown(fd, SHUT_WR);
    flow.passed = true;
  }
}

// What to wait for at the end where `in` arrives and `out` leaves. A descriptor with nothing to
// wait for is left out (-1), or poll() would keep reporting its hangup.
pollfd wanted(const Fd& fd, const Flow& in, const Flow& out, bool hold) {
  const bool reads = !in.ended && in.buffer.size() < kBufferMax;
  const int events = (reads ? POLLIN : 0) | (!hold && !out.buffer.empty() ? POLLOUT : 0);
  return {events == 0 ? -1 : fd.get(), static_cast<short>(events), 0};
}

}  // namespace

Result<std::unique_ptr<Relay>> Relay::start(uint16_t target) {
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (!listener || bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener.get(), 64) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return Error{Errc::unavailable, std::string("cannot listen: ") + std::strerror(errno), {}};
  return std::unique_ptr<Relay>(new Relay(std::move(listener), ntohs(address.sin_port), target));
}

Relay::Relay(Fd listener, uint16_t port, uint16_t target)
    : listener_(std::move(listener)), port_(port), target_(target) {
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  stop_ = true;
  thread_.join();
}

void Relay::run() {
  std::list<Pair> pairs;
  while (!stop_) {
    const bool hold = hold_;
    std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
    for (const Pair& pair : pairs) {
      polled.push_back(wanted(pair.agent, pair.up, pair.down, hold));
      polled.push_back(wanted(pair.coordinator, pair.down, pair.up, hold));
    }
    poll(polled.data(), polled.size(), kRelayLookMs);
    size_t at = 1;
    for (Pair& pair : pairs) {
      const short agent = polled[at++].revents, coordinator = polled[at++].revents;
      std::atomic<uint64_t>* held = hold ? &held_ : nullptr;
      constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
      if ((agent & kReadable) != 0 && !pair.up.ended) take(pair.agent.get(), pair.up, pair, held);
      if ((coordinator & kReadable) != 0 && !pair.down.ended)
        take(pair.coordinator.get(), pair.down, pair, held);
      if (hold) continue;
      give(pair.coordinator.get(), pair.up, pair);
      give(pair.agent.get(), pair.down, pair);
    }
    if (!hold) pairs.remove_if([](const Pair& pair) { return pair.over(); });
    if ((polled[0].revents & POLLIN) == 0) continue;
    Pair pair;
    pair.agent = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!pair.agent) continue;
    pair.coordinator = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in target = loopback(target_);
    // On loopback this returns at once. If nothing listens there, the agent's connection ends.
    if (connect(pair.coordinator.get(), reinterpret_cast<const sockaddr*>(&target),
                sizeof target) == 0)
      pairs.push_back(std::move(pair));
  }
}

}  // namespace muster::cli::drill
