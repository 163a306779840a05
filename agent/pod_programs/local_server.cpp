#include "agent/pod_programs/local_server.hpp"

#include "agent/link/wire.hpp"
#include "agent/pod_programs/bounded_stream.hpp"
#include "agent/pod_programs/pmi.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/peer/unix_address.hpp"
#include "base/printable.hpp"
#include "core/node/command.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/io.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace muster::agent {
namespace {

constexpr const char* kSocketName = "agent.sock";
constexpr int kBacklog = 256;
constexpr Millis kAcceptAgainMs = 1'000;
constexpr const char* kNoToken =
    "the token does not belong to a running pod of this user on this node";
constexpr Millis kAskAgainMs = 200;
constexpr size_t kUnreadMax = 1 << 20;                   // bytes of answers that nobody reads
constexpr uint32_t kWordsMax = 65'536;                   // per command
constexpr size_t kCommandMax = core::node::kStringsMax;  // bytes
constexpr size_t kWhyMax = 1'024;                        // bytes

// The user at the other end; nullopt if the kernel does not say.
std::optional<uint32_t> uid_of(kj::AsyncIoStream& stream) {
  ucred peer{};
  unsigned size = sizeof peer;
  stream.getsockopt(SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return size == sizeof peer ? std::optional<uint32_t>(peer.uid) : std::nullopt;
}

}  // namespace

// One connection. Members are destroyed in reverse order, the stream after its users.
struct LocalServer::Connection {
  Connection(Pool& open, const std::string& who) : place(open, who) {}
  // The end of a connection whose caller does not read the answers, which would queue up here.
  void require_reader() {
    if (network->getCurrentQueueSize() <= kUnreadMax) return;
    cut->fulfill();
    KJ_FAIL_REQUIRE("the caller does not read the answers");
  }
  Pool::Share place;
  kj::Own<kj::PromiseFulfiller<void>> cut;
  kj::Own<kj::AsyncIoStream> stream;
  std::map<std::string, wire::Process::Client> processes;  // by session
  std::shared_ptr<Fence> fence;                            // null: none reached yet
  kj::Own<capnp::TwoPartyVatNetwork> network;
  kj::Own<capnp::RpcSystem<capnp::rpc::twoparty::VatId>> rpc;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class LocalServer::Server final : public wire::Local::Server {
 public:
  Server(LocalServer& server, Connection& connection, uint32_t uid)
      : server_(server), connection_(connection), uid_(uid) {}

  kj::Promise<void> exec(ExecContext context) override {
    const auto params = context.getParams();
    const std::string session = to_string(params.getSession());
    const auto pod = caller(params.getToken());
    if (!pod) {
      auto refused = context.getResults().initResult().initRefused();
      refused.setMessage(kNoToken);
      return kj::READY_NOW;
    }
    size_t bytes = params.getHost().size();
    for (auto word : params.getCommand()) bytes += word.size();
    KJ_REQUIRE(params.getCommand().size() <= kWordsMax && bytes <= kCommandMax,
               "the command is too long");
    context.allowCancellation();  // we are destroyed with the connection
    return server_.ask(*pod, params).then([this, context, session](ExecResult&& answer) mutable {
      context.getResults().setResult(answer.getResult());
      if (answer.getResult().isRan()) {
        connection_.processes.erase(session);
        connection_.processes.emplace(session, answer.getResult().getRan().getProcess());
      }
    });
  }

  kj::Promise<void> world(WorldContext context) override {
    const auto pod = caller(context.getParams().getToken());
    KJ_REQUIRE(pod.has_value(), kNoToken);
    context.allowCancellation();
    const auto nodes = server_.run_dirs_.nodes_of(pod->job);
    if (!nodes) return server_.pause(kAskAgainMs).then([this, context] { return world(context); });
    context.getResults().setSize(static_cast<uint32_t>(nodes->size()));
    context.getResults().setMapping(process_mapping(*nodes));
    return kj::READY_NOW;
  }

  kj::Promise<void> fence(FenceContext context) override {
    const auto params = context.getParams();
    const auto pod = caller(params.getToken());
    KJ_REQUIRE(pod.has_value(), kNoToken);
    KJ_REQUIRE(params.getPuts().size() <= PmiRank::kKeysMax, "too many keys");
    auto fence = std::make_shared<Fence>(Fence{*pod, params.getNumber(), {}});
    size_t bytes = 0;
    for (auto put : params.getPuts()) {
      bytes += put.getKey().size() + put.getValue().size();
      KJ_REQUIRE(bytes <= PmiRank::kBytesMax, "too many bytes");
      fence->puts.emplace_back(to_string(put.getKey()), to_string(put.getValue()));
    }
    context.allowCancellation();
    context.releaseParams();
    connection_.fence = fence;
    return server_.tell(*fence)
        .then([this, fence](uint64_t group) {
          return server_.gather(fence->pod.job, group, fence->number);
        })
        .then([context](PairsPtr all) mutable {
          auto out = context.getResults().initAll(static_cast<unsigned>(all->size()));
          for (unsigned i = 0; i < all->size(); ++i) {
            out[i].setKey((*all)[i].first);
            out[i].setValue((*all)[i].second);
          }
        })
        .attach(std::shared_ptr<Fence>(fence));
  }

  kj::Promise<void> giveUp(GiveUpContext context) override {
    const auto params = context.getParams();
    if (const auto pod = caller(params.getToken()))
      server_.agent_.give_up(*pod, utf8_prefix(to_string(params.getMessage()), kWhyMax),
                             params.getLost());
    return kj::READY_NOW;
  }

 private:
  std::optional<PodId> caller(capnp::Text::Reader token) {
    connection_.require_reader();
    const auto found = server_.run_dirs_.owner_of(to_string(token));
    if (!found || (found->uid != uid_ && uid_ != 0) || !server_.agent_.runs(found->pod))
      return std::nullopt;
    return found->pod;
  }
  LocalServer& server_;
  Connection& connection_;
  const uint32_t uid_;
};
#pragma GCC diagnostic pop

LocalServer::LocalServer(kj::AsyncIoContext& io, const RunDirs& run_dirs, Agent& agent,
                         const Limits& limits)
    : io_(io),
      run_dirs_(run_dirs),
      agent_(agent),
      open_(limits.connections, limits.user_connections),
      bytes_(limits.bytes, limits.user_bytes),
      tasks_(*this) {}

Status LocalServer::listen(bool users) {
  const std::string dir = run_dirs_.socket_dir();
  auto failed = [&dir](const char* what) {
    return Error{
        Errc::unavailable,
        std::string("cannot ") + what + " " + dir + "/" + kSocketName + ": " + std::strerror(errno),
        {}};
  };
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return failed("make");
  const Fd folder(open(dir.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return failed("open");
  kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  auto address = unix_address(folder.get(), kSocketName);
  unlinkat(folder.get(), kSocketName, 0);  // of an earlier agent
  if (!address || bind(fd, reinterpret_cast<sockaddr*>(&*address), sizeof *address) != 0 ||
      fchmodat(folder.get(), kSocketName, users ? 0666 : 0600, 0) != 0 ||
      ::listen(fd, kBacklog) != 0)
    return failed("listen on");
  port_ = io_.lowLevelProvider->wrapListenSocketFd(
      kj::mv(fd),
      kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC | kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
  tasks_.add(accept());
  tasks_.add(tell_again());
  return Nothing{};
}

kj::Promise<void> LocalServer::accept() {
  return port_->accept()
      .then(
          [this](kj::Own<kj::AsyncIoStream> stream) -> kj::Promise<void> {
            if (const auto uid = uid_of(*stream)) serve(kj::mv(stream), *uid);
            return kj::READY_NOW;
          },
          [this](kj::Exception&& e) {  // out of descriptors, say
            log::warn("local socket: {}", e.getDescription().cStr());
            return pause(kAcceptAgainMs);
          })
      .then([this] { return accept(); });
}

void LocalServer::serve(kj::Own<kj::AsyncIoStream> stream, uint32_t uid) {
  const std::string who = "uid " + std::to_string(uid);
  auto connection = kj::heap<Connection>(open_, who);
  Connection& one = *connection;
  const bool known = serves(uid);
  if (!known || !one.place.take(1)) {
    if (const auto more = turned_away_.due(boot_now()))
      log::warn("local socket: closed a connection of {}, {}{}", who,
                known ? "who has too many of them" : "who has no MPI pod on this node", *more);
    return;
  }
  one.stream = bounded(kj::mv(stream), bytes_, who);
  one.network =
      kj::heap<capnp::TwoPartyVatNetwork>(*one.stream, capnp::rpc::twoparty::Side::SERVER);
  auto cut = kj::newPromiseAndFulfiller<void>();
  one.cut = kj::mv(cut.fulfiller);
  auto gone = one.network->onDisconnect().exclusiveJoin(kj::mv(cut.promise));
  one.rpc = kj::heap(
      capnp::makeRpcServer(*one.network, wire::Local::Client(kj::heap<Server>(*this, one, uid))));
  one.rpc->setFlowLimit(kLocalFlowMax / sizeof(capnp::word));
  connections_.insert(&one);
  tasks_.add(
      gone.then([this, &one] {
            connections_.erase(&one);
            for (auto& [session, process] : one.processes)
              tasks_.add(process.endRequest().send().ignoreResult().catch_([](kj::Exception&&) {
              }));  // if this fails, the pod's node ends it after a minute without a reader
          })
          .attach(kj::mv(connection)));
}

bool LocalServer::serves(uint32_t uid) const {
  return uid == 0 || uid == geteuid() || run_dirs_.has_pod_of(uid);
}

// Sends a request until the coordinator answers, each time over the current connection.
template <class T, class Send>
kj::Promise<T> LocalServer::until_answered(Send send) {
  // Copied for each use: then() keeps only a reference to an lvalue.
  auto again = [this, send] { return until_answered<T>(send); };
  KJ_IF_MAYBE (session, agent_.session()) {
    return send(*session).catch_([this, again](kj::Exception&& e) -> kj::Promise<T> {
      if (e.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(e);
      return pause(kAskAgainMs).then(kj::cp(again));
    });
  }
  return agent_.session_changes().then(kj::cp(again));
}

kj::Promise<LocalServer::ExecResult> LocalServer::ask(PodId pod,
                                                      wire::Local::ExecParams::Reader params) {
  return until_answered<ExecResult>([pod, params](wire::Session::Client& session) {
    auto request = session.execRequest();
    write_pod(pod, request.initFrom());
    request.setHost(params.getHost());
    request.setSession(params.getSession());
    request.setAttempt(params.getAttempt());
    request.setCommand(params.getCommand());
    request.setInput(params.getInput());
    return request.send().dropPipeline();
  });
}

kj::Promise<void> LocalServer::pause(Millis span) {
  return io_.provider->getTimer().afterDelay(span * kj::MILLISECONDS);
}

// `fence` must outlive the promise.
kj::Promise<uint64_t> LocalServer::tell(const Fence& fence) {
  return until_answered<uint64_t>([&fence](wire::Session::Client& session) {
    auto request = session.fenceRequest();
    write_pod(fence.pod, request.initPod());
    request.setNumber(fence.number);
    auto puts = request.initPuts(static_cast<unsigned>(fence.puts.size()));
    for (unsigned i = 0; i < fence.puts.size(); ++i) {
      puts[i].setKey(fence.puts[i].first);
      puts[i].setValue(fence.puts[i].second);
    }
    return request.send().then([](auto&& answer) { return answer.getGroup(); });
  });
}

// Asks once for all ranks on this node.
kj::Promise<LocalServer::PairsPtr> LocalServer::gather(JobId job, uint64_t group, uint32_t number) {
  if (auto known = gathered_.find(job);
      known != gathered_.end() && known->second.group == group && known->second.number == number)
    return known->second.all.addBranch();
  KJ_IF_MAYBE (session, agent_.session()) {
    auto request = session->gatherRequest();
    request.setJob(job);
    request.setGroup(group);
    auto all = request.send()
                   .then([](auto&& answer) {
                     auto pairs = std::make_shared<Pairs>();
                     for (auto pair : answer.getAll())
                       pairs->emplace_back(to_string(pair.getKey()), to_string(pair.getValue()));
                     return PairsPtr(std::move(pairs));
                   })
                   .fork();
    auto branch = all.addBranch();
    std::erase_if(gathered_, [&](const auto& one) {
      return one.first == job || !run_dirs_.nodes_of(one.first);
    });
    gathered_.emplace(job, Gathered{group, number, kj::mv(all)});
    return branch;
  }
  return KJ_EXCEPTION(DISCONNECTED, "the coordinator is not connected");
}

// A coordinator that has just started knows no fences, and some ranks may wait for others that
// moved on.
kj::Promise<void> LocalServer::tell_again() {
  return agent_.session_changes().then([this] {
    gathered_.clear();
    for (const Connection* connection : connections_)
      if (const auto fence = connection->fence)
        tasks_.add(tell(*fence).ignoreResult().attach(std::shared_ptr<Fence>(fence)));
    return tell_again();
  });
}

void LocalServer::taskFailed(kj::Exception&& exception) {
  log::debug("local socket: {}", exception.getDescription().cStr());
}

}  // namespace muster::agent
