#include "standby/passage.hpp"

#include <kj/debug.h>

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace muster::standby {
namespace {

constexpr size_t kPassedAtOnce = 64u << 10;

class Sink final : public wire::ByteSink::Server {
 public:
  explicit Sink(SharedStream stream) : stream_(std::move(stream)) {}
  ~Sink() noexcept(false) {
    // The other end may have gone already.
    if (!ended_) kj::runCatchingExceptions([this] { (*stream_)->abortRead(); });
  }

  kj::Promise<void> write(WriteContext context) override {
    const auto bytes = context.getParams().getBytes();
    return (*stream_)->write(bytes.begin(), bytes.size());
  }
  kj::Promise<void> end(EndContext) override {
    ended_ = true;
    (*stream_)->shutdownWrite();
    return kj::READY_NOW;
  }

 private:
  SharedStream stream_;
  bool ended_ = false;
};

kj::Promise<void> copy(SharedStream stream, wire::ByteSink::Client sink,
                       kj::Array<kj::byte> buffer) {
  auto reading = (*stream)->tryRead(buffer.begin(), 1, buffer.size());
  return reading.then([stream = std::move(stream), sink = kj::mv(sink),
                       buffer = kj::mv(buffer)](size_t size) mutable -> kj::Promise<void> {
    if (size == 0) return sink.endRequest().send().ignoreResult();
    auto request = sink.writeRequest();
    request.setBytes(buffer.slice(0, size));
    return request.send().ignoreResult().then(
        [stream = std::move(stream), sink = kj::mv(sink), buffer = kj::mv(buffer)]() mutable {
          return copy(std::move(stream), kj::mv(sink), kj::mv(buffer));
        });
  });
}

}  // namespace

SharedStream local_pair(kj::AsyncIoContext& io, const std::function<bool(Fd other)>& take) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    KJ_FAIL_REQUIRE("no sockets", std::strerror(errno));
  Fd ours(ends[0]);
  if (!take(Fd(ends[1]))) return nullptr;
  return std::make_shared<kj::Own<kj::AsyncIoStream>>(io.lowLevelProvider->wrapSocketFd(
      ours.release(), kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP |
                          kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                          kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK));
}

wire::ByteSink::Client sink_to(SharedStream stream) {
  return kj::heap<Sink>(std::move(stream));
}

kj::Promise<void> pump(SharedStream stream, wire::ByteSink::Client sink) {
  return copy(std::move(stream), kj::mv(sink), kj::heapArray<kj::byte>(kPassedAtOnce));
}

}  // namespace muster::standby
