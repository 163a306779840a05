// Part of the group muster.dev/v1: the map of a job's indexes, pods per node, what pods
// without a node require, shares of users, backups, verification.
#pragma once

#include "api/request/route_base.hpp"

#include <string>
#include <vector>

namespace muster::api {

class MusterRoutes final : private RouteBase {
 public:
  using RouteBase::Promise;
  explicit MusterRoutes(const RouteContext& context) : RouteBase(context) {}
  Promise indexes(Exchange& exchange, const Shown& job);
  Promise node_use(Exchange& exchange);
  Promise demand(Exchange& exchange);
  Promise shares(Exchange& exchange);
  Promise back_up(Exchange& exchange, const Target&, const std::string& body);
  Promise verification(Exchange& exchange);

 private:
  Promise send_shares(Exchange& exchange, const std::vector<core::Slots::Standing>& standings);
};

}  // namespace muster::api
