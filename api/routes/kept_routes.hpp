// Leases and events: create, replace, patch, delete. Events of muster's own jobs are read-only.
#pragma once

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
  Promise remove(Exchange& exchange, const Target& target, const std::string& body);
  Promise remove_all(Exchange& exchange, const Target& target, const std::string& body);

 private:
  // Makes the object that a request asks for from the current one, if any.
  using MakeKept = std::function<Result<core::KeptPtr>(const std::optional<Shown>& seen)>;
  Promise change(Exchange& exchange, const Target& target, bool dry, MakeKept make, int tries);
};

}  // namespace muster::api
