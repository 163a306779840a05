#include "coordinator/rpc/registration.hpp"

#include "base/log.hpp"
#include "base/printable.hpp"
#include "coordinator/links/wire_convert.hpp"
#include "coordinator/links/wire_text.hpp"
#include "core/cluster/nodes/lease.hpp"
#include "trust/tls/proof.hpp"

#include <caf/send.hpp>
#include <kj/debug.h>

#include <memory>
#include <optional>
#include <utility>

namespace muster::coordinator {

namespace {

constexpr unsigned kRefusedMax = 4;        // rejected registrations before a connection is closed
constexpr size_t kRequestMax = 16u << 10;  // bytes of a certificate signing request
constexpr size_t kNodeNameMax = 253;       // bytes
constexpr size_t kChallengeMin = 16, kChallengeMax = 64;  // bytes

class Bootstrap final : public wire::Coordinator::Server {
 public:
  Bootstrap(Registration& registration, uint64_t link) : registration_(registration), link_(link) {}
  kj::Promise<void> register_(RegisterContext context) override {
    return registration_.enroll(context, link_);
  }
  kj::Promise<void> certify(CertifyContext context) override {
    return registration_.certify(context, link_);
  }
  kj::Promise<void> prove(ProveContext context) override {
    registration_.prove(context);
    return kj::READY_NOW;
  }

