// PeerPort: whether other nodes of an MPI job reach this one, and whether this one reaches them, as
// their ranks will have to (ADR 88).
//
// Listens on the node's address, on a port that the kernel chooses, as ranks do, unless the site
// says otherwise, and sends a greeting to whoever connects: a machine with the same address, such
// as a bridge for containers on the node itself, has another one. It reads nothing, and is closed
// when nobody has asked for it for kIdleMs.
//
// Belongs to one KJ thread.
#pragma once

#include "agent/link/port_range.hpp"
#include "base/clock.hpp"
#include "base/fd.hpp"

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace muster::agent {

class PeerPort {
 public:
  static constexpr Millis kIdleMs = 180'000;
  static constexpr size_t kAtOnce = 128;  // peers that are tried, for the sake of descriptors
  // How a peer is tried: so many times, each for so long, with a pause in between.
  struct Patience {
    int tries = 3;
    Millis each_ms = 2'000, pause_ms = 500;
  };
  struct Peer {
    std::string ip;
    uint16_t port = 0;
    std::string greeting;
  };

  // `ports`: of which the first that is free is taken; absent: none.
  PeerPort(kj::AsyncIoContext& io, std::optional<PortRange> ports)
      : io_(io), timer_(io.provider->getTimer()), ports_(ports) {}

  // The port on this address; 0 if there is none: the address is another machine's, say.
  uint16_t open(const std::string& ip);
  const std::string& greeting() const { return greeting_; }

  // Connects to these from this address. Returns for each why it was not reached, for people;
  // empty: it was, even if no greeting came in time: then its agent is slow, not the network.
  kj::Promise<std::vector<std::string>> reach(const std::string& from, std::vector<Peer> peers,
                                              Patience patience);

 private:
  struct Trial;
  struct Trials;
  bool listen(const std::string& ip, uint16_t port);
  kj::Promise<void> accept();
  kj::Promise<void> close_when_idle();
  kj::Promise<void> try_rest(const std::shared_ptr<Trials>& trials);
  kj::Promise<std::string> try_peer(const std::string& from, const Peer& peer, Patience patience);
  kj::Promise<std::string> try_once(const std::string& from, const Peer& peer, Millis each_ms);
  static kj::Promise<std::string> hear(Trial& trial);

  kj::AsyncIoContext& io_;
  kj::Timer& timer_;
  const std::optional<PortRange> ports_;
  std::string ip_, greeting_;
  kj::Own<kj::ConnectionReceiver> port_;  // null: not open
  Millis asked_ms_ = 0;
  kj::Promise<void> accepting_ = nullptr;
};

}  // namespace muster::agent
