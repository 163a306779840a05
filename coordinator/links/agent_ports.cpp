#include "coordinator/links/agent_ports.hpp"

#include "actors/messages.hpp"
#include "api/http/ends.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "coordinator/links/rpc_peer.hpp"
#include "coordinator/links/wire_text.hpp"
#include "coordinator/threads/descriptors.hpp"
#include "core/spec/values/names.hpp"
#include "trust/tls/certificates.hpp"
#include "trust/tls/link.hpp"

#include <caf/send.hpp>
#include <kj/debug.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace muster::coordinator {

namespace {

constexpr uint64_t kBarredBytesMax = 64u << 10;  // from a connection that may not register

}  // namespace

AgentPorts::AgentPorts(RpcContext& context, AgentLinks& links,
                       std::function<capnp::Capability::Client(uint64_t number)> bootstrap)
    : context_(context),
      links_(links),
      bootstrap_(std::move(bootstrap)),
      crowd_(Descriptors::of_process().agents),
      barred_{kBarredBytesMax, 64 * kBarredBytesMax} {}

AgentPorts::Caller* AgentPorts::find(uint64_t number) {
  const auto it = callers_.find(number);
  return it == callers_.end() ? nullptr : &it->second;
}

void AgentPorts::registered(uint64_t number, NodeId node) {
  callers_.at(number).meter->stop();
  node_of_[number] = node;
  crowd_.busy(number);
}

void AgentPorts::renewed(uint64_t number, const std::string& certificate) {
  Caller* caller = find(number);
  const auto facts = tls::read_certificate(certificate);
  if (caller == nullptr || !caller->guest || !facts) return;
  if (caller->guest->who.kind == tls::Identity::Kind::node)
    caller->guest->until_ms = std::max(caller->guest->until_ms, facts->until_ms);
}

void AgentPorts::disconnect(NodeId node) {
  if (const auto number = links_.disconnect(node)) hang_up(*number);
}

// Dropping the stream closes the connection.
void AgentPorts::admit(kj::Own<kj::AsyncIoStream> stream) {
  const PeerVerdict who = lookup_.judge(api::fd_of(*stream));
  const std::vector<uid_t>& users = context_.options.agent_users;
  const bool agent_user = who.uid && std::find(users.begin(), users.end(), *who.uid) != users.end();
  if (!context_.options.insecure && !agent_user && who.kind != PeerVerdict::Kind::trusted) {
    if (const auto more = strangers_.due(boot_now()))
      log::warn("rejected a connection to the agents' port: {}; --agent-user admits another user{}",
                who.why, *more);
    return;
  }
  if (auto place = enter(who.who))
    talk(place->number, kj::mv(stream), kj::mv(place->closed), std::nullopt);
}

std::optional<AgentPorts::Place> AgentPorts::enter(const std::string& who) {
  const auto room = crowd_.make_room(who);
  if (room.instead) hang_up(*room.instead);
  if (!room.ok) {
    if (const auto more = turned_away_.due(boot_now()))
      log::warn("the agents' port has reached its limit of {} connections; rejecting {}{}",
                crowd_.size(), who, *more);
    return std::nullopt;
  }
  const uint64_t number = ++last_link_;
  crowd_.enter(number, who);
  auto closed = kj::newPromiseAndFulfiller<void>();
  closing_.emplace(number, kj::mv(closed.fulfiller));
  return Place{number, kj::mv(closed.promise)};
}

// A TLS connection: the peer's identity decides whether it is served.
kj::Promise<void> AgentPorts::shake_hands(kj::Own<kj::AsyncIoStream> stream) {
  const std::string from = api::source_of(api::fd_of(*stream));
  auto place = enter(from);
  if (!place) return kj::READY_NOW;
  const uint64_t number = place->number;
  auto gone = place->closed.fork();
  auto shaken =
      context_.timer.timeoutAfter(context_.options.register_patience_ms * kj::MILLISECONDS,
                                  tls_->wrapServer(kj::AuthenticatedStream{
                                      kj::mv(stream), kj::UnknownPeerIdentity::newInstance()}));
  auto dropped = gone.addBranch().then([]() -> kj::AuthenticatedStream {
    kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "closed to make room"));
  });
  return shaken.exclusiveJoin(kj::mv(dropped))
      .then([this, number, from, gone = gone.addBranch()](kj::AuthenticatedStream known) mutable {
        Guest guest = guest_of(known);
        if (guest.barred.empty())
          return talk(number, kj::mv(known.stream), kj::mv(gone), std::move(guest));
        if (const auto more = strangers_.due(boot_now()))
          log::warn("rejected a connection to the agents' TLS port from {} as {}: {}{}", from,
                    on_one_line(guest.who.common_name()), guest.barred, *more);
        if (guest.who.node.empty()) return left(number);
        // Tell an agent that was admitted before why it is rejected now.
        talk(number, kj::mv(known.stream), kj::mv(gone), std::move(guest));
      })
      .catch_([this, number, from](kj::Exception&& e) {
        if (const auto more = strangers_.due(boot_now()))
          log::warn("rejected a connection to the agents' TLS port from {}: {}{}", from,
                    tls::explained(e).value_or(short_text(e)), *more);
        left(number);
      });
}

