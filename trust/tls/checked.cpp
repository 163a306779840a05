#include "trust/tls/checked.hpp"

#include <kj/debug.h>
#include <kj/exception.h>

#include <utility>

namespace muster::tls {
namespace {

class Checked final : public kj::NetworkAddress {
 public:
  Checked(kj::Own<kj::NetworkAddress> inner, TrustedServers& trusted, std::string name)
      : inner_(kj::mv(inner)), trusted_(trusted), name_(std::move(name)) {}

  kj::Promise<kj::Own<kj::AsyncIoStream>> connect() override {
    return inner_->connect().then([this](kj::Own<kj::AsyncIoStream> stream) {
      const int fd = KJ_ASSERT_NONNULL(stream->getFd());
      if (const Status s = trusted_.check(fd, name_); !s)
        kj::throwFatalException({kj::Exception::Type::FAILED, __FILE__, __LINE__,
                                 kj::heapString(s.error().message.c_str())});
      return stream;
    });
  }
  kj::Own<kj::ConnectionReceiver> listen() override { return inner_->listen(); }
  kj::Own<kj::NetworkAddress> clone() override {
    return kj::heap<Checked>(inner_->clone(), trusted_, name_);
  }
  kj::String toString() override { return inner_->toString(); }

 private:
  kj::Own<kj::NetworkAddress> inner_;
  TrustedServers& trusted_;
  const std::string name_;
};

}  // namespace

kj::Own<kj::NetworkAddress> checked(kj::Own<kj::NetworkAddress> address, TrustedServers& trusted,
                                    std::string name) {
  return kj::heap<Checked>(kj::mv(address), trusted, std::move(name));
}

}  // namespace muster::tls
