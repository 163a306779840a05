// Reading any of Kubernetes' objects: get, list, watch.
#pragma once

#include "api/routes/resource.hpp"
#include "api/view/selector.hpp"

#include <optional>

namespace muster::api {

// Which objects a list, a watch or a deletion means.
Result<Query> query_of(const Url& url, const Target& target);

class ReadRoutes final : private Resource {
 public:
  using Resource::Promise;
  explicit ReadRoutes(const RouteContext& context) : Resource(context) {}
  Promise get(Exchange& exchange, const Target& target);
  // A watch, if the request says so.
  Promise list(Exchange& exchange, const Target& target);

 private:
  Promise watch(Exchange& exchange, Query query);
  std::optional<Promise> refuse_version(Exchange& exchange);
};

}  // namespace muster::api
