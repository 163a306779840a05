// CountedStream: has what is read from a stream counted as it arrives.
//
// The RPC system reads a message of any announced length into memory before anybody sees it. Who
// counts the bytes meanwhile can end a connection before it has sent too much.
#pragma once

#include <kj/async-io.h>

namespace muster::tls {

class CountedStream : public kj::AsyncIoStream {
 public:
  explicit CountedStream(kj::Own<kj::AsyncIoStream> stream) : stream_(kj::mv(stream)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) final;
  kj::Promise<void> write(const void* buffer, size_t size) final;
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) final;
  kj::Promise<void> whenWriteDisconnected() final;
  void shutdownWrite() final;
  void abortRead() final;
  kj::Maybe<int> getFd() const final;

 protected:
  // Someone wants at least `min` more bytes. False: they are not counted. May throw.
  virtual bool begin(size_t min) = 0;
  // These many have arrived. Throws if they are too many.
  virtual void count(size_t bytes) = 0;

 private:
  kj::Promise<size_t> step(kj::byte* to, size_t min, size_t max, size_t done);

  kj::Own<kj::AsyncIoStream> stream_;
};

}  // namespace muster::tls
