#include "coordinator/threads/metered.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

namespace muster::coordinator {

namespace {

constexpr size_t kStep = 64 << 10;  // bytes; counted at least this often

class Metered final : public kj::AsyncIoStream {
 public:
  Metered(kj::Own<kj::AsyncIoStream> stream, std::shared_ptr<Meter> meter)
      : stream_(kj::mv(stream)), meter_(std::move(meter)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override {
    if (!meter_->counts()) return stream_->tryRead(buffer, min, max);
    return step(static_cast<kj::byte*>(buffer), min, max, 0);
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    return stream_->write(buffer, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return stream_->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return stream_->whenWriteDisconnected(); }
  void shutdownWrite() override { stream_->shutdownWrite(); }
  void abortRead() override { stream_->abortRead(); }
  kj::Maybe<int> getFd() const override { return stream_->getFd(); }

 private:
  kj::Promise<size_t> step(kj::byte* to, size_t min, size_t max, size_t done) {
    return stream_->tryRead(to, 1, std::min(max, kStep))
        .then([this, to, min, max, done](size_t n) -> kj::Promise<size_t> {
          bool fits = !meter_->counts() || meter_->add(n);
          KJ_REQUIRE(fits, "an agent sent too much before it registered");
          if (n == 0 || n >= min) return done + n;
          return step(to + n, min - n, max - n, done + n);
        });
  }

  kj::Own<kj::AsyncIoStream> stream_;
  std::shared_ptr<Meter> meter_;
};

}  // namespace

kj::Own<kj::AsyncIoStream> metered(kj::Own<kj::AsyncIoStream> stream,
                                   std::shared_ptr<Meter> meter) {
  return kj::heap<Metered>(kj::mv(stream), std::move(meter));
}

}  // namespace muster::coordinator
