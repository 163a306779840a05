// Metered: limits what connections may send before they register.
//
// A message is buffered until it is complete, and a registration may be large, since it names all
// pods of a node. So what an unregistered connection sends is counted as it arrives, per connection
// and for all of them together; a connection that exceeds a bound fails. Registered connections are
// not counted.
//
// Used by one KJ thread only.
#pragma once

#include <kj/async-io.h>

#include <cstdint>
#include <memory>

namespace muster::coordinator {

// All unregistered connections of one port.
struct Unregistered {
  uint64_t each_max = 32u << 20;  // a registration with 10^6 pods is 16 MiB
  uint64_t all_max = 64u << 20;
  uint64_t held = 0;
};

// One connection's share; released when it registers or closes.
class Meter {
 public:
  explicit Meter(Unregistered& all) : all_(all) {}
  ~Meter() { stop(); }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  bool counts() const { return counts_; }
  // False: a bound is exceeded.
  bool add(uint64_t bytes) {
    mine_ += bytes;
    all_.held += bytes;
    return mine_ <= all_.each_max && all_.held <= all_.all_max;
  }
  void stop() {
    all_.held -= mine_;
    mine_ = 0;
    counts_ = false;
  }

 private:
  Unregistered& all_;
  uint64_t mine_ = 0;
  bool counts_ = true;
};

// Wraps a stream so that reads fail once the meter's bounds are exceeded.
kj::Own<kj::AsyncIoStream> metered(kj::Own<kj::AsyncIoStream> stream, std::shared_ptr<Meter> meter);

}  // namespace muster::coordinator
