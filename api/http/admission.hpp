// Admission: how connections come in at a port, and how many there are at a time.
//
// A port goes on accepting whatever accept() says: what fails for want of descriptors is tried
// again after a pause. The number of connections is bounded, in all and of one peer. When a bound
// is reached, the connection that has waited longest without a request makes room for the new one;
// only when all are in use, the new one is turned away. For one KJ thread.
#pragma once

#include "base/seldom.hpp"

#include <kj/async-io.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace muster::api {

// The connections of one port by their peers. Pure.
class Crowd {
 public:
  // `of_one` leaves room for others: one peer may hold three quarters.
  explicit Crowd(size_t all) : all_(all), of_one_(all - all / 4) {}

  struct Room {
    bool ok = false;
    std::optional<uint64_t> instead;  // this one has to be closed for it; it counts no more
  };
  // For one more of this peer.
  Room make_room(const std::string& who);
  // A new one waits for its first request.
  void enter(uint64_t id, const std::string& who);
  void busy(uint64_t id);  // it serves a request, and may not be closed for another
  void idle(uint64_t id);
  void leave(uint64_t id);  // no harm when it has left
  size_t size() const { return members_.size(); }
  size_t all() const { return all_; }

 private:
  struct Member {
    std::string who;
    bool busy = false;
    uint64_t since = 0;  // its place in the order of those that wait
  };
  size_t all_, of_one_;
  std::map<uint64_t, Member> members_;
  std::map<std::string, size_t> counts_;
  uint64_t clock_ = 0;
};

// Accepts for ever and hands over what came in; drop the promise to stop.
class Acceptor {
 public:
  // `port` names it in the log: "the API".
  Acceptor(kj::Timer& timer, std::string port, std::function<void(kj::Own<kj::AsyncIoStream>)> take)
      : timer_(timer), name_(std::move(port)), take_(std::move(take)) {}
  kj::Promise<void> run(kj::ConnectionReceiver& port);

 private:
  kj::Promise<void> came(kj::ConnectionReceiver& port, kj::Own<kj::AsyncIoStream> stream);
  kj::Promise<void> failed(kj::ConnectionReceiver& port, const kj::Exception& failure);

  kj::Timer& timer_;
  std::string name_;
  std::function<void(kj::Own<kj::AsyncIoStream>)> take_;
  Seldom failures_;
  unsigned in_a_row_ = 0;
};

}  // namespace muster::api
