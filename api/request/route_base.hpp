// RouteBase: what all routes share. Each resource has a derived class with its handlers; Routes
// (routes.hpp) dispatches to them.
#pragma once

#include "api/access/logins.hpp"
#include "api/kube/objects/manifest.hpp"
#include "api/kube/patch/managed_fields.hpp"
#include "api/request/access_gate.hpp"
#include "api/request/backend.hpp"
#include "api/request/exchange.hpp"
#include "api/request/queues.hpp"
#include "api/request/server_options.hpp"
#include "api/request/streams.hpp"
#include "api/request/target.hpp"
#include "api/request/write_options.hpp"
#include "api/view/model/view.hpp"

#include <optional>
#include <string>

namespace muster::api {

// All of these outlive the routes.
struct RouteContext {
  StreamContext& streams;
  const View& view;
  Backend& backend;
  Renderer& renderer;
  const ServerOptions& options;
  const AccessGate& gate;
  Quotas& quotas;
  Directory& directory;
  Queues& queues;
  Logins& logins;
};

class RouteBase {
 public:
  RouteBase(const RouteBase&) = delete;
  RouteBase& operator=(const RouteBase&) = delete;

 protected:
  using Promise = kj::Promise<void>;

  explicit RouteBase(const RouteContext& context)
      : streams_(context.streams),
        view_(context.view),
        backend_(context.backend),
        renderer_(context.renderer),
        options_(context.options),
        gate_(context.gate),
        quotas_(context.quotas),
        directory_(context.directory),
        queues_(context.queues),
        logins_(context.logins) {}
  ~RouteBase() = default;

  // Sends the object in the form that the client asked for.
  Promise respond(Exchange& exchange, const Shown& shown, int code = 200);
  std::optional<Shown> find(const Target& target) const;
  // The writer to record in the managed fields.
  Writer writer(const Exchange& exchange, const WriteOptions& options, Kind kind,
                const std::string& subresource = "") const;
  // For a job that the caller creates now.
  Admission admission(const std::string& ns, const Caller& caller) const;
  std::string random_uid() const;
  // Five characters for a generated name.
  std::string random_suffix() const;

  StreamContext& streams_;
  const View& view_;
  Backend& backend_;
  Renderer& renderer_;
  const ServerOptions& options_;
  const AccessGate& gate_;
  Quotas& quotas_;
  Directory& directory_;
  Queues& queues_;
  Logins& logins_;
};

}  // namespace muster::api
