#include "trust/tls/limited.hpp"

#include <kj/exception.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace muster::tls {
namespace {

// The kernel asks whether the machine is there, and waits for its acknowledgements.
void watch(kj::AsyncIoStream& stream) {
  constexpr int kQuiet = 2, kEach = 1, kProbes = 2;  // seconds
  constexpr int kOptions[][3] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                                 {IPPROTO_TCP, TCP_KEEPIDLE, kQuiet},
                                 {IPPROTO_TCP, TCP_KEEPINTVL, kEach},
                                 {IPPROTO_TCP, TCP_KEEPCNT, kProbes},
                                 {IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(kGoneMaxMs)}};
  const auto not_tcp = kj::runCatchingExceptions([&] {
    for (const auto& [level, option, value] : kOptions)
      stream.setsockopt(level, option, &value, sizeof value);
  });
}

class Limited final : public kj::NetworkAddress {
 public:
  Limited(kj::Own<kj::NetworkAddress> inner, kj::Timer& timer, Millis limit_ms, bool* failed)
      : inner_(kj::mv(inner)), timer_(timer), limit_ms_(limit_ms), failed_(failed) {}

  kj::Promise<kj::Own<kj::AsyncIoStream>> connect() override {
    return timer_.timeoutAfter(limit_ms_ * kj::MILLISECONDS, inner_->connect())
        .then(
            [](kj::Own<kj::AsyncIoStream> stream) {
              watch(*stream);
              return stream;
            },
            [this](kj::Exception&& e) -> kj::Own<kj::AsyncIoStream> {
              if (failed_ != nullptr) *failed_ = true;
              if (e.getDescription() != "operation timed out")  // timeoutAfter() throws this
                kj::throwFatalException(kj::mv(e));
              kj::throwFatalException(kj::Exception(
                  kj::Exception::Type::FAILED, __FILE__, __LINE__,
                  kj::str("no connection within ", static_cast<double>(limit_ms_) / 1000, " s")));
            });
  }
  kj::Own<kj::ConnectionReceiver> listen() override { return inner_->listen(); }
  kj::Own<kj::NetworkAddress> clone() override {
    return kj::heap<Limited>(inner_->clone(), timer_, limit_ms_, failed_);
  }
  kj::String toString() override { return inner_->toString(); }

 private:
  kj::Own<kj::NetworkAddress> inner_;
  kj::Timer& timer_;
  const Millis limit_ms_;
  bool* const failed_;
};

}  // namespace

kj::Own<kj::NetworkAddress> limited(kj::Own<kj::NetworkAddress> address, kj::Timer& timer,
                                    Millis limit_ms, bool* failed) {
  return kj::heap<Limited>(kj::mv(address), timer, limit_ms, failed);
}

}  // namespace muster::tls
