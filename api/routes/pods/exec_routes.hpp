// Commands in running pods. For `muster exec`, POST starts one, GET reads its output as it comes,
// PUT writes to its input, DELETE ends it. The client chooses the session's id, so that a repeated
// request, even to a restarted coordinator, finds the command instead of starting it twice. For
// kubectl's exec and cp, one request does all of that, on a WebSocket (exec_stream.hpp).
#pragma once

#include "api/request/route_base.hpp"

#include <string>

namespace muster::api {

class ExecRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit ExecRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise start(Exchange& exchange, const Target& pod, const std::string& body);
  Promise read(Exchange& exchange, const Target& pod);
  Promise write(Exchange& exchange, const Target& pod, const std::string& body);
  Promise end(Exchange& exchange, const Target& pod);
  Promise stream(Exchange& exchange, const Target& pod);
};

}  // namespace muster::api
