#include "coordinator/rpc/rpc_server.hpp"

#include "api/http/ends.hpp"
#include "base/log.hpp"
#include "base/seldom.hpp"
#include "coordinator/desks/exec_relay.hpp"
#include "coordinator/desks/mpi_desk.hpp"
#include "coordinator/links/agent_links.hpp"
#include "coordinator/links/agent_ports.hpp"
#include "coordinator/links/rpc_context.hpp"
#include "coordinator/links/wire_text.hpp"
#include "coordinator/rpc/agent_session.hpp"
#include "coordinator/rpc/registration.hpp"
#include "coordinator/threads/inbox.hpp"
#include "coordinator/threads/listening.hpp"
#include "coordinator/threads/replies.hpp"
#include "core/spec/fields/mpi.hpp"
#include "trust/tls/link.hpp"

#include <kj/async-io.h>

#include <future>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace muster::coordinator {

namespace {

// Lives as long as the RPC thread's event loop; used by that thread only.
struct Parts {
  Parts(const RpcOptions& options, Replies& replies, kj::TaskSet& tasks, kj::Timer& timer)
      : context{options, replies, tasks, timer},
        relay(timer, mpi.hosts(),
              ExecRelay::Nodes{[this](NodeId node) {
                                 const AgentLinks::Link* link = links.find(node);
                                 return link == nullptr ? std::string() : link->node;
                               },
                               [this](NodeId node) -> kj::Maybe<wire::Agent::Client> {
                                 AgentLinks::Link* link = links.find(node);
                                 if (link == nullptr) return nullptr;
                                 return link->agent;
                               },
                               [this](NodeId node) {
                                 const AgentLinks::Link* link = links.find(node);
                                 return link == nullptr ? core::NodeFigures() : link->figures;
                               },
                               [this](NodeId node) {
                                 const AgentLinks::Link* link = links.find(node);
                                 return link == nullptr ? AgentLinks::Takes() : link->takes;
                               }},
              ExecRelay::Coordinator{options.cluster_id, options.epoch, options.nonce,
                                     &options.permit_key, &options.pod_configs, &replies}) {}

