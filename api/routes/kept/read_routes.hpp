// Reads all of Kubernetes' objects: get, list, watch.
#pragma once

#include "api/request/route_base.hpp"
#include "api/view/query/selector.hpp"

#include <optional>

namespace muster::api {

// The objects that a list, watch or deletion selects.
Result<Query> query_of(const Exchange& exchange, const Target& target, const AccessGate& gate);

// As ValidateListOptions of apimachinery.
Status check_list_options(const Url& url);
// Reads where the watch begins that a request asks for, and how long it lasts. Otherwise refuses.
std::optional<kj::Promise<void>> watch_start(Exchange& exchange, const View& view, Kind kind,
                                             const ServerOptions& options, WatchStart& start);

class ReadRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit ReadRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise get(Exchange& exchange, const Target& target);
  // Starts a watch if the request asks for one.
  Promise list(Exchange& exchange, const Target& target);

 private:
  Promise watch(Exchange& exchange, Query query);
  std::optional<Promise> refuse_version(Exchange& exchange);
};

}  // namespace muster::api
