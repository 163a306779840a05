#include "trust/tls/counted.hpp"

#include <algorithm>

namespace muster::tls {
namespace {

constexpr size_t kStep = 64 << 10;  // bytes; counted at least this often

}  // namespace

kj::Promise<size_t> CountedStream::tryRead(void* buffer, size_t min, size_t max) {
  if (!begin(min)) return stream_->tryRead(buffer, min, max);
  return step(static_cast<kj::byte*>(buffer), min, max, 0);
}

kj::Promise<size_t> CountedStream::step(kj::byte* to, size_t min, size_t max, size_t done) {
  return stream_->tryRead(to, 1, std::min(max, kStep))
      .then([this, to, min, max, done](size_t n) -> kj::Promise<size_t> {
        count(n);
        if (n == 0 || n >= min) return done + n;
        return step(to + n, min - n, max - n, done + n);
      });
}

kj::Promise<void> CountedStream::write(const void* buffer, size_t size) {
  return stream_->write(buffer, size);
}

kj::Promise<void> CountedStream::write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) {
  return stream_->write(pieces);
}

kj::Promise<void> CountedStream::whenWriteDisconnected() {
  return stream_->whenWriteDisconnected();
}

void CountedStream::shutdownWrite() {
  stream_->shutdownWrite();
}

void CountedStream::abortRead() {
  stream_->abortRead();
}

kj::Maybe<int> CountedStream::getFd() const {
  return stream_->getFd();
}

}  // namespace muster::tls
