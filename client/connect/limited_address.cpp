#include "client/connect/limited_address.hpp"

#include <kj/debug.h>

namespace muster::cli {
namespace {

class Limited final : public kj::NetworkAddress {
 public:
  Limited(kj::Own<kj::NetworkAddress> inner, kj::Timer& timer, Millis limit_ms, bool& failed)
      : inner_(kj::mv(inner)), timer_(timer), limit_ms_(limit_ms), failed_(failed) {}

  kj::Promise<kj::Own<kj::AsyncIoStream>> connect() override {
    return timer_.timeoutAfter(limit_ms_ * kj::MILLISECONDS, inner_->connect())
        .catch_([this](kj::Exception&& e) -> kj::Promise<kj::Own<kj::AsyncIoStream>> {
          failed_ = true;
          if (e.getType() == kj::Exception::Type::OVERLOADED)  // timeoutAfter() throws this
            return kj::Exception(
                kj::Exception::Type::FAILED, __FILE__, __LINE__,
                kj::str("no connection within ", static_cast<double>(limit_ms_) / 1000, " s"));
          return kj::mv(e);
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
  bool& failed_;
};

}  // namespace

kj::Own<kj::NetworkAddress> limited(kj::Own<kj::NetworkAddress> address, kj::Timer& timer,
                                    Millis limit_ms, bool& failed) {
  return kj::heap<Limited>(kj::mv(address), timer, limit_ms, failed);
}

}  // namespace muster::cli