Guest AgentPorts::guest_of(kj::AuthenticatedStream& known) const {
  auto& peer = kj::downcast<kj::TlsPeerIdentity>(*known.peerIdentity);
  if (!peer.hasCertificate()) return {{}, "it has no certificate"};
  const Millis until = tls::valid_until_ms(peer);
  const kj::String common_name = peer.getCommonName();
  const std::string name(common_name.begin(), common_name.size());
  const auto who = tls::Identity::parse(name);
  if (!who || !core::dns_subdomain_errors(who->node).empty())
    return {{}, "its certificate is for " + on_one_line(name) + ", not for a node"};
  return {*who, context_.options.trust->refuses(*who).value_or(""), until};
}

void AgentPorts::talk(uint64_t number, kj::Own<kj::AsyncIoStream> stream, kj::Promise<void> closed,
                      std::optional<Guest> guest) {
  const auto expires = guest ? std::optional(guest->until_ms) : std::nullopt;
  // A peer that may not register gets a small byte budget, separate from that of the others.
  const bool registers =
      !guest || (guest->barred.empty() && guest->who.kind == tls::Identity::Kind::node);
  auto meter = std::make_shared<Meter>(registers ? unregistered_ : barred_);
  callers_.emplace(number, Caller{meter, std::move(guest)});
  auto peer = kj::heap<RpcPeer>(metered(kj::mv(stream), std::move(meter)), bootstrap_(number));
  auto gone =
      peer->network.onDisconnect().exclusiveJoin(kj::mv(closed)).exclusiveJoin(silent(number));
  if (expires) gone = gone.exclusiveJoin(expired(number, *expires));
  context_.tasks.add(gone.then([this, number] { left(number); }).attach(kj::mv(peer)));
}

// Resolves when the newest certificate of the peer has expired: TLS checks the dates only at the
// handshake.
kj::Promise<void> AgentPorts::expired(uint64_t number, Millis until_ms) {
  const Millis left_ms = until_ms - wall_now();
  if (left_ms > kDayMs)  // check again later: clocks may be set
    return context_.timer.afterDelay(kDayMs * kj::MILLISECONDS).then([this, number, until_ms] {
      return expired(number, until_ms);
    });
  return context_.timer.afterDelay(std::max<Millis>(left_ms, 0) * kj::MILLISECONDS)
      .then([this, number, until_ms]() -> kj::Promise<void> {
        const Caller* caller = find(number);
        if (caller == nullptr) return kj::READY_NOW;
        if (caller->guest->until_ms > until_ms) return expired(number, caller->guest->until_ms);
        log::warn("the certificate of {} has expired; closing its connection",
                  caller->guest->who.common_name());
        return kj::READY_NOW;
      });
}

// Resolves if no agent registers on a connection in time.
kj::Promise<void> AgentPorts::silent(uint64_t number) {
  return context_.timer.afterDelay(context_.options.register_patience_ms * kj::MILLISECONDS)
      .then([this, number]() -> kj::Promise<void> {
        if (node_of_.contains(number)) return kj::NEVER_DONE;
        log::debug(
            "closing a connection to the agents' port: no agent has registered on it in time");
        return kj::READY_NOW;
      });
}

void AgentPorts::expel(const std::string& node) {
  std::vector<uint64_t> links;
  for (const auto& [number, caller] : callers_)
    if (caller.guest && caller.guest->who.node == node) links.push_back(number);
  for (const uint64_t number : links) hang_up(number);
}

void AgentPorts::hang_up(uint64_t number) {
  if (const auto it = closing_.find(number); it != closing_.end()) it->second->fulfill();
}

void AgentPorts::left(uint64_t number) {
  crowd_.leave(number);
  callers_.erase(number);
  closing_.erase(number);
  auto it = node_of_.find(number);
  if (it == node_of_.end()) return;
  NodeId node = it->second;
  node_of_.erase(it);
  if (links_.current(node, number)) links_.disconnect(node);
  caf::anon_send(context_.cluster, actors::LinkDown{node, number});
}

}  // namespace muster::coordinator
