// Server: the HTTP face of the coordinator: Kubernetes' API for jobs, pods, nodes and events.
//
// It lives on one KJ loop. What is read comes from the View, what changes something goes to the
// Backend. Every refusal is an object of kind Status, and what nobody foresaw is a 500 without our
// insides in it.
//
// Trust: unless insecure, only root and our own user are served, over loopback or a Unix socket
// (the kernel tells the uid of the peer). And so that no web page in the user's browser can use us,
// insecure or not, a Host that is not ours, a foreign Origin and what a browser marks as another
// site's are refused, and a body has to say that it is JSON or YAML.
#pragma once

#include "api/backend.hpp"
#include "api/exchange.hpp"
#include "api/streams.hpp"
#include "api/view.hpp"
#include "api/web_guard.hpp"
#include "base/clock.hpp"
#include "core/job/decide.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace muster::api {

struct ServerOptions {
  bool insecure = false;             // serve other users and machines too
  HostRules hosts;                   // what we may be called
  std::string version = "0.0.0";     // of muster
  std::function<uint64_t()> random;  // for uids and generated names; must be good
  WallClock now = wall_now;
  core::Knobs knobs{};                   // for jobs that say nothing of them
  std::function<std::string()> metrics;  // text of /metrics; none: not served
  // Of a client: to send a request's head whole, and between two pieces of its body.
  kj::Duration head_patience = 15 * kj::SECONDS, body_patience = 30 * kj::SECONDS;
  // At a time. The next one takes the place of one that waits for a request; when there is none, it
  // is told that there are too many.
  size_t connections_max = 4096;
};

class Server {
 public:
  // View and Backend outlive the server. It takes the View's on_change for itself.
  Server(kj::Timer& timer, View& view, Backend& backend, ServerOptions options);
  ~Server() noexcept(false);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until it is ready, objects are answered with 503 and this reason.
  void set_ready(bool ready, std::string reason);
  // Accepts connections for ever; drop the promise to stop accepting.
  kj::Promise<void> serve(kj::Own<kj::ConnectionReceiver> port);
  // One connection that is trusted already.
  kj::Promise<void> serve_connection(kj::Own<kj::AsyncIoStream> stream);
  // Ends watches, finishes what is under way, closes idle connections.
  kj::Promise<void> drain();
  StreamContext& streams();  // for shorter pauses in tests

 private:
  class Impl;
  kj::Own<Impl> impl_;
};

}  // namespace muster::api
