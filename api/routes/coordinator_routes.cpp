#include "api/routes/coordinator_routes.hpp"

#include "api/kube/objects/status_object.hpp"
#include "api/request/call.hpp"
#include "api/request/writes.hpp"

#include <utility>

namespace muster::api {
namespace {

using core::standby::LeadChange;
using core::standby::LeadFigures;
using core::standby::MemberFigures;
using core::standby::Place;

// Where it can be reached; without the addresses that it does not have.
OrderedJson addresses_json(const Place& place) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, address] :
       {std::pair{"peers", &place.peers}, std::pair{"api", &place.api},
        std::pair{"apiTls", &place.api_tls}, std::pair{"listen", &place.listen},
        std::pair{"listenTls", &place.listen_tls}})
    if (!address->empty()) json[name] = *address;
  return json;
}

OrderedJson coordinator_json(const std::string& name, OrderedJson status) {
  return {{"kind", "Coordinator"},
          {"apiVersion", "muster.dev/v1"},
          {"metadata", {{"name", name}}},
          {"status", std::move(status)}};
}

OrderedJson member_json(const LeadFigures& figures, const MemberFigures& member) {
  OrderedJson status = {{"role", member.leads ? "leader" : "follower"},
                        {"inSync", member.in_sync},
                        {"connected", member.connected},
                        {"term", figures.term}};
  if (member.commit != 0) status["commit"] = member.commit;
  if (const auto lag = figures.lag(member)) status["lag"] = *lag;
  if (member.round_trip_us && member.connected)
    status["roundTripSeconds"] = static_cast<double>(*member.round_trip_us) / 1e6;
  if (member.leads) status["storeAnswers"] = figures.store_answers;
  if (figures.store_wiped) status["storeWiped"] = true;
  status["addresses"] = addresses_json(member.place);
  status["version"] = member.place.version;
  return coordinator_json(member.name, std::move(status));
}

}  // namespace

OrderedJson CoordinatorRoutes::alone() const {
  const Links links = backend_.links();
  const Place place{.api = links.http, .api_tls = links.api, .listen_tls = links.agents};
  return coordinator_json(options_.host_name, {{"role", "leader"},
                                               {"inSync", true},
                                               {"connected", true},
                                               {"addresses", addresses_json(place)},
                                               {"version", options_.version}});
}

kj::Promise<void> CoordinatorRoutes::list(Exchange& exchange) {
  auto call = new_call<std::optional<LeadFigures>>();
  backend_.lead_figures(std::move(call.done));
  return call.promise.then([this, &exchange](const std::optional<LeadFigures>& figures) {
    OrderedJson json = {{"kind", "CoordinatorList"}, {"apiVersion", "muster.dev/v1"}};
    json["metadata"] = {{"resourceVersion", std::to_string(view_.version())}};
    json["items"] = OrderedJson::array();
    if (!figures) json["items"].push_back(alone());
    if (figures)
      for (const MemberFigures& member : figures->members)
        json["items"].push_back(member_json(*figures, member));
    return exchange.send(200, dumped(json) + "\n");
  });
}

kj::Promise<void> CoordinatorRoutes::promote(Exchange& exchange, const Target& coordinator,
                                             const std::string&) {
  return change(exchange, LeadChange::promote, coordinator.name);
}

kj::Promise<void> CoordinatorRoutes::demote(Exchange& exchange, const Target& coordinator,
                                            const std::string&) {
  return change(exchange, LeadChange::demote, coordinator.name);
}

kj::Promise<void> CoordinatorRoutes::remove(Exchange& exchange, const Target& coordinator,
                                            const std::string&) {
  return change(exchange, LeadChange::remove, coordinator.name);
}

kj::Promise<void> CoordinatorRoutes::change(Exchange& exchange, LeadChange change,
                                            const std::string& name) {
  Call call = new_call();
  backend_.change_lead(change, name, std::move(call.done));
  return call.promise.then([&exchange, name](const Status& status) {
    if (status.ok()) return exchange.send(200, dumped(success_json()) + "\n");
    // The reason is about the lead, not about the version of an object.
    if (status.error().code == Errc::conflict)
      return exchange.send_status(409, "Conflict", status.error().message);
    return exchange.send_error(status.error(), "coordinators", name);
  });
}

}  // namespace muster::api
