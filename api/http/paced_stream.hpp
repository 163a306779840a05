// PacedStream: a connection whose input can be slowed down while it carries a WebSocket, and whose
// output is checked.
//
// KJ reads frames without a pause as long as bytes arrive, and keeps those that do not become a
// message to itself: pings are answered, fragments are kept. A client that sends nothing else would
// take the whole thread, and memory without bound. So whoever has the WebSocket is asked after each
// read, and may let it wait or fail; and what is read at a time is bounded, except for the rest of
// a frame whose length is known.
#pragma once

#include <kj/async-io.h>

#include <algorithm>
#include <functional>
#include <memory>

namespace muster::api {

// Of one connection. `took`: called with the number of bytes read, without the rests of frames;
// empty: nothing is slowed down.
struct Pace {
  static constexpr size_t kReadMax = 4 << 10;
  std::function<kj::Promise<void>(size_t)> took;
  // Called before anything is written: does not return if it must not be. Empty: it may.
  std::function<void()> writes;
};

class PacedStream final : public kj::AsyncIoStream {
 public:
  PacedStream(kj::Own<kj::AsyncIoStream> stream, std::shared_ptr<const Pace> pace)
      : stream_(kj::mv(stream)), pace_(std::move(pace)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t least, size_t most) override {
    if (!pace_->took) return stream_->tryRead(buffer, least, most);
    const bool rest = least > 1;
    return stream_->tryRead(buffer, least, rest ? most : std::min(most, Pace::kReadMax))
        .then([pace = pace_, rest](size_t size) -> kj::Promise<size_t> {
          if (!pace->took || size == 0) return size;
          return pace->took(rest ? 0 : size).then([size] { return size; });
        });
  }
  kj::Maybe<uint64_t> tryGetLength() override { return stream_->tryGetLength(); }

  kj::Promise<void> write(const void* buffer, size_t size) override {
    check();
    return stream_->write(buffer, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    check();
    return stream_->write(pieces);
  }
  kj::Maybe<kj::Promise<uint64_t>> tryPumpFrom(kj::AsyncInputStream& input,
                                               uint64_t amount) override {
    check();
    return stream_->tryPumpFrom(input, amount);
  }
  kj::Promise<void> whenWriteDisconnected() override { return stream_->whenWriteDisconnected(); }

  void shutdownWrite() override { stream_->shutdownWrite(); }
  void abortRead() override { stream_->abortRead(); }
  kj::Maybe<int> getFd() const override { return stream_->getFd(); }

 private:
  void check() const {
    if (pace_->writes) pace_->writes();
  }

  kj::Own<kj::AsyncIoStream> stream_;
  std::shared_ptr<const Pace> pace_;
};

}  // namespace muster::api
