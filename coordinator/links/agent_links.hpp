// AgentLinks: the registered agents by node, with the orders and questions to them.
//
// Orders are sent in lists, in order of arrival; a template precedes the first pod that needs it.
// Launches that arrive together with the answer to a report of their node leave with that answer,
// unless an earlier list is in flight: an answer can overtake a call.
//
// Invariants: a node has one link, from its last registration; orders for a disconnected node are
// dropped, as are launches under an earlier registration; at most kListsInFlight lists are in
// flight to an agent.
//
// Belongs to the RPC thread.
#pragma once

#include "api/request/backend.hpp"
#include "base/seldom.hpp"
#include "coordinator/links/rpc_context.hpp"
#include "core/ids.hpp"
#include "core/spec/fields/downward.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <schema/agent.capnp.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::coordinator {

struct Order {
  enum class What : uint8_t { launch, kill, limit };
  What what = What::launch;
  NodeId node = kNoNode;
  uint64_t link = 0;  // of a launch: dropped under another registration
  PodId pod;
  core::JobObjectPtr object;  // of a launch
  bool by_call = false;       // a launch that must not overtake the calls before it
  Millis ms = 0;              // the grace of a kill; a limit, 0: none
};

void write_launch(wire::Launch::Builder out, const Order& launch);

class AgentLinks {
 public:
  // What an agent can take, which those of earlier versions cannot.
  struct Takes {
    bool launches = false;    // with the answer to a report
    bool templates = false;   // as bytes
    bool containers = false;  // for commands to join, other than the first
  };
  // A registered agent.
  struct Link {
    Link(uint64_t n, std::string name, core::NodeFigures has, Takes what, wire::Agent::Client a)
        : number(n),
          takes(what),
          node(std::move(name)),
          figures(std::move(has)),
          agent(kj::mv(a)) {}
    uint64_t number;
    Takes takes;
    std::string node;  // name
    core::NodeFigures figures;
    wire::Agent::Client agent;
    std::set<std::pair<JobId, int64_t>> templates;  // already sent to it
    std::vector<Order> orders;                      // not sent yet
    unsigned in_flight = 0;
  };

  explicit AgentLinks(RpcContext& context) : context_(context) {}

  void connect(NodeId node, Link link);  // replaces the link of an earlier registration
  // The number of the connection that the node had.
  std::optional<uint64_t> disconnect(NodeId node);
  void clear() { links_.clear(); }
  // Whether this connection belongs to the node's last registration.
  bool current(NodeId node, uint64_t number) const;
  const Link* find(NodeId node) const;  // null: not connected
  Link* find(NodeId node);

  void deliver(std::vector<Order> orders);
  // Launches to send with the answer to a report on this connection.
  std::vector<Order> take_launches(NodeId node, uint64_t number);
  // The answer goes to the registry (actors::AgentLink::ask).
  void ask_ended(NodeId node, JobId job, uint64_t question);
  // `unavailable`: the node is not connected, or did not answer.
  void ask_log(const api::LogRequest& ask, const std::function<void(Result<api::LogChunk>)>& done);
  void find_log(const api::LogSearch& ask, const std::function<void(Result<api::LogBegins>)>& done);
  // Logs, at a limited rate, that a call to an agent failed for a reason other than disconnection.
  void warn_of(const kj::Exception& e, NodeId node, const char* what);

 private:
  Link* link_of(const api::LogSource& log);  // null: its agent is not connected
  void flush(NodeId node);
  void accepted(NodeId node, uint64_t number);
  kj::Promise<void> send_launches(Link& link, kj::ArrayPtr<const Order> run);
  kj::Promise<void> send(Link& link, Order::What what, kj::ArrayPtr<const Order> run);
  kj::Promise<void> send_kills(Link& link, kj::ArrayPtr<const Order> run);
  kj::Promise<void> send_limits(Link& link, kj::ArrayPtr<const Order> run);
  void write(wire::PodTemplate::Builder out, const Link& link, const Order& launch) const;

  RpcContext& context_;
  std::map<NodeId, Link> links_;
  std::set<NodeId> due_;  // have new orders, which leave at the end of this turn of the loop
  Seldom refused_orders_;
};

}  // namespace muster::coordinator
