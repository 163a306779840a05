#include "agent/local/bounded_stream.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <utility>

namespace muster::agent {
namespace {

constexpr size_t kStep = 64 << 10;  // bytes; counted at least this often

class BoundedStream final : public kj::AsyncIoStream {
 public:
  BoundedStream(kj::Own<kj::AsyncIoStream> stream, Pool& bytes, std::string who)
      : stream_(kj::mv(stream)), share_(bytes, std::move(who)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override {
    KJ_REQUIRE(min <= kLocalMessageMax, "the message is too long", min);
    share_.give_back();  // of the message before
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
          KJ_REQUIRE(share_.take(n), "the unfinished messages of this user are too long");
          if (n == 0 || n >= min) return done + n;
          return step(to + n, min - n, max - n, done + n);
        });
  }

  kj::Own<kj::AsyncIoStream> stream_;
  Pool::Share share_;
};

}  // namespace

kj::Own<kj::AsyncIoStream> bounded(kj::Own<kj::AsyncIoStream> stream, Pool& bytes,
                                   std::string who) {
  return kj::heap<BoundedStream>(kj::mv(stream), bytes, std::move(who));
}

}  // namespace muster::agent
