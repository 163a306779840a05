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

#include "api/routes/backend.hpp"
#include "api/routes/exchange.hpp"
#include "api/routes/server_options.hpp"
#include "api/routes/streams.hpp"
#include "api/view/view.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <string>

namespace muster::api {

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
