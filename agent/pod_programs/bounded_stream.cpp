#include "agent/pod_programs/bounded_stream.hpp"

#include "trust/tls/counted.hpp"

#include <kj/debug.h>

#include <utility>

namespace muster::agent {
namespace {

class BoundedStream final : public tls::CountedStream {
 public:
  BoundedStream(kj::Own<kj::AsyncIoStream> stream, Pool& bytes, std::string who)
      : CountedStream(kj::mv(stream)), share_(bytes, std::move(who)) {}

 private:
  bool begin(size_t min) override {
    KJ_REQUIRE(min <= kLocalMessageMax, "the message is too long", min);
    share_.give_back();  // of the message before
    return true;
  }
  void count(size_t bytes) override {
    KJ_REQUIRE(share_.take(bytes), "the unfinished messages of this user are too long");
  }

  Pool::Share share_;
};

}  // namespace

kj::Own<kj::AsyncIoStream> bounded(kj::Own<kj::AsyncIoStream> stream, Pool& bytes,
                                   std::string who) {
  return kj::heap<BoundedStream>(kj::mv(stream), bytes, std::move(who));
}

}  // namespace muster::agent
