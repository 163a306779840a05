#include "api/http/admission.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"

#include <utility>

namespace muster::api {
namespace {

constexpr kj::Duration kPause = 100 * kj::MILLISECONDS;  // after a failed accept()
constexpr unsigned kInARow = 16;  // connections accepted before yielding to the event loop

}  // namespace

Crowd::Room Crowd::make_room(const std::string& who) {
  const auto mine = counts_.find(who);
  const bool own_full = mine != counts_.end() && mine->second >= of_one_;
  if (!own_full && members_.size() < all_) return {true, std::nullopt};
  // Of the peer with the most connections, close the one that has been idle longest.
  const Member* oldest = nullptr;
  uint64_t id = 0;
  size_t most = 0;
  for (const auto& [number, member] : members_) {
    if (member.busy || (own_full && member.who != who)) continue;
    const size_t count = counts_.at(member.who);
    if (oldest != nullptr && (count < most || (count == most && member.since > oldest->since)))
      continue;
    oldest = &member;
    id = number;
    most = count;
  }
  if (oldest == nullptr) return {};
  leave(id);
  return {true, id};
}

void Crowd::enter(uint64_t id, const std::string& who) {
  members_[id] = {who, false, ++clock_};
  ++counts_[who];
}

void Crowd::busy(uint64_t id) {
  if (const auto it = members_.find(id); it != members_.end()) it->second.busy = true;
}

void Crowd::idle(uint64_t id) {
  const auto it = members_.find(id);
  if (it == members_.end()) return;
  it->second.busy = false;
  it->second.since = ++clock_;
}

void Crowd::leave(uint64_t id) {
  const auto it = members_.find(id);
  if (it == members_.end()) return;
  const auto count = counts_.find(it->second.who);
  if (--count->second == 0) counts_.erase(count);
  members_.erase(it);
}

kj::Promise<void> Acceptor::run(kj::ConnectionReceiver& port) {
  return kj::evalNow([&port] { return port.accept(); })
      .then([this, &port](kj::Own<kj::AsyncIoStream> stream) { return came(port, kj::mv(stream)); },
            [this, &port](kj::Exception&& failure) { return failed(port, failure); });
}

kj::Promise<void> Acceptor::came(kj::ConnectionReceiver& port, kj::Own<kj::AsyncIoStream> stream) {
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { take_(kj::mv(stream)); })) {
    if (const auto more = failures_.due(boot_now()))
      log::warn("{}: a connection could not be served: {}{}", name_,
                failure->getDescription().cStr(), *more);
  }
  if (++in_a_row_ < kInARow) return run(port);
  in_a_row_ = 0;
  return timer_.afterDelay(0 * kj::SECONDS).then([this, &port] { return run(port); });
}

kj::Promise<void> Acceptor::failed(kj::ConnectionReceiver& port, const kj::Exception& failure) {
  in_a_row_ = 0;
  if (const auto more = failures_.due(boot_now()))
    log::warn("{}: cannot accept a connection: {}; retrying{}", name_,
              failure.getDescription().cStr(), *more);
  return timer_.afterDelay(kPause).then([this, &port] { return run(port); });
}

}  // namespace muster::api