 private:
  Registration& registration_;
  const uint64_t link_;
};

std::string ip_of(wire::Hello::Reader hello) {
  constexpr size_t kIpMax = 45;
  std::string ip = text_of(hello.getIp(), kIpMax);
  return ip.find_first_not_of("0123456789abcdef.:") == std::string::npos ? ip : "";
}

}  // namespace

wire::Coordinator::Client Registration::bootstrap(uint64_t number) {
  return kj::heap<Bootstrap>(*this, number);
}

// What an agent learns when it is welcome.
void Registration::write_welcome(const core::cluster::HelloAnswer& answer,
                                 wire::Welcome::Builder welcome) const {
  welcome.setClusterId(desks_.context.options.cluster_id);
  welcome.setClusterKey(desks_.context.options.cluster_key);
  welcome.setEpoch(desks_.context.options.epoch);
  welcome.setNonce(desks_.context.options.nonce);
  welcome.setNodeId(answer.node);
  welcome.setHeartbeatMs(
      static_cast<uint64_t>(core::heartbeat_ms(desks_.context.options.node_grace_ms)));
  welcome.setLeaseMs(
      static_cast<uint64_t>(core::start_lease_ms(desks_.context.options.node_grace_ms)));
  desks_.context.tell(welcome);
  auto end = welcome.initEnd(static_cast<unsigned>(answer.end.size()));
  for (unsigned i = 0; i < answer.end.size(); ++i) write_pod(end[i], answer.end[i]);
}

kj::Promise<void> Registration::enroll(RegisterCall context, uint64_t number) {
  auto params = context.getParams();
  AgentPorts::Caller* caller = ports_.find(number);
  KJ_REQUIRE(caller != nullptr && !caller->registers, "a connection can register only once");
  caller->registers = true;
  if (const auto& guest = caller->guest; guest && !guest->barred.empty())
    return refuse(context, number, wire::Refusal::Why::INVALID, guest->barred, {});
  if (!desks_.context.serving)
    return refuse(context, number, wire::Refusal::Why::NOT_SERVING,
                  "not serving yet: replaying the journal", {});
  if (params.getHello().getProtocol() != wire::PROTOCOL_VERSION)
    return refuse(context, number, wire::Refusal::Why::PROTOCOL,
                  "it uses protocol " + std::to_string(params.getHello().getProtocol()) +
                      ", this coordinator uses " + std::to_string(wire::PROTOCOL_VERSION),
                  {});
  if (desks_.context.options.permit_key && !params.getHello().getHeedsOwners())
    return refuse(context, number, wire::Refusal::Why::PROTOCOL,
                  "it would run the pods of all users as its own user; upgrade it to this "
                  "coordinator's version",
                  {});
  auto hello = read_hello(params.getHello(), number);
  if (!hello)
    return refuse(context, number, wire::Refusal::Why::INVALID, hello.error().message, {});
  auto agent = params.getAgent();
  if (const auto& guest = caller->guest;
      guest && (guest->who.kind != tls::Identity::Kind::node || guest->who.node != hello->node))
    return refuse(context, number, wire::Refusal::Why::INVALID,
                  "it registers as " + on_one_line(hello->node) + ", but its certificate is for " +
                      guest->who.common_name(),
                  {});
  take_proof(params.getHello(), caller->guest.has_value(), *hello);
  if (caller->guest) {
    hello->claims = desks_.context.options.trust->claims_of(hello->node);
    hello->as_registered = !hello->claims;
  }
  hello->ip = ip_of(params.getHello());
  std::string node = hello->node;
  core::NodeFigures figures{hello->ip, hello->cpu_millis, hello->memory_bytes};
  const AgentLinks::Takes takes{params.getHello().getTakesLaunches(),
                                params.getHello().getTakesTemplates(),
                                params.getHello().getJoinsContainers()};
  actors::RegisterAgent ask{std::move(*hello), nullptr};
  context.releaseParams();
  auto paf = kj::newPromiseAndFulfiller<actors::HelloAnswer>();
  auto fulfiller =
      std::make_shared<kj::Own<kj::PromiseFulfiller<actors::HelloAnswer>>>(kj::mv(paf.fulfiller));
  ask.done = desks_.context.replies.across<actors::HelloAnswer>(
      [fulfiller](actors::HelloAnswer answer) { (*fulfiller)->fulfill(std::move(answer)); });
  caf::anon_send(desks_.context.cluster, std::move(ask));
  return paf.promise.then([this, context, number, takes, node = std::move(node),
                           figures = std::move(figures), agent = kj::mv(agent)](
                              actors::HelloAnswer answer) mutable -> kj::Promise<void> {
    using Kind = actors::HelloAnswer::Kind;
    switch (answer.kind) {
      case Kind::welcome:
        break;
      case Kind::name_taken:
        return refuse(context, number, wire::Refusal::Why::NAME_TAKEN, answer.message, answer.end);
      case Kind::other_cluster:
        return refuse(context, number, wire::Refusal::Why::OTHER_CLUSTER, answer.message,
                      answer.end);
    }
    if (TrustStore* const trust = desks_.context.options.trust) trust->know_node(node);
    auto out = context.getResults().initResult().initWelcome();
    write_welcome(answer, out.initWelcome());
    out.setSession(kj::heap<AgentSession>(desks_, answer.node, node, number));
    if (ports_.find(number) == nullptr) return kj::READY_NOW;  // it disconnected meanwhile
    ports_.registered(number, answer.node);
    desks_.links.connect(answer.node,
                         {number, std::move(node), std::move(figures), takes, kj::mv(agent)});
    desks_.mpi.connected(answer.node);
    caf::anon_send(desks_.context.cluster, actors::LinkUp{answer.node, number});
    return kj::READY_NOW;
  });
}

kj::Promise<void> Registration::certify(CertifyCall context, uint64_t number) {
  const AgentPorts::Caller* caller = ports_.find(number);
  KJ_REQUIRE(caller != nullptr);
  const auto params = context.getParams().getRequest();
  const std::string request(reinterpret_cast<const char*>(params.begin()), params.size());
  const std::string node = text_of(context.getParams().getNode(), kNodeNameMax);
  context.releaseParams();
  using Answer = Result<std::string>;
  auto paf = kj::newPromiseAndFulfiller<Answer>();
  if (!caller->guest) {
    paf.fulfiller->fulfill(invalid("only agents that connect over TLS get certificates"));
  } else if (request.size() > kRequestMax) {
    paf.fulfiller->fulfill(invalid("the request is too long"));
  } else if (!caller->guest->barred.empty()) {
    paf.fulfiller->fulfill(invalid(caller->guest->barred));
  } else {
    auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Answer>>>(kj::mv(paf.fulfiller));
    desks_.context.options.trust->certify(
        caller->guest->who, node, request,
        desks_.context.replies.across<Answer>(
            [fulfiller](Answer answer) { (*fulfiller)->fulfill(kj::mv(answer)); }));
  }
  return paf.promise.then(
      [this, context, number, node, who = caller->guest](Answer answer) mutable {
        std::string name = who ? who->who.common_name() : "a local agent";
        if (who && who->who.kind == tls::Identity::Kind::pool)
          name += " (" + on_one_line(node) + ")";
        auto out = context.getResults().initResult();
        if (answer.ok()) {
          log::info("signed a certificate for {}", name);
          out.setCertificate(*answer);
          ports_.renewed(number, *answer);
        } else {
          if (auto more = refusals_.due(boot_now()))
            log::warn("refused {} a certificate: {}{}", name, answer.error().message, *more);
          out.setRefused(answer.error().message);
        }
      });
}

void Registration::prove(ProveCall context) const {
  const auto challenge = context.getParams().getChallenge();
  KJ_REQUIRE(challenge.size() >= kChallengeMin && challenge.size() <= kChallengeMax);
  const RpcOptions& options = desks_.context.options;
  auto results = context.getResults();
  results.setClusterId(options.cluster_id);
  results.setProof(
      tls::proof_of_key(options.cluster_key, options.cluster_id,
                        {reinterpret_cast<const char*>(challenge.begin()), challenge.size()}));
}

kj::Promise<void> Registration::refuse(RegisterCall context, uint64_t number,
                                       wire::Refusal::Why why, const std::string& message,
                                       const std::vector<PodId>& end) {
  if (why != wire::Refusal::Why::NOT_SERVING)
    if (auto more = refusals_.due(boot_now())) log::warn("rejected an agent: {}{}", message, *more);
  if (AgentPorts::Caller* caller = ports_.find(number)) {
    caller->registers = false;
    if (++caller->refused > kRefusedMax) ports_.hang_up(number);
  }
  auto refused = context.getResults().initResult().initRefused();
  refused.setWhy(why);
  refused.setMessage(message);
  auto pods = refused.initEnd(static_cast<unsigned>(end.size()));
  for (unsigned i = 0; i < end.size(); ++i) write_pod(pods[i], end[i]);
  return kj::READY_NOW;
}

void Registration::take_proof(wire::Hello::Reader from, bool remote,
                              actors::AgentHello& hello) const {
  hello.must_prove = remote && desks_.context.options.seals_prove;
  const auto sealed = from.getSealed();
  const core::KnownHistory history{sealed.getEpoch(), sealed.getNonce(), sealed.getCommit()};
  const auto seal = sealed.getSeal();
  if (desks_.context.options.seal.is_of(history, {seal.begin(), seal.size()}))
    hello.sealed = history;
}

}  // namespace muster::coordinator
