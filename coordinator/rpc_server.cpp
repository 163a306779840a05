#include "coordinator/rpc_server.hpp"

#include "api/http/admission.hpp"
#include "api/http/ends.hpp"
#include "api/http/peer_uid.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/seldom.hpp"
#include "coordinator/descriptors.hpp"
#include "coordinator/exec_relay.hpp"
#include "coordinator/fence_desk.hpp"
#include "coordinator/host_desk.hpp"
#include "coordinator/inbox.hpp"
#include "coordinator/listening.hpp"
#include "coordinator/metered.hpp"
#include "coordinator/replies.hpp"
#include "coordinator/wire_convert.hpp"
#include "core/cluster/lease.hpp"
#include "core/node/values.hpp"
#include "core/pod_name.hpp"
#include "core/spec/names.hpp"
#include "tls/link.hpp"

#include <caf/send.hpp>
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace muster::coordinator {

namespace {

constexpr unsigned kListsInFlight = 8;  // lists of launches or kills that an agent has not accepted
constexpr unsigned kRefusedMax = 4;  // rejected registrations of a connection, before it is closed
constexpr size_t kRequestMax = 16u << 10;        // bytes of a certificate signing request
constexpr uint64_t kBarredBytesMax = 64u << 10;  // that a connection sends which may not register
constexpr size_t kPutsMax = 256, kPutMax = 1'024,
                 kPutBytesMax = 16'384;  // of an MPI rank; bytes of each
constexpr Millis kHostsMs = 100;         // states of an MPI job's pods are gathered
constexpr size_t kSealWords = 10;        // of a message, for HistorySeal
constexpr size_t kReasonMax = 64;        // bytes of the reason for a node's trouble

std::string text_of(capnp::Text::Reader text, size_t most) {
  return utf8_prefix({text.begin(), text.size()}, most);
}

// An exception's text, cut to size: an agent may have written it.
std::string short_text(const kj::Exception& exception) {
  return utf8_prefix({exception.getDescription().cStr(), exception.getDescription().size()},
                     kMessageMax);
}

using RegisterContext =
    capnp::CallContext<wire::Coordinator::RegisterParams, wire::Coordinator::RegisterResults>;

using CertifyContext =
    capnp::CallContext<wire::Coordinator::CertifyParams, wire::Coordinator::CertifyResults>;

class Server;

// One connection. Members are destroyed in reverse order, the stream after its users.
struct Peer {
  uint64_t link;
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  static capnp::ReaderOptions limits() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = (64u << 20) / 8;
    return options;
  }
  Peer(uint64_t number, kj::Own<kj::AsyncIoStream> s, capnp::Capability::Client bootstrap)
      : link(number),
        stream(kj::mv(s)),
        network(*stream, capnp::rpc::twoparty::Side::SERVER, limits()),
        rpc(capnp::makeRpcServer(network, kj::mv(bootstrap))) {}
};

// Who is at the other end of a connection over TLS.
struct Guest {
  tls::Identity who;
  std::string barred;  // why this guest may not register; empty: it may
};

struct Order {
  bool kill = false;
  NodeId node = kNoNode;
  uint64_t link = 0;  // of a launch: dropped under another registration
  PodId pod;
  core::JobObjectPtr object;  // of a launch
  Millis grace_ms = 0;        // of a kill
};

// A registered agent.
struct Link {
  Link(uint64_t n, std::string name, std::string address, wire::Agent::Client a)
      : number(n), node(std::move(name)), ip(std::move(address)), agent(kj::mv(a)) {}
  uint64_t number;
  std::string node;  // name
  std::string ip;    // at which other nodes reach it
  wire::Agent::Client agent;
  std::set<std::pair<JobId, int64_t>> templates;  // already sent to it
  std::vector<Order> orders;                      // not sent yet
  unsigned in_flight = 0;
};

class Session final : public wire::Session::Server {
 public:
  Session(coordinator::Server& server, NodeId node, uint64_t link)
      : server_(server), node_(node), link_(link) {}
  kj::Promise<void> heartbeat(HeartbeatContext context) override;
  kj::Promise<void> report(ReportContext context) override;
  kj::Promise<void> leave(LeaveContext context) override;
  kj::Promise<void> exec(ExecContext context) override;
  kj::Promise<void> fence(FenceContext context) override;
  kj::Promise<void> gather(GatherContext context) override;

 private:
  void check_current();
  coordinator::Server& server_;
  NodeId node_;
  uint64_t link_;
};

class Bootstrap final : public wire::Coordinator::Server {
 public:
  Bootstrap(coordinator::Server& server, uint64_t link) : server_(server), link_(link) {}
  kj::Promise<void> register_(RegisterContext context) override;
  kj::Promise<void> certify(CertifyContext context) override;

 private:
  coordinator::Server& server_;
  uint64_t link_;
};

class Server final : public RpcServer, public kj::TaskSet::ErrorHandler {
 public:
  explicit Server(RpcOptions options) : options_(std::move(options)) {}
  ~Server() override { stop(); }

  Status start() {
    std::promise<Status> bound;
    auto result = bound.get_future();
    thread_ = std::thread([this, bound = std::move(bound)]() mutable { run(bound); });
    Status status = result.get();
    if (!status) thread_.join();
    return status;
  }

  void serve(actors::cluster_actor cluster, actors::registry_actor registry) override {
    post([this, cluster, registry] {
      cluster_ = cluster;
      registry_ = registry;
      serving_ = true;
      tasks_->add(acceptor_->run(*port_));
      if (tls_port_ != nullptr) tasks_->add(tls_acceptor_->run(*tls_port_));
    });
  }

  std::string address() const override { return address_; }
  std::string tls_address() const override { return tls_address_; }

  void launch(NodeId node, uint64_t link, std::vector<PodId> pods,
              core::JobObjectPtr object) override {
    std::vector<Order> list;
    list.reserve(pods.size());
    for (PodId pod : pods) list.push_back({false, node, link, pod, object, 0});
    order(std::move(list));
  }
  void kill(NodeId node, PodId pod, Millis grace_ms) override {
    order({{true, node, 0, pod, nullptr, grace_ms}});
  }
  void ask(NodeId node, JobId job, uint64_t question) override {
    post([this, node, job, question] { ask_ended(node, job, question); });
  }
  void hosts(JobId job, core::HostListPtr hosts) override {
    post([this, job, hosts = std::move(hosts)] { take_hosts(job, hosts); });
  }
  void drop(NodeId node) override {
    post([this, node] { disconnect(node); });
  }
  void expel_node(const std::string& node) override {
    post([this, node] { expel(node); });
  }

  void read_log(api::LogRequest request, std::function<void(Result<api::LogChunk>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] { ask_log(request, done); });
  }

  void exec(api::ExecRequest request, std::function<void(Result<api::ExecStarted>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] {
      tasks_->add(relay_->start(request).then(
          [done](Result<api::ExecStarted>&& started) { done(std::move(started)); }));
    });
  }
  void read_exec(api::ExecRead request,
                 std::function<void(Result<api::ExecOutput>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] {
      tasks_->add(relay_->read(request).then(
          [done](Result<api::ExecOutput>&& output) { done(std::move(output)); }));
    });
  }
  void write_exec(api::ExecWrite request,
                  std::function<void(Result<api::ExecTaken>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] {
      tasks_->add(relay_->write(request).then(
          [done](Result<api::ExecTaken>&& taken) { done(std::move(taken)); }));
    });
  }
  void end_exec(api::ExecSession session, std::function<void(Status)> done) override {
    post([this, session = std::move(session), done = std::move(done)] {
      tasks_->add(relay_->end(session).then([done](Status&& ended) { done(std::move(ended)); }));
    });
  }

  void stop() override {
    if (!thread_.joinable()) return;
    post([this] { (*stopped_)->fulfill(); });
    thread_.join();
  }

  // ---- on the RPC thread

  FenceDesk& fences() { return fences_; }
  bool hosts_here(PodId pod, NodeId node) const { return desk_.is_on(pod, node); }
  bool has_part(JobId job, NodeId node) const { return desk_.nodes_of(job).contains(node); }

  kj::Promise<void> relay(ExecRelay::ExecCall context, NodeId node) {
    return relay_->exec(context, node);
  }

  void post(std::function<void()> task) { door_->post(std::move(task)); }

  kj::Promise<void> enroll(RegisterContext context, uint64_t number) {
    auto params = context.getParams();
    auto caller = callers_.find(number);
    KJ_REQUIRE(caller != callers_.end() && !caller->second.registers,
               "a connection can register only once");
    caller->second.registers = true;
    if (const auto& guest = caller->second.guest; guest && !guest->barred.empty())
      return refuse(context, number, wire::Refusal::Why::INVALID, guest->barred, {});
    if (!serving_)
      return refuse(context, number, wire::Refusal::Why::NOT_SERVING,
                    "not serving yet: replaying the journal", {});
    if (params.getHello().getProtocol() != wire::PROTOCOL_VERSION)
      return refuse(context, number, wire::Refusal::Why::PROTOCOL,
                    "it uses protocol " + std::to_string(params.getHello().getProtocol()) +
                        ", this coordinator uses " + std::to_string(wire::PROTOCOL_VERSION),
                    {});
    if (options_.permit_key && !params.getHello().getHeedsOwners())
      return refuse(context, number, wire::Refusal::Why::PROTOCOL,
                    "it would run the pods of all users as its own user; upgrade it to this "
                    "coordinator's version",
                    {});
    auto hello = read_hello(params.getHello(), number);
    if (!hello)
      return refuse(context, number, wire::Refusal::Why::INVALID, hello.error().message, {});
    auto agent = params.getAgent();
    if (const auto& guest = caller->second.guest;
        guest && (guest->who.kind != tls::Identity::Kind::node || guest->who.node != hello->node))
      return refuse(context, number, wire::Refusal::Why::INVALID,
                    "it registers as " + on_one_line(hello->node) +
                        ", but its certificate is for " + guest->who.common_name(),
                    {});
    take_proof(params.getHello(), caller->second.guest.has_value(), *hello);
    std::string node = hello->node, ip = ip_of(params.getHello());
    actors::RegisterAgent ask{std::move(*hello), nullptr};
    context.releaseParams();
    auto paf = kj::newPromiseAndFulfiller<actors::HelloAnswer>();
    auto fulfiller =
        std::make_shared<kj::Own<kj::PromiseFulfiller<actors::HelloAnswer>>>(kj::mv(paf.fulfiller));
    ask.done = replies_.across<actors::HelloAnswer>(
        [fulfiller](actors::HelloAnswer answer) { (*fulfiller)->fulfill(std::move(answer)); });
    caf::anon_send(cluster_, std::move(ask));
    return paf.promise.then(
        [this, context, number, node = std::move(node), ip = std::move(ip),
         agent = kj::mv(agent)](actors::HelloAnswer answer) mutable -> kj::Promise<void> {
          using Kind = actors::HelloAnswer::Kind;
          switch (answer.kind) {
            case Kind::welcome:
              break;
            case Kind::name_taken:
              return refuse(context, number, wire::Refusal::Why::NAME_TAKEN, answer.message,
                            answer.end);
            case Kind::other_cluster:
              return refuse(context, number, wire::Refusal::Why::OTHER_CLUSTER, answer.message,
                            answer.end);
          }
          auto out = context.getResults().initResult().initWelcome();
          auto welcome = out.initWelcome();
          welcome.setClusterId(options_.cluster_id);
          welcome.setClusterKey(options_.cluster_key);
          welcome.setEpoch(options_.epoch);
          welcome.setNonce(options_.nonce);
          welcome.setNodeId(answer.node);
          welcome.setHeartbeatMs(static_cast<uint64_t>(core::heartbeat_ms(options_.node_grace_ms)));
          welcome.setLeaseMs(static_cast<uint64_t>(core::start_lease_ms(options_.node_grace_ms)));
          tell(welcome);
          auto end = welcome.initEnd(static_cast<unsigned>(answer.end.size()));
          for (unsigned i = 0; i < answer.end.size(); ++i) write_pod(end[i], answer.end[i]);
          out.setSession(kj::heap<Session>(*this, answer.node, number));
          if (!peers_.contains(number)) return kj::READY_NOW;  // it disconnected meanwhile
          if (auto in = callers_.find(number); in != callers_.end()) in->second.meter->stop();
          node_of_[number] = answer.node;
          crowd_.busy(number);
          links_.erase(answer.node);
          links_.emplace(answer.node, Link{number, std::move(node), std::move(ip), kj::mv(agent)});
          for (const JobId job : desk_.jobs_on(answer.node)) send_hosts(answer.node, job);
          desk_.connected();
          caf::anon_send(cluster_, actors::LinkUp{answer.node, number});
          return kj::READY_NOW;
        });
  }

  kj::Promise<void> certify(CertifyContext context, uint64_t number) {
    const auto caller = callers_.find(number);
    KJ_REQUIRE(caller != callers_.end());
    const auto params = context.getParams().getRequest();
    const std::string request(reinterpret_cast<const char*>(params.begin()), params.size());
    context.releaseParams();
    using Answer = Result<std::string>;
    auto paf = kj::newPromiseAndFulfiller<Answer>();
    if (!caller->second.guest) {
      paf.fulfiller->fulfill(invalid("only agents that connect by TLS get certificates"));
    } else if (request.size() > kRequestMax) {
      paf.fulfiller->fulfill(invalid("the request is too long"));
    } else if (!caller->second.guest->barred.empty()) {
      paf.fulfiller->fulfill(invalid(caller->second.guest->barred));
    } else {
      auto fulfiller =
          std::make_shared<kj::Own<kj::PromiseFulfiller<Answer>>>(kj::mv(paf.fulfiller));
      options_.trust->certify(caller->second.guest->who, request,
                              replies_.across<Answer>([fulfiller](Answer answer) {
                                (*fulfiller)->fulfill(kj::mv(answer));
                              }));
    }
    return paf.promise.then([this, context, who = caller->second.guest](Answer answer) mutable {
      const std::string name = who ? who->who.common_name() : "a local agent";
      auto out = context.getResults().initResult();
      if (answer.ok()) {
        log::info("signed a certificate for {}", name);
        out.setCertificate(*answer);
      } else {
        if (auto more = refusals_.due(boot_now()))
          log::warn("refused {} a certificate: {}{}", name, answer.error().message, *more);
        out.setRefused(answer.error().message);
      }
    });
  }

  bool current(NodeId node, uint64_t number) const {
    auto it = links_.find(node);
    return it != links_.end() && it->second.number == number;
  }
  const RpcOptions& options() const { return options_; }
  // Tells an agent our latest commit, with our seal.
  template <class Builder>
  void tell(Builder& out) const {
    const uint64_t commit = options_.last_commit();
    out.setCommit(commit);
    out.setSeal(options_.seal.of({options_.epoch, options_.nonce, commit}));
  }
  Replies& replies() { return replies_; }
  const actors::cluster_actor& cluster() const { return cluster_; }
  const actors::registry_actor& registry() const { return registry_; }

 private:
  void run(std::promise<Status>& bound) {
    auto io = kj::setupAsyncIo();
    Inbox inbox(io.unixEventPort);
    auto tasks = kj::heap<kj::TaskSet>(*this);
    tasks_ = tasks.get();
    timer_ = &io.provider->getTimer();
    relay_ = std::make_unique<ExecRelay>(
        *timer_, desk_,
        ExecRelay::Nodes{[this](NodeId node) {
                           const auto it = links_.find(node);
                           return it == links_.end() ? std::string() : it->second.node;
                         },
                         [this](NodeId node) -> kj::Maybe<wire::Agent::Client> {
                           const auto it = links_.find(node);
                           if (it == links_.end()) return nullptr;
                           return it->second.agent;
                         }},
        ExecRelay::Coordinator{options_.cluster_id, options_.epoch, options_.nonce,
                               &options_.permit_key});
    auto acceptor = kj::heap<api::Acceptor>(
        *timer_, "the agents' port", [this](kj::Own<kj::AsyncIoStream> s) { admit(kj::mv(s)); });
    acceptor_ = acceptor.get();
    auto opened = listen_on(io, "--listen", options_.listen, 0600);
    if (!opened) return bound.set_value(opened.error());
    kj::Own<kj::ConnectionReceiver> port = kj::mv(*opened);
    port_ = port.get();
    address_ = with_port(options_.listen, *port);
    kj::Own<kj::ConnectionReceiver> tls_port;
    kj::Own<kj::TlsContext> tls;
    auto tls_acceptor = kj::heap<api::Acceptor>(
        *timer_, "the agents' TLS port",
        [this](kj::Own<kj::AsyncIoStream> s) { tasks_->add(shake_hands(kj::mv(s))); });
    if (!options_.listen_tls.empty()) {
      auto opened_tls = listen_on(io, "--listen-tls", options_.listen_tls, 0600);
      if (!opened_tls) return bound.set_value(opened_tls.error());
      tls_port = kj::mv(*opened_tls);
      tls_port_ = tls_port.get();
      tls_acceptor_ = tls_acceptor.get();
      tls_address_ = with_port(options_.listen_tls, *tls_port);
      tls = tls::server_context(options_.trust->server_certificate({}), options_.trust->authority(),
                                true);
      tls_ = tls.get();
    }
    auto paf = kj::newPromiseAndFulfiller<void>();
    stopped_ = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    door_->open(inbox);
    tasks->add(inbox.run());
    bound.set_value(Nothing{});
    paf.promise.wait(io.waitScope);
    door_->shut();
    closing_.clear();
    links_.clear();
    tasks = nullptr;                   // ends all connections
    io.waitScope.cancelAllDetached();  // and the calls that came over them
    relay_ = nullptr;
    desk_ = HostDesk();
    fences_ = FenceDesk();
    replies_.clear();
    cluster_ = actors::cluster_actor{};
    registry_ = actors::registry_actor{};
  }

  // Dropping the stream closes the connection.
  void admit(kj::Own<kj::AsyncIoStream> stream) {
    const api::Verdict who = lookup_.judge(api::fd_of(*stream));
    if (!options_.insecure && who.kind != api::Verdict::Kind::trusted) {
      if (const auto more = strangers_.due(boot_now()))
        log::warn("rejected a connection to the agents' port: {}; --insecure allows others{}",
                  who.why, *more);
      return;
    }
    if (auto place = enter(who.who))
      talk(place->number, kj::mv(stream), kj::mv(place->closed), std::nullopt);
  }

  // A connection that is counted until left(), and the promise that ends it.
  struct Place {
    uint64_t number;
    kj::Promise<void> closed;
  };
  // Nothing: the port is full.
  std::optional<Place> enter(const std::string& who) {
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

  // A connection over TLS: who is at its other end decides whether it is served.
  kj::Promise<void> shake_hands(kj::Own<kj::AsyncIoStream> stream) {
    const std::string from = api::source_of(api::fd_of(*stream));
    auto place = enter(from);
    if (!place) return kj::READY_NOW;
    const uint64_t number = place->number;
    auto gone = place->closed.fork();
    auto shaken =
        timer_->timeoutAfter(options_.register_patience_ms * kj::MILLISECONDS,
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

  Guest guest_of(kj::AuthenticatedStream& known) const {
    auto& peer = kj::downcast<kj::TlsPeerIdentity>(*known.peerIdentity);
    if (!peer.hasCertificate()) return {{}, "it has no certificate"};
    const kj::String common_name = peer.getCommonName();
    const std::string name(common_name.begin(), common_name.size());
    const auto who = tls::Identity::parse(name);
    if (!who || !core::dns_subdomain_errors(who->node).empty())
      return {{}, "its certificate is for " + on_one_line(name) + ", not for a node"};
    return {*who, options_.trust->refuses(*who).value_or("")};
  }

  void talk(uint64_t number, kj::Own<kj::AsyncIoStream> stream, kj::Promise<void> closed,
            std::optional<Guest> guest) {
    const bool bounded = guest.has_value();
    // Whoever may not register has little to say, and takes nothing from those who may.
    const bool registers =
        !guest || (guest->barred.empty() && guest->who.kind == tls::Identity::Kind::node);
    auto meter = std::make_shared<Meter>(registers ? unregistered_ : barred_);
    callers_.emplace(number, Caller{meter, std::move(guest)});
    auto peer = kj::heap<Peer>(number, metered(kj::mv(stream), std::move(meter)),
                               kj::heap<Bootstrap>(*this, number));
    peers_.insert(number);
    auto gone =
        peer->network.onDisconnect().exclusiveJoin(kj::mv(closed)).exclusiveJoin(silent(number));
    // So that no connection lasts much longer than its certificate.
    if (bounded)
      gone = gone.exclusiveJoin(
          timer_->afterDelay(options_.trust->connection_ms() * kj::MILLISECONDS));
    tasks_->add(gone.then([this, number] { left(number); }).attach(kj::mv(peer)));
  }

  // Resolves if no agent registers on a connection in time.
  kj::Promise<void> silent(uint64_t number) {
    return timer_->afterDelay(options_.register_patience_ms * kj::MILLISECONDS)
        .then([this, number]() -> kj::Promise<void> {
          if (node_of_.contains(number)) return kj::NEVER_DONE;
          log::debug(
              "closing a connection to the agents' port: no agent has registered on it in time");
          return kj::READY_NOW;
        });
  }

  void expel(const std::string& node) {
    std::vector<uint64_t> links;
    for (const auto& [number, caller] : callers_)
      if (caller.guest && caller.guest->who.node == node) links.push_back(number);
    for (const uint64_t number : links) hang_up(number);
  }

  void hang_up(uint64_t number) {
    if (const auto it = closing_.find(number); it != closing_.end()) it->second->fulfill();
  }

  void left(uint64_t number) {
    crowd_.leave(number);
    peers_.erase(number);
    callers_.erase(number);
    closing_.erase(number);
    auto it = node_of_.find(number);
    if (it == node_of_.end()) return;
    NodeId node = it->second;
    node_of_.erase(it);
    if (current(node, number)) links_.erase(node);
    caf::anon_send(cluster_, actors::LinkDown{node, number});
  }

  void disconnect(NodeId node) {
    auto it = links_.find(node);
    if (it == links_.end()) return;
    const uint64_t number = it->second.number;
    links_.erase(it);
    hang_up(number);
  }

  kj::Promise<void> refuse(RegisterContext context, uint64_t number, wire::Refusal::Why why,
                           const std::string& message, const std::vector<PodId>& end) {
    if (why != wire::Refusal::Why::NOT_SERVING)
      if (auto more = refusals_.due(boot_now()))
        log::warn("rejected an agent: {}{}", message, *more);
    if (auto caller = callers_.find(number); caller != callers_.end()) {
      caller->second.registers = false;
      if (++caller->second.refused > kRefusedMax) closing_.at(number)->fulfill();
    }
    auto refused = context.getResults().initResult().initRefused();
    refused.setWhy(why);
    refused.setMessage(message);
    auto pods = refused.initEnd(static_cast<unsigned>(end.size()));
    for (unsigned i = 0; i < end.size(); ++i) write_pod(pods[i], end[i]);
    return kj::READY_NOW;
  }

  // ---- MPI jobs

  static std::string ip_of(wire::Hello::Reader hello) {
    constexpr size_t kIpMax = 45;
    std::string ip = text_of(hello.getIp(), kIpMax);
    return ip.find_first_not_of("0123456789abcdef.:") == std::string::npos ? ip : "";
  }

  // Which pods there are must be known before they are launched; their states may wait for more.
  void take_hosts(JobId job, const core::HostListPtr& hosts) {
    const std::set<NodeId> before = desk_.nodes_of(job);
    const HostDesk::Change change = desk_.set(job, hosts);
    fences_.set(job, hosts);
    if (change == HostDesk::Change::states) {
      if (hosts_due_.insert(job).second && hosts_due_.size() == 1)
        tasks_->add(timer_->afterDelay(kHostsMs * kj::MILLISECONDS).then([this] {
          for (const JobId due : std::exchange(hosts_due_, {}))
            for (const NodeId node : desk_.nodes_of(due)) send_hosts(node, due);
        }));
    } else if (change == HostDesk::Change::members) {
      std::set<NodeId> nodes = desk_.nodes_of(job);
      nodes.insert(before.begin(), before.end());
      for (const NodeId node : nodes) send_hosts(node, job);
    }
  }

  void send_hosts(NodeId node, JobId job) {
    const auto it = links_.find(node);
    if (it == links_.end()) return;
    auto request = it->second.agent.hostsRequest();
    request.setEpoch(options_.epoch);
    request.setNonce(options_.nonce);
    auto one = request.initJobs(1)[0];
    one.setJob(job);
    if (const core::HostListPtr list = desk_.of(job)) {
      one.setCompletions(list->count);
      auto out = one.initHosts(static_cast<unsigned>(list->hosts.size()));
      for (unsigned i = 0; i < list->hosts.size(); ++i) {
        const core::HostList::Host& host = list->hosts[i];
        out[i].setIndex(host.pod.index);
        out[i].setAttempt(host.pod.attempt);
        out[i].setRunning(host.running);
        if (const auto at = links_.find(host.node); at != links_.end()) {
          out[i].setNode(at->second.node);
          out[i].setIp(at->second.ip);
        }
      }
    }
    tasks_->add(request.send().ignoreResult().catch_([this, node](kj::Exception&& e) {
      if (e.getType() != kj::Exception::Type::DISCONNECTED)
        if (auto more = refused_orders_.due(boot_now()))
          log::warn("n{} rejected a request: {}{}", node, short_text(e), *more);
    }));
  }

  // ---- orders

  void order(std::vector<Order> list) {
    bool first;
    {
      std::lock_guard lock(orders_mutex_);
      first = orders_.empty();
      orders_.insert(orders_.end(), std::make_move_iterator(list.begin()),
                     std::make_move_iterator(list.end()));
    }
    if (first) post([this] { deliver(); });
  }

  // Distributes all orders that have arrived to their nodes.
  void deliver() {
    std::vector<Order> orders;
    {
      std::lock_guard lock(orders_mutex_);
      orders.swap(orders_);
    }
    std::set<NodeId> nodes;
    for (Order& o : orders) {
      auto it = links_.find(o.node);
      if (it == links_.end() || (!o.kill && o.link != it->second.number))
        continue;  // its next registration derives the order again
      it->second.orders.push_back(std::move(o));
      nodes.insert(it->first);
    }
    for (NodeId node : nodes) flush(node);
  }

  void flush(NodeId node) {
    auto it = links_.find(node);
    if (it == links_.end()) return;
    Link& link = it->second;
    size_t sent = 0;
    while (sent < link.orders.size() && link.in_flight < kListsInFlight) {
      bool kill = link.orders[sent].kill;  // keeps the order: runs of launches, runs of kills
      size_t end = sent;
      while (end < link.orders.size() && end - sent < core::node::kListMax &&
             link.orders[end].kill == kill)
        ++end;
      kj::ArrayPtr<const Order> run(link.orders.data() + sent, link.orders.data() + end);
      auto done = kill ? send_kills(link, run) : send_launches(link, run);
      ++link.in_flight;
      tasks_->add(done.then([this, node, number = link.number] { accepted(node, number); },
                            [this, node, number = link.number](kj::Exception&& e) {
                              if (e.getType() != kj::Exception::Type::DISCONNECTED)
                                if (auto more = refused_orders_.due(boot_now()))
                                  log::warn("n{} rejected a request: {}{}", node, short_text(e),
                                            *more);
                              accepted(node, number);
                            }));
      sent = end;
    }
    link.orders.erase(link.orders.begin(), link.orders.begin() + static_cast<ptrdiff_t>(sent));
  }

  void accepted(NodeId node, uint64_t number) {
    if (!current(node, number)) return;
    Link& link = links_.at(node);
    --link.in_flight;
    if (!link.orders.empty()) flush(node);
  }

  kj::Promise<void> send_launches(Link& link, kj::ArrayPtr<const Order> run) {
    std::vector<const Order*> fresh;
    for (const Order& o : run)
      if (link.templates.emplace(o.pod.job, o.object->meta.generation).second) fresh.push_back(&o);
    auto request = link.agent.launchRequest(
        capnp::MessageSize{64 + kSealWords + 6 * run.size() + 256 * fresh.size(), 1});
    request.setEpoch(options_.epoch);
    request.setNonce(options_.nonce);
    tell(request);
    auto templates = request.initTemplates(static_cast<unsigned>(fresh.size()));
    for (unsigned i = 0; i < fresh.size(); ++i) {
      write_template(templates[i], fresh[i]->pod.job, *fresh[i]->object);
      if (options_.permit_key)
        write_permit(templates[i], link.node, fresh[i]->pod.job, *fresh[i]->object);
    }
    auto pods = request.initPods(static_cast<unsigned>(run.size()));
    for (unsigned i = 0; i < run.size(); ++i) {
      write_pod(pods[i].initPod(), run[i].pod);
      pods[i].setGeneration(run[i].object->meta.generation);
    }
    return request.send().ignoreResult();
  }

  void take_proof(wire::Hello::Reader from, bool remote, actors::AgentHello& hello) const {
    hello.must_prove = remote && options_.seals_prove;
    const auto sealed = from.getSealed();
    const core::ToldHistory told{sealed.getEpoch(), sealed.getNonce(), sealed.getCommit()};
    const auto seal = sealed.getSeal();
    if (options_.seal.is_of(told, {seal.begin(), seal.size()})) hello.sealed = told;
  }

  void write_permit(wire::PodTemplate::Builder out, const std::string& node, JobId job,
                    const core::JobObject& object) const {
    if (const auto permit = permit_for(options_.cluster_id, node, job, object, wall_now()))
      write_signed(out, *permit, *options_.permit_key);
  }

  kj::Promise<void> send_kills(Link& link, kj::ArrayPtr<const Order> run) {
    auto request = link.agent.killRequest(capnp::MessageSize{32 + 8 * run.size(), 1});
    request.setEpoch(options_.epoch);
    request.setNonce(options_.nonce);
    auto kills = request.initKills(static_cast<unsigned>(run.size()));
    for (unsigned i = 0; i < run.size(); ++i) {
      write_pod(kills[i].initPod(), run[i].pod);
      kills[i].setGraceMs(run[i].grace_ms);
    }
    return request.send().ignoreResult();
  }

  // A disconnected agent is asked again once it is connected.
  void ask_ended(NodeId node, JobId job, uint64_t question) {
    auto it = links_.find(node);
    if (it == links_.end()) return;
    auto request = it->second.agent.unackedRequest();
    request.setJob(job);
    auto answered = [this, node, job, question, number = it->second.number](auto&& answer) {
      if (!current(node, number)) return;
      actors::JobHears hears{job, {node, question, {}}};
      for (auto pod : answer.getEnded()) hears.heard.ended.insert(read_pod(pod).key());
      caf::anon_send(registry_, std::move(hears));
    };
    tasks_->add(request.send().then(std::move(answered), [this, node](kj::Exception&& e) {
      if (e.getType() != kj::Exception::Type::DISCONNECTED)
        if (auto more = refused_orders_.due(boot_now()))
          log::warn("n{} did not report which pods have ended: {}{}", node, short_text(e), *more);
    }));
  }

  void ask_log(const api::LogRequest& ask, const std::function<void(Result<api::LogChunk>)>& done) {
    auto it = links_.find(ask.node);
    if (it == links_.end())
      return done(Error{Errc::unavailable, "the node of this pod is not connected", {}});
    auto request = it->second.agent.readLogRequest();
    write_pod(request.initPod(), ask.pod);
    request.setContainer(ask.container);
    request.setStream(ask.stderr_stream ? wire::LogStream::STDERR : wire::LogStream::STDOUT);
    request.setOffset(ask.offset);
    request.setLimit(ask.limit);
    auto name = request.initTemplate();
    name.setJobUid(ask.job_uid);
    name.setPodName(ask.pod_name);
    tasks_->add(request.send().then(
        [done](auto&& response) {
          api::LogChunk chunk;
          chunk.found = response.getFound();
          chunk.data.assign(reinterpret_cast<const char*>(response.getData().begin()),
                            response.getData().size());
          chunk.offset = response.getOffset();
          chunk.size = response.getSize();
          chunk.running = response.getRunning();
          done(std::move(chunk));
        },
        [done](kj::Exception&& e) {
          done(Error{Errc::unavailable,
                     std::string("the node did not answer: ") + e.getDescription().cStr(),
                     {}});
        }));
  }

  void taskFailed(kj::Exception&& e) override {
    if (auto more = failures_.due(boot_now()))
      log::warn("agents' port: {}{}", short_text(e), *more);
  }

  RpcOptions options_;
  std::thread thread_;
  std::string address_, tls_address_;
  std::shared_ptr<Door> door_ = std::make_shared<Door>();
  std::mutex orders_mutex_;
  std::vector<Order> orders_;

  // Used by the RPC thread only:
  Replies replies_{door_};
  kj::TaskSet* tasks_ = nullptr;
  kj::Timer* timer_ = nullptr;
  kj::ConnectionReceiver* port_ = nullptr;
  api::Acceptor* acceptor_ = nullptr;
  kj::ConnectionReceiver* tls_port_ = nullptr;
  api::Acceptor* tls_acceptor_ = nullptr;
  kj::TlsContext* tls_ = nullptr;
  api::PeerLookup lookup_;
  api::Crowd crowd_{Descriptors::of_process().agents};
  std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>> stopped_;
  bool serving_ = false;
  actors::cluster_actor cluster_;
  actors::registry_actor registry_;
  uint64_t last_link_ = 0;
  std::set<uint64_t> peers_;
  struct Caller {  // the registration of a connection
    std::shared_ptr<Meter> meter;
    std::optional<Guest> guest;  // over TLS
    bool registers = false;      // registering, or registered
    unsigned refused = 0;
  };
  Unregistered unregistered_;
  Unregistered barred_{kBarredBytesMax,
                       64 * kBarredBytesMax};  // that can only ask for certificates
  std::map<uint64_t, Caller> callers_;
  Seldom strangers_, turned_away_, refusals_, refused_orders_, failures_;
  std::map<uint64_t, kj::Own<kj::PromiseFulfiller<void>>> closing_;
  std::map<uint64_t, NodeId> node_of_;
  std::map<NodeId, Link> links_;
  HostDesk desk_;
  FenceDesk fences_;
  std::unique_ptr<ExecRelay> relay_;
  std::set<JobId> hosts_due_;  // of which not all nodes have been told
};

void Session::check_current() {
  KJ_REQUIRE(server_.current(node_, link_), "this session is over: register again");
}

kj::Promise<void> Session::heartbeat(HeartbeatContext context) {
  check_current();
  auto trouble = context.getParams().getTrouble();
  caf::anon_send(server_.cluster(),
                 actors::Heartbeat{node_,
                                   link_,
                                   {text_of(trouble.getReason(), kReasonMax),
                                    text_of(trouble.getMessage(), kMessageMax)}});
  auto results = context.getResults(capnp::MessageSize{8 + kSealWords, 0});
  results.setEpoch(server_.options().epoch);
  results.setNonce(server_.options().nonce);
  server_.tell(results);
  return kj::READY_NOW;
}

kj::Promise<void> Session::report(ReportContext context) {
  check_current();
  auto params = context.getParams();
  KJ_REQUIRE(params.getStarts().size() <= core::node::kListMax &&
                 params.getEnds().size() <= core::node::kListMax,
             "a list can have at most 512 entries");
  actors::Report report{node_, read_report(node_, params.getStarts(), params.getEnds()), nullptr};
  context.releaseParams();
  using Pods = std::vector<PodId>;
  auto paf = kj::newPromiseAndFulfiller<Pods>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Pods>>>(kj::mv(paf.fulfiller));
  report.done = server_.replies().across<Pods>(
      [fulfiller](Pods kept) { (*fulfiller)->fulfill(kj::mv(kept)); });
  caf::anon_send(server_.registry(), std::move(report));
  return paf.promise.then([&server = server_, context](Pods kept) mutable {
    auto results = context.getResults(capnp::MessageSize{8 + kSealWords + 3 * kept.size(), 0});
    server.tell(results);
    if (kept.empty()) return;
    auto pods = results.initKept(static_cast<unsigned>(kept.size()));
    for (unsigned i = 0; i < kept.size(); ++i) write_pod(pods[i], kept[i]);
  });
}

kj::Promise<void> Session::exec(ExecContext context) {
  check_current();
  return server_.relay(context, node_);
}

kj::Promise<void> Session::fence(FenceContext context) {
  check_current();
  const auto params = context.getParams();
  const PodId pod = read_pod(params.getPod());
  const uint32_t number = params.getNumber();
  KJ_REQUIRE(server_.hosts_here(pod, node_), "the pod is not one of an MPI job on this node");
  KJ_REQUIRE(params.getPuts().size() <= kPutsMax, "a rank can put at most 256 keys");
  FenceDesk::KeyValues puts;
  size_t bytes = 0;
  for (auto put : params.getPuts()) {
    bytes += put.getKey().size() + put.getValue().size();
    KJ_REQUIRE(bytes <= kPutBytesMax, "a rank can put at most 16 KiB");
    puts.emplace(text_of(put.getKey(), kPutMax), text_of(put.getValue(), kPutMax));
  }
  context.releaseParams();
  context.allowCancellation();
  return server_.fences()
      .come(pod, number, std::move(puts))
      .then([context](uint64_t group) mutable { context.getResults().setGroup(group); });
}

kj::Promise<void> Session::gather(GatherContext context) {
  check_current();
  const auto params = context.getParams();
  const auto all = server_.fences().gather(params.getJob(), params.getGroup());
  KJ_REQUIRE(all != nullptr && server_.has_part(params.getJob(), node_),
             "the ranks of this job have changed");
  auto out = context.getResults().initAll(static_cast<unsigned>(all->size()));
  unsigned i = 0;
  for (const auto& [key, value] : *all) {
    out[i].setKey(key);
    out[i++].setValue(value);
  }
  return kj::READY_NOW;
}

kj::Promise<void> Session::leave(LeaveContext) {
  check_current();
  caf::anon_send(server_.cluster(), actors::AgentLeaves{node_, link_});
  return kj::READY_NOW;
}

kj::Promise<void> Bootstrap::register_(RegisterContext context) {
  return server_.enroll(context, link_);
}

kj::Promise<void> Bootstrap::certify(CertifyContext context) {
  return server_.certify(context, link_);
}

}  // namespace

Result<std::unique_ptr<RpcServer>> RpcServer::bind(RpcOptions options) {
  auto server = std::make_unique<Server>(std::move(options));
  if (Status status = server->start(); !status) return status.error();
  return std::unique_ptr<RpcServer>(std::move(server));
}

}  // namespace muster::coordinator