  RpcContext context;
  AgentLinks links{context};
  MpiDesk mpi{context, links};
  ExecRelay relay;
  SessionDesks desks{context, links, mpi, relay};
  AgentPorts ports{context, links, [this](uint64_t number) -> capnp::Capability::Client {
                     return registration.bootstrap(number);
                   }};
  Registration registration{desks, ports};
  kj::ConnectionReceiver* port = nullptr;
  kj::ConnectionReceiver* tls_port = nullptr;  // null: none
  kj::ConnectionReceiver* socket = nullptr;    // null: none
  api::Acceptor acceptor{context.timer, "the agents' port",
                         [this](kj::Own<kj::AsyncIoStream> s) { ports.admit(kj::mv(s)); }};
  api::Acceptor tls_acceptor{
      context.timer, "the agents' TLS port",
      [this](kj::Own<kj::AsyncIoStream> s) { context.tasks.add(ports.shake_hands(kj::mv(s))); }};
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
      RpcContext& context = parts_->context;
      context.cluster = cluster;
      context.registry = registry;
      context.serving = true;
      context.tasks.add(parts_->acceptor.run(*parts_->port));
      if (parts_->socket != nullptr) context.tasks.add(parts_->acceptor.run(*parts_->socket));
      if (parts_->tls_port != nullptr)
        context.tasks.add(parts_->tls_acceptor.run(*parts_->tls_port));
    });
  }

  std::string address() const override { return address_; }
  std::string tls_address() const override { return tls_address_; }
  std::string socket() const override { return socket_; }

  void launch(NodeId node, uint64_t link, std::vector<PodId> pods,
              core::JobObjectPtr object) override {
    const bool mpi = object->meta.annotations.contains(std::string(core::kMpiKey));  // needs hosts
    std::vector<Order> list;
    list.reserve(pods.size());
    for (PodId pod : pods) list.push_back({Order::What::launch, node, link, pod, object, mpi, 0});
    order(std::move(list));
  }
  void kill(NodeId node, PodId pod, Millis grace_ms) override {
    order({{Order::What::kill, node, 0, pod, nullptr, true, grace_ms}});
  }
  void limit(NodeId node, PodId pod, std::optional<Millis> limit_ms) override {
    order({{Order::What::limit, node, 0, pod, nullptr, true, limit_ms.value_or(0)}});
  }
  void ask(NodeId node, JobId job, uint64_t question) override {
    post([this, node, job, question] { parts_->links.ask_ended(node, job, question); });
  }
  void hosts(JobId job, core::HostListPtr hosts) override {
    post([this, job, hosts = std::move(hosts)] { parts_->mpi.set(job, hosts); });
  }
  void together(const std::function<void()>& orders) override { door_->together(orders); }
  void drop(NodeId node) override {
    post([this, node] { parts_->ports.disconnect(node); });
  }
  void expel_node(const std::string& node) override {
    post([this, node] { parts_->ports.expel(node); });
  }

  void read_log(api::LogRequest request, std::function<void(Result<api::LogChunk>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] {
      parts_->links.ask_log(request, done);
    });
  }
  void find_log(api::LogSearch search, std::function<void(Result<api::LogBegins>)> done) override {
    post([this, search = std::move(search), done = std::move(done)] {
      parts_->links.find_log(search, done);
    });
  }

  void exec(api::ExecRequest request, std::function<void(Result<api::ExecStarted>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] {
      parts_->context.tasks.add(parts_->relay.start(request).then(
          [done](Result<api::ExecStarted>&& started) { done(std::move(started)); }));
    });
  }
  void read_exec(api::ExecRead request,
                 std::function<void(Result<api::ExecOutput>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] {
      parts_->context.tasks.add(parts_->relay.read(request).then(
          [done](Result<api::ExecOutput>&& output) { done(std::move(output)); }));
    });
  }
  void write_exec(api::ExecWrite request,
                  std::function<void(Result<api::ExecTaken>)> done) override {
    post([this, request = std::move(request), done = std::move(done)] {
      parts_->context.tasks.add(parts_->relay.write(request).then(
          [done](Result<api::ExecTaken>&& taken) { done(std::move(taken)); }));
    });
  }
  void end_exec(api::ExecSession session, std::function<void(Status)> done) override {
    post([this, session = std::move(session), done = std::move(done)] {
      parts_->context.tasks.add(
          parts_->relay.end(session).then([done](Status&& ended) { done(std::move(ended)); }));
    });
  }

  void stop() override {
    if (!thread_.joinable()) return;
    post([this] { (*stopped_)->fulfill(); });
    thread_.join();
  }

 private:
  void post(std::function<void()> task) { door_->post(std::move(task)); }

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

  void deliver() {
    std::vector<Order> orders;
    {
      std::lock_guard lock(orders_mutex_);
      orders.swap(orders_);
    }
    parts_->links.deliver(std::move(orders));
  }

  void run(std::promise<Status>& bound) {
    auto io = kj::setupAsyncIo();
    Inbox inbox(io.unixEventPort, io.provider->getTimer());
    auto tasks = kj::heap<kj::TaskSet>(*this);
    Parts parts(options_, replies_, *tasks, io.provider->getTimer());
    parts_ = &parts;
    auto opened = listen_on(io, "--listen", options_.listen, 0600);
    if (!opened) return bound.set_value(opened.error());
    kj::Own<kj::ConnectionReceiver> port = kj::mv(*opened);
    parts.port = port.get();
    address_ = with_port(options_.listen, *port);
    // Each connection is judged by its user, so others may as well knock.
    const mode_t mode = options_.agent_users.empty() ? 0600 : 0666;
    auto opened_socket =
        listen_also(io, "--listen-socket", options_.socket, mode, options_.socket_required);
    if (!opened_socket) return bound.set_value(opened_socket.error());
    kj::Maybe<kj::Own<kj::ConnectionReceiver>> socket = kj::mv(*opened_socket);
    KJ_IF_MAYBE (also, socket) {
      parts.socket = also->get();
      socket_ = options_.socket;
    }
    kj::Own<kj::ConnectionReceiver> tls_port;
    kj::Own<kj::TlsContext> tls;
    if (!options_.listen_tls.empty()) {
      auto opened_tls = listen_on(io, "--listen-tls", options_.listen_tls, 0600);
      if (!opened_tls) return bound.set_value(opened_tls.error());
      tls_port = kj::mv(*opened_tls);
      parts.tls_port = tls_port.get();
      tls_address_ = with_port(options_.listen_tls, *tls_port);
      tls = tls::server_context(options_.trust->server_certificate({}), options_.trust->authority(),
                                true);
      parts.ports.use(*tls);
    }
    auto paf = kj::newPromiseAndFulfiller<void>();
    stopped_ = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
    door_->open(inbox);
    tasks->add(inbox.run());
    bound.set_value(Nothing{});
    paf.promise.wait(io.waitScope);
    door_->shut();
    parts.mpi.stop();
    parts.ports.clear();
    parts.links.clear();
    tasks = nullptr;                   // ends all connections
    io.waitScope.cancelAllDetached();  // and the calls that came over them
    replies_.clear();
  }

  void taskFailed(kj::Exception&& e) override {
    if (auto more = failures_.due(boot_now()))
      log::warn("agents' port: {}{}", short_text(e), *more);
  }

  RpcOptions options_;
  std::thread thread_;
  std::string address_, tls_address_, socket_;
  std::shared_ptr<Door> door_ = std::make_shared<Door>();
  std::mutex orders_mutex_;
  std::vector<Order> orders_;

  // Used by the RPC thread only:
  Replies replies_{door_};
  Parts* parts_ = nullptr;
  std::shared_ptr<kj::Own<kj::PromiseFulfiller<void>>> stopped_;
  Seldom failures_;
};

}  // namespace

Result<std::unique_ptr<RpcServer>> RpcServer::bind(RpcOptions options) {
  auto server = std::make_unique<Server>(std::move(options));
  if (Status status = server->start(); !status) return status.error();
  return std::unique_ptr<RpcServer>(std::move(server));
}

}  // namespace muster::coordinator
