// Server: the coordinator's HTTP API: Kubernetes' jobs, pods, nodes, events and leases, and
// muster.dev.
//
// It runs on one KJ loop. Reads use the View, changes go to the Backend. API errors are objects of
// kind Status; an unexpected failure is a 500 that reveals no internals.
//
// Trust: unless insecure, plain connections are served only over loopback or a Unix socket, where
// the kernel identifies the user: root, our own user, or a user with a role (api/access/). Over
// TLS, a token identifies the user. Access is decided before the body of a request is read. To keep
// out web pages in a user's browser, insecure or not, requests with a foreign Host or Origin and
// those that the browser marks as cross-site are refused, and a body must declare that it is JSON,
// YAML or protobuf.
#pragma once

#include "api/http/passed_peer.hpp"
#include "api/request/backend.hpp"
#include "api/request/exchange.hpp"
#include "api/request/server_options.hpp"
#include "api/request/streams.hpp"
#include "api/view/model/view.hpp"

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace muster::api {

class Server {
 public:
  // View and Backend must outlive the server, which takes over the View's on_change.
  Server(kj::Timer& timer, View& view, Backend& backend, ServerOptions options);
  ~Server() noexcept(false);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until the server is ready, requests for objects get a 503 with this reason.
  void set_ready(bool ready, std::string reason);
  // From now on, these groups have the roles, and users these limits. Users must have had roles.
  void reload(RoleGroups roles, QuotaLimits quotas);
  // Accepts connections until the promise is dropped.
  kj::Promise<void> serve(kj::Own<kj::ConnectionReceiver> port);
  // Likewise, for clients on other machines: `encrypt` performs the server's side of TLS, and each
  // request must have a token (Backend::token_of).
  using Encrypt =
      std::function<kj::Promise<kj::Own<kj::AsyncIoStream>>(kj::Own<kj::AsyncIoStream>)>;
  kj::Promise<void> serve_tls(kj::Own<kj::ConnectionReceiver> port, Encrypt encrypt);
  // Likewise, for anybody, but serves only metrics and health.
  kj::Promise<void> serve_metrics(kj::Own<kj::ConnectionReceiver> port);
  // Serves one connection that is already trusted; where users have roles, it is this user's.
  kj::Promise<void> serve_connection(kj::Own<kj::AsyncIoStream> stream,
                                     std::optional<uid_t> uid = std::nullopt);
  // Likewise, one that another coordinator passes on: judged as if it had been made here.
  kj::Promise<void> serve_passed(kj::Own<kj::AsyncIoStream> stream, PassedPeer from);
  // Waits until each connection has sent its first request, except those that have not for as long
  // as `patience`: a client that has just connected is about to ask.
  kj::Promise<void> first_requests(kj::Duration patience);
  // Ends watches, finishes requests in progress, closes idle connections.
  kj::Promise<void> drain();
  StreamContext& streams();  // so that tests can shorten pauses

 private:
  class Impl;
  kj::Own<Impl> impl_;
};

}  // namespace muster::api
