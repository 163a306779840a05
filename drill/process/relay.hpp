// Relay: passes bytes between an agent and its coordinator, and can hold them back.
//
// While it holds, connections stay open and new ones are accepted, but nothing arrives on the
// other side: to both ends it looks like a network that drops every packet. What was held is
// passed on afterwards.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace muster::cli::drill {

class Relay {
 public:
  // Listens on a free loopback port and connects to 127.0.0.1:`target`.
  static Result<std::unique_ptr<Relay>> start(uint16_t target);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  uint16_t port() const { return port_; }
  void hold(bool on) { hold_ = on; }
  // Bytes that arrived while it held.
  uint64_t held() const { return held_; }

 private:
  Relay(Fd listener, uint16_t port, uint16_t target);
  void run();

  Fd listener_;
  const uint16_t port_, target_;
  std::atomic<bool> hold_ = false, stop_ = false;
  std::atomic<uint64_t> held_ = 0;
  std::thread thread_;
};

}  // namespace muster::cli::drill
