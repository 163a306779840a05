// Doorway: the API's ports of a coordinator that follows: it passes each connection on to the
// leader, as the user who made it. While there is none, a connection waits for one for a while.
//
// The ports stay open when the coordinator takes the lead (coordinator/threads/listening.hpp), and
// the doorway outlives each role, so whoever connects meanwhile waits and is not refused.
//
// Belongs to the peers' thread.
#pragma once

#include "api/http/admission.hpp"
#include "api/http/passed_peer.hpp"
#include "base/fd.hpp"
#include "base/peer/peer_uid.hpp"
#include "base/result.hpp"
#include "standby/following.hpp"
#include "standby/passage.hpp"

#include <kj/async-io.h>

#include <functional>
#include <string>
#include <vector>

namespace muster::standby {

struct DoorwayPorts {
  std::string api, api_socket, api_tls;  // as of coordinator::Options
  bool api_socket_required = true, insecure = false;
  std::vector<std::string> names;  // of this machine, for its certificate
};

class Doorway {
 public:
  Doorway(kj::AsyncIoContext& io, DoorwayPorts ports);

  // This coordinator follows: opens the ports. The role must exist until lead().
  Status follow(FollowingRole& role);
  // The leader, or the authority, is another one.
  void changed();
  // This coordinator leads: closes the ports, and passes those that wait to its own API, with this
  // function; false: it does not serve. The role is not used any more.
  using Admit = std::function<bool(Fd socket, api::PassedPeer peer)>;
  void lead(Admit admit);

 private:
  struct Visit {
    SharedStream stream;
    int64_t uid = 0;  // negative: over TLS
    std::string source, host;
    Millis until = 0;
  };
  void take_local(kj::Own<kj::AsyncIoStream> stream);
  void take_remote(kj::Own<kj::AsyncIoStream> stream);
  kj::Promise<void> pass(Visit visit);
  kj::Promise<void> pass_to(wire::Leading::Client leader, Visit visit);
  kj::Promise<void> pass_here(Visit visit);
  kj::Promise<void> again(Visit visit);

  kj::AsyncIoContext& io_;
  kj::Timer& timer_;
  FollowingRole* role_ = nullptr;  // null: this coordinator leads
  const DoorwayPorts ports_;
  PeerLookup lookup_;
  kj::Own<kj::TlsContext> tls_;  // null: there is no authority yet
  std::vector<kj::Own<kj::ConnectionReceiver>> open_;
  api::Acceptor local_, remote_;
  struct Broken final : public kj::TaskSet::ErrorHandler {
    kj::TaskSet::ErrorHandler& handler() { return *this; }
    void taskFailed(kj::Exception&&) override {}  // a client that has gone
  };
  Broken broken_;
  Admit admit_;  // empty: another one leads
  kj::TaskSet tasks_{broken_.handler()};
  kj::Own<kj::TaskSet> accepting_ = kj::heap<kj::TaskSet>(broken_.handler());
};

}  // namespace muster::standby
