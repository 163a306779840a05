// Leases, events, config maps, namespaces, cron jobs, queues and priority classes: create, replace,
// patch, apply, delete. Events of muster's own jobs are read-only, as are the config maps that
// muster provides. A deleted namespace is first shown as terminating; it disappears after its
// contents (namespace_sweep.hpp).
#pragma once

#include "api/kube/objects/kept_object.hpp"
#include "api/request/route_base.hpp"

#include <functional>
#include <optional>

namespace muster::api {

class KeptRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit KeptRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise create(Exchange& exchange, const Target& target, const std::string& body);
  Promise write(Exchange& exchange, const Target& target, const std::string& body);
  Promise apply(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove_all(Exchange& exchange, const Target& target, const std::string& body);

 private:
  // Makes the object that a request asks for from the current one, if any.
  using MakeKept = std::function<Result<core::KeptPtr>(const std::optional<Shown>& seen)>;
  Promise change(Exchange& exchange, const Target& target, bool dry, MakeKept make, int tries);
  Promise doubt(Exchange& exchange, const core::Kept& written);
  // The object as it was written.
  Promise respond_written(Exchange& exchange, const Target& target, const core::KeptPtr& next,
                          int code);
  Promise remove(Exchange& exchange, const Target& target, const std::string& body, int tries);
  Promise refuse(Exchange& exchange, const Target& target, const Error& error);
  Promise remove_namespace(Exchange& exchange, const Target& target, bool dry);
  Promise remove_own(Exchange& exchange, const std::string& ns, const Viewer& user, bool dry);
  KeptRequest request_of(const Exchange& exchange, const Target& target,
                         FieldValidation unknown_fields) const;
  // The target namespace, if it exists for the caller because it is in use.
  std::optional<core::Kept> used(const Exchange& exchange, const Target& target) const;
};

}  // namespace muster::api
