#include "coordinator/threads/metered.hpp"

#include "trust/tls/counted.hpp"

#include <kj/debug.h>

#include <utility>

namespace muster::coordinator {

namespace {

class Metered final : public tls::CountedStream {
 public:
  Metered(kj::Own<kj::AsyncIoStream> stream, std::shared_ptr<Meter> meter)
      : CountedStream(kj::mv(stream)), meter_(std::move(meter)) {}

 private:
  bool begin(size_t) override { return meter_->counts(); }
  void count(size_t bytes) override {
    const bool fits = !meter_->counts() || meter_->add(bytes);
    KJ_REQUIRE(fits, "an agent sent too much before it registered");
  }

  std::shared_ptr<Meter> meter_;
};

}  // namespace

kj::Own<kj::AsyncIoStream> metered(kj::Own<kj::AsyncIoStream> stream,
                                   std::shared_ptr<Meter> meter) {
  return kj::heap<Metered>(kj::mv(stream), std::move(meter));
}

}  // namespace muster::coordinator
