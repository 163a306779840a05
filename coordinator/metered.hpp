// Metered: what connections that have not registered may send.
//
// A message is held until it is whole, and a registration may be large: it names all pods of a
// node. So what an unregistered connection has sent is counted as it arrives, for itself and for
// all of them together; the one that exceeds a bound fails. A registered one is not counted any
// more.
//
// Belongs to one KJ thread.
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

// One connection's part in it; gone from it when it registers or goes.
class Meter {
 public:
  explicit Meter(Unregistered& all) : all_(all) {}
  ~Meter() { stop(); }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  bool counts() const { return counts_; }
  // False: it was too much.
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

// Reads of the stream fail once the meter says that it was too much.
kj::Own<kj::AsyncIoStream> metered(kj::Own<kj::AsyncIoStream> stream, std::shared_ptr<Meter> meter);

}  // namespace muster::coordinator
