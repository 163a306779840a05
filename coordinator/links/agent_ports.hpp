// AgentPorts: the connections of the agents' ports, from accept to close.
//
// A connection comes from a trusted user of this machine, or over TLS. The peer can call
// wire::Coordinator (registration.hpp) and must register in time.
//
// Invariants: a connection has a unique number, never reused; it is counted until left(), which is
// called once per connection; an unregistered connection can send only a bounded number of bytes; a
// TLS connection ends when its certificate expires.
//
// Belongs to the RPC thread.
#pragma once

#include "api/http/admission.hpp"
#include "base/clock.hpp"
#include "base/peer/peer_uid.hpp"
#include "base/seldom.hpp"
#include "coordinator/links/agent_links.hpp"
#include "coordinator/links/rpc_context.hpp"
#include "coordinator/threads/metered.hpp"
#include "core/ids.hpp"
#include "trust/tls/certificates.hpp"

#include <capnp/capability.h>
#include <kj/async-io.h>
#include <kj/compat/tls.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace muster::coordinator {

// The peer of a TLS connection.
struct Guest {
  tls::Identity who;
  std::string barred;   // why this guest may not register; empty: it may
  Millis until_ms = 0;  // when its newest certificate expires (wall clock)
};

class AgentPorts {
 public:
  struct Caller {  // the registration of a connection
    std::shared_ptr<Meter> meter;
    std::optional<Guest> guest;  // over TLS
    bool registers = false;      // registering, or registered
    unsigned refused = 0;
  };

  // `bootstrap`: the capability that the peer of a connection can call.
  AgentPorts(RpcContext& context, AgentLinks& links,
             std::function<capnp::Capability::Client(uint64_t number)> bootstrap);
  void use(kj::TlsContext& tls) { tls_ = &tls; }  // before any shake_hands()

  // A connection without TLS.
  void admit(kj::Own<kj::AsyncIoStream> stream);
  kj::Promise<void> shake_hands(kj::Own<kj::AsyncIoStream> stream);

  Caller* find(uint64_t number);  // null: it has been closed
  void registered(uint64_t number, NodeId node);
  // The node at the other end has got this certificate, so its connection lasts as long as that.
  void renewed(uint64_t number, const std::string& certificate);
  void hang_up(uint64_t number);
  void expel(const std::string& node);  // by name, as in its certificate
  void disconnect(NodeId node);
  void clear() { closing_.clear(); }  // before the event loop ends

 private:
  // A connection that is counted until left(), and the promise that ends it.
  struct Place {
    uint64_t number;
    kj::Promise<void> closed;
  };
  // Nothing: the port is full.
  std::optional<Place> enter(const std::string& who);
  Guest guest_of(kj::AuthenticatedStream& known) const;
  void talk(uint64_t number, kj::Own<kj::AsyncIoStream> stream, kj::Promise<void> closed,
            std::optional<Guest> guest);
  kj::Promise<void> expired(uint64_t number, Millis until_ms);
  kj::Promise<void> silent(uint64_t number);
  void left(uint64_t number);

  RpcContext& context_;
  AgentLinks& links_;
  const std::function<capnp::Capability::Client(uint64_t number)> bootstrap_;
  kj::TlsContext* tls_ = nullptr;
  PeerLookup lookup_;
  api::Crowd crowd_;
  uint64_t last_link_ = 0;
  Unregistered unregistered_;
  Unregistered barred_;  // those that can only request certificates
  std::map<uint64_t, Caller> callers_;
  std::map<uint64_t, kj::Own<kj::PromiseFulfiller<void>>> closing_;
  std::map<uint64_t, NodeId> node_of_;
  Seldom strangers_, turned_away_;
};

}  // namespace muster::coordinator
