// Admission: accepts connections on a port and bounds how many are open.
//
// The port keeps accepting after any accept() error: when descriptors run out, for example, it
// retries after a pause. The number of connections is bounded in total and per peer. At a bound,
// the connection that has been idle longest is closed to make room for the new one; if none is
// idle, the new one is turned away. For one KJ thread.
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

// The connections of one port, by peer. Pure.
class Crowd {
 public:
  // One peer may hold at most three quarters of `all`, to leave room for others.
  explicit Crowd(size_t all) : all_(all), of_one_(all - all / 4) {}

  struct Room {
    bool ok = false;
    std::optional<uint64_t> instead;  // close this one to make room; it is already removed here
  };
  // Makes room for one more connection of this peer.
  Room make_room(const std::string& who);
  // A new connection starts idle.
  void enter(uint64_t id, const std::string& who);
  void busy(uint64_t id);  // serving a request, so it must not be closed to make room
  void idle(uint64_t id);
  void leave(uint64_t id);  // does nothing if it has already left
  size_t size() const { return members_.size(); }
  size_t all() const { return all_; }

 private:
  struct Member {
    std::string who;
    bool busy = false;
    uint64_t since = 0;  // position in the order of idle connections
  };
  size_t all_, of_one_;
  std::map<uint64_t, Member> members_;
  std::map<std::string, size_t> counts_;
  uint64_t clock_ = 0;
};

// Accepts until the promise is dropped, and hands each connection to `take`.
class Acceptor {
 public:
  // `port` names the port in the log, for example "the API".
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
