// The agent's connection to the coordinator: connects, gets a certificate, registers, sends
// heartbeats and reports, and reconnects when the connection breaks.
//
// Invariants: there is one link at a time, and what was in flight on an earlier one is sent again;
// a heartbeat's answer renews the lease only in a term that is obeyed.
#include "agent/agent_loop.hpp"
#include "agent/link/wire.hpp"
#include "base/hex.hpp"
#include "base/log.hpp"
#include "base/peer/local_sockets.hpp"
#include "base/secret.hpp"
#include "base/version.hpp"
#include "trust/tls/checked.hpp"
#include "trust/tls/limited.hpp"
#include "trust/tls/link.hpp"
#include "trust/tls/proof.hpp"

#include <kj/debug.h>
#include <kj/io.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <netdb.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::agent {

namespace {

constexpr Millis kPauseMinMs = 100, kPauseMaxMs = 5'000;
constexpr Millis kRefusedPauseMs = 3'000, kNotServingPauseMs = 500;
constexpr Millis kConnectMaxMs = 5'000;
constexpr Millis kRegisterMaxMs = 60'000;  // register() returns once every job is folded
constexpr Millis kSilenceMinMs = 5'000;
constexpr Millis kCertificateMinMs = 100, kCertificateMaxMs = 60'000;  // between two checks
constexpr size_t kSocketPathMax = 107;

// The cluster key becomes a line of a file, so any text but hex digits is replaced by an empty one.
std::string key_of(capnp::Text::Reader text) {
  std::string key = to_string(text);
  bool hex = key.size() <= 2 * kSecretBytes &&
             key.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex ? key : "";
}

// The address from which we reach the coordinator; over a Unix socket, the loopback address.
std::string own_address(kj::AsyncIoStream& stream) {
  sockaddr_storage address{};
  unsigned size = sizeof address;
  std::array<char, NI_MAXHOST> text{};
  auto failed = kj::runCatchingExceptions(
      [&] { stream.getsockname(reinterpret_cast<sockaddr*>(&address), &size); });
  if (failed != nullptr || (address.ss_family != AF_INET && address.ss_family != AF_INET6) ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "127.0.0.1";
  return text.data();
}

}  // namespace

void Agent::LinkLoss::taskFailed(kj::Exception&& exception) {
  if (agent.link_.get() != nullptr) agent.link_->give_up(text_of(exception));
}

kj::Promise<void> Agent::stay_connected() {
  return one_connection()
      .catch_([this](kj::Exception&& exception) { close_link(text_of(exception)); })
      .then([this]() -> kj::Promise<void> {
        if (std::exchange(turned_, false)) return kj::READY_NOW;
        if (pause_ms_ == 0) pause_ms_ = kPauseMinMs;
        Millis pause = std::uniform_int_distribution<Millis>(pause_ms_ / 2, pause_ms_)(chance_);
        pause_ms_ = std::min(pause_max_ms_, pause_ms_ * 2);
        return timer_.afterDelay(pause * kj::MILLISECONDS);
      })
      .then([this] { return stay_connected(); });
}

kj::Promise<void> Agent::one_connection() {
  const auto socket = credentials_.encrypted() ? std::nullopt : find_socket(options_.sockets);
  address_ = socket ? "unix:" + *socket : coordinators_.now();
  std::string address = address_;
  kj::AutoCloseFd folder;
  constexpr std::string_view kUnix = "unix:";
  if (address.starts_with(kUnix) && address.size() - kUnix.size() > kSocketPathMax) {
    size_t slash = address.rfind('/');
    std::string path = address.substr(kUnix.size(), slash - kUnix.size());
    folder = kj::AutoCloseFd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    address = "unix:/proc/self/fd/" + std::to_string(folder.get()) + address.substr(slash);
  }
  auto connecting = io_.provider->getNetwork()
                        .parseAddress(address.c_str())
                        .then([this](kj::Own<kj::NetworkAddress> at) {
                          at = credentials_.encrypted()
                                   ? tls::encrypted(kj::mv(at), credentials_.context())
                                   : tls::checked(kj::mv(at), servers_, address_);
                          if (coordinators_.several()) at = tls::limited(kj::mv(at), timer_);
                          auto promise = at->connect();
                          return promise.attach(kj::mv(at));
                        })
                        .attach(kj::mv(folder));
  return timer_.timeoutAfter(kConnectMaxMs * kj::MILLISECONDS, kj::mv(connecting))
      .then([this](kj::Own<kj::AsyncIoStream> stream) { return connected(kj::mv(stream)); });
}

kj::Promise<void> Agent::connected(kj::Own<kj::AsyncIoStream> stream) {
  link_ = kj::heap<Link>(++links_, kj::mv(stream), link_loss_.handler());
  Link& link = *link_;
  if (credentials_.must_join())
    return join(link).exclusiveJoin(link.net.onDisconnect()).then([this] {
      if (credentials_.must_join()) return close_link("it closed the connection");
      link_ = nullptr;  // the next connection registers the node
    });
  auto registering = prove(link).then([this, &link] { return enroll(link); });
  return registering.exclusiveJoin(link.net.onDisconnect()).then([this] {
    close_link(link_->why.empty() ? "it closed the connection" : link_->why);
  });
}

// A coordinator of another cluster gets a hello without this cluster's key, and decides. One of an
// earlier version cannot prove anything: on this machine, its user is trusted already.
kj::Promise<void> Agent::prove(Link& link) {
  if (credentials_.encrypted() || work_dir_.cluster_key().empty()) return kj::READY_NOW;
  const std::string challenge = random_hex(kSecretBytes);
  auto request = link.coordinator().proveRequest();
  request.setChallenge(kj::StringPtr(challenge.c_str()).asBytes());
  return timer_.timeoutAfter(kConnectMaxMs * kj::MILLISECONDS, request.send().dropPipeline())
      .then(
          [this, &link, challenge](capnp::Response<wire::Coordinator::ProveResults>&& answer) {
            link.other_cluster = to_string(answer.getClusterId()) != work_dir_.cluster_id();
            if (link.other_cluster ||
                same_secret(
                    to_string(answer.getProof()),
                    tls::proof_of_key(work_dir_.cluster_key(), work_dir_.cluster_id(), challenge)))
              return;
            kj::throwFatalException(
                {kj::Exception::Type::FAILED, __FILE__, __LINE__,
                 kj::str("it does not have the key of cluster ", work_dir_.cluster_id(),
                         ", to which this node belongs; nothing was sent")});
          },
          [](kj::Exception&& e) {
            if (e.getType() != kj::Exception::Type::UNIMPLEMENTED)
              kj::throwFatalException(kj::mv(e));
          });
}

kj::Promise<void> Agent::enroll(Link& link) {
  auto request = link.coordinator().registerRequest();
  write_hello(request.initHello());
  request.setAgent(calls(link.number));
  Millis sent_at = boot_now();
  return timer_.timeoutAfter(kRegisterMaxMs * kj::MILLISECONDS, request.send().dropPipeline())
      .then([this, sent_at](capnp::Response<wire::Coordinator::RegisterResults>&& answer) {
        return greeted(answer.getResult(), sent_at);
      });
}

kj::Promise<void> Agent::join(Link& link) {
  return timer_.timeoutAfter(kRegisterMaxMs * kj::MILLISECONDS, get_certificate(link)).then([this] {
    pause_ms_ = 0;
    coordinators_.begin_round();
  });
}

// An error ends the agent only if it has no certificate.
kj::Promise<void> Agent::get_certificate(Link& link) {
  auto request = link.coordinator().certifyRequest();
  const auto der = credentials_.request();
  if (!der.ok()) {
    finish(der.error());
    return kj::READY_NOW;
  }
  request.setRequest(kj::arrayPtr(reinterpret_cast<const kj::byte*>(der->data()), der->size()));
  request.setNode(work_dir_.node_name());
  return request.send().then([this](capnp::Response<wire::Coordinator::CertifyResults>&& answer) {
    auto result = answer.getResult();
    Status status = result.isCertificate()
                        ? credentials_.accept(to_string(result.getCertificate()))
                        : invalid(address_ + " rejects node " + work_dir_.node_name() +
                                  " a certificate: " + to_string(result.getRefused()));
    if (status.ok()) return log::info("got a certificate for node {}", work_dir_.node_name());
    if (credentials_.must_join()) return finish(status.error());
    say(status.error().message);
  });
}

kj::Promise<void> Agent::keep_certificate(Link& link) {
  const Millis pause = credentials_.renew_ms() - wall_now();
  if (pause <= 0)
    return get_certificate(link)
        .then([this] {
          return timer_.afterDelay(std::max(kCertificateMinMs, credentials_.renew_again_ms()) *
                                   kj::MILLISECONDS);
        })
        .then([this, &link] { return keep_certificate(link); });
  // In steps, because the wall clock may jump.
  return timer_
      .afterDelay(std::clamp(pause, kCertificateMinMs, kCertificateMaxMs) * kj::MILLISECONDS)
      .then([this, &link] { return keep_certificate(link); });
}

// The promise lasts as long as the connection.
kj::Promise<void> Agent::greeted(wire::Registered::Reader answer, Millis sent_at) {
  if (answer.isWelcome()) {
    welcome(answer.getWelcome().getWelcome(), answer.getWelcome().getSession(), sent_at);
  } else {
    refused(answer.getRefused());
  }
  return kj::mv(link_->loss);
}

void Agent::write_hello(wire::Hello::Builder hello) {
  hello.setProtocol(wire::PROTOCOL_VERSION);
  hello.setNode(work_dir_.node_name());
  hello.setWorkDirId(work_dir_.id());
  hello.setBootId(boot_id());
  hello.setSecret(work_dir_.secret());
  hello.setClusterId(work_dir_.cluster_id());
  if (!link_->other_cluster) hello.setClusterKey(work_dir_.cluster_key());
  hello.setHighestEpoch(node_.term().epoch);
  hello.setEpochNonce(node_.term().nonce);
  hello.setHighestCommit(work_dir_.commit());
  const SealedHistory& proof = work_dir_.sealed();
  auto sealed = hello.initSealed();
  sealed.setEpoch(proof.term.epoch);
  sealed.setNonce(proof.term.nonce);
  sealed.setCommit(proof.commit);
  sealed.setSeal(proof.seal);
  hello.setSlots(options_.slots);
  hello.setCpuMillis(options_.cpu_millis);
  hello.setMemoryBytes(options_.memory_bytes);
  std::map<std::string, std::string> all = options_.labels;
  if (executor_.mounts()) all.emplace(core::kVolumesLabel, "true");
  auto labels = hello.initLabels(static_cast<unsigned>(all.size()));
  unsigned i = 0;
  for (const auto& [key, value] : all) {
    labels[i].setKey(key);
    labels[i++].setValue(value);
  }
  auto resources = hello.initResources(static_cast<unsigned>(options_.resources.size()));
  i = 0;
  for (const auto& [name, count] : options_.resources) {
    resources[i].setName(name);
    resources[i++].setCount(count);
  }
  auto running = node_.running(), waiting = node_.waiting(), ended = node_.ended();
  write_pods(running, hello.initRunning(static_cast<unsigned>(running.size())));
  write_pods(waiting, hello.initWaiting(static_cast<unsigned>(waiting.size())));
  write_pods(ended, hello.initEnded(static_cast<unsigned>(ended.size())));
  if (!registered_) {
    const auto left = node_.ends(core::node::kHelloEndsMax);
    write_ends(left, boot_now(), hello.initEnds(static_cast<unsigned>(left.size())));
  }
  hello.setPid(static_cast<uint32_t>(getpid()));
  hello.setHeedsOwners(true);
  hello.setTakesLaunches(true);
  hello.setTakesTemplates(executor_.takes_templates());
  hello.setJoinsContainers(true);
  hello.setVersion(kVersion);
  hello.setKeeperVersion(executor_.keeper_version());
  hello.setAddress(host_name());
  ip_ = options_.node_ip.empty() ? own_address(*link_->stream) : options_.node_ip;
  run_dirs_.set_ip(ip_);
  hello.setIp(ip_);
  Executor::Limits limits = executor_.limits();
  hello.setEnforcesMemory(limits.memory);
  hello.setEnforcesCpu(limits.cpu);
  if (!limits.memory || !limits.cpu) hello.setNoLimits(limits.why);
  if (options_.until_ms)
    hello.setLivesMs(1 +
                     static_cast<uint64_t>(std::max<Millis>(0, *options_.until_ms - wall_now())));
}

// Makes the term durable before it is obeyed. False: it must not be obeyed.
bool Agent::learn(const std::string& cluster_id, core::node::Term term,
                  const std::string& cluster_key, uint64_t commit, const std::string& seal) {
  if (cluster_id != work_dir_.cluster_id()) {
    if (!node_.empty() && !work_dir_.cluster_id().empty()) return false;
    if (!work_dir_.cluster_id().empty()) node_.new_cluster();
  }
  if (!node_.term().yields_to(term)) return false;
  if (Status kept = work_dir_.learn(cluster_id, term, cluster_key, commit, seal); !kept) {
    finish(kept.error());
    return false;
  }
  return true;
}

void Agent::welcome(wire::Welcome::Reader from, wire::Session::Client session, Millis sent_at) {
  core::node::Term term = term_of(from.getEpoch(), from.getNonce());
  const std::string seal = seal_of(from.getSeal());
  if (!learn(to_string(from.getClusterId()), term, key_of(from.getClusterKey()), from.getCommit(),
             seal) ||
      !node_.registered({term, read_pods(from.getEnd()), static_cast<Millis>(from.getLeaseMs())},
                        sent_at)) {
    pause_ms_ = kRefusedPauseMs;
    link_->give_up("its epoch " + std::to_string(term.epoch) +
                   " is not valid here: this node has served epoch " +
                   std::to_string(node_.term().epoch) + " of cluster " + work_dir_.cluster_id() +
                   "; its data is outdated or a copy, or it belongs to another cluster");
    return;
  }
  registered_ = true;
  work_dir_.learn_commit(from.getCommit(), seal);
  Link& link = *link_;
  link.session = session;
  link.heartbeat_ms = std::max<Millis>(1, static_cast<Millis>(from.getHeartbeatMs()));
  // Where another coordinator may have taken over, a silent one is left at the second heartbeat
  // after its last answer. One heartbeat must fit in, however late its timer fires.
  const Millis silence_ms =
      coordinators_.several() ? link.heartbeat_ms * 3 / 2 : static_cast<Millis>(from.getLeaseMs());
  link.silence_max_ms = std::max(kSilenceMinMs, silence_ms);
  link.answered_at = boot_now();
  pause_ms_ = 0;
  // A restarted coordinator waits for its nodes for a limited time (core::back_within_ms), so we
  // must reconnect within it.
  pause_max_ms_ = std::clamp(static_cast<Millis>(from.getLeaseMs()) / 2, kPauseMinMs, kPauseMaxMs);
  said_.clear();
  coordinators_.begin_round();
  log::info("registered with {} as node {} ({}), epoch {}", address_, work_dir_.node_name(),
            from.getNodeId(), term.epoch);
  link.let_in->fulfill();
  for (auto& waiting : std::exchange(want_session_, {})) waiting->fulfill();
  configs_.connected();
  if (draining_ || closing_) say_leave(link, session);
  link.tasks.add(heartbeats(link));
  if (credentials_.encrypted()) link.tasks.add(keep_certificate(link));
  schedule();
}

void Agent::refused(wire::Refusal::Reader from) {
  std::string message = to_string(from.getMessage());
  node_.fence(read_pods(from.getEnd()), boot_now());
  pump();  // kill these first, even if the refusal ends the agent
  switch (from.getWhy()) {
    case wire::Refusal::Why::NAME_TAKEN:
      pause_ms_ = kRefusedPauseMs;
      break;
    case wire::Refusal::Why::NOT_SERVING:
      pause_ms_ = kNotServingPauseMs;
      break;
    case wire::Refusal::Why::OTHER_CLUSTER:
    case wire::Refusal::Why::PROTOCOL:
    case wire::Refusal::Why::INVALID:
      finish(Error{Errc::invalid,
                   address_ + " rejects node " + work_dir_.node_name() + ": " + message});
      break;
  }
  link_->give_up("it rejects node " + work_dir_.node_name() + ": " + message);
}

void Agent::say_lost(const std::string& why) {
  const bool expired = credentials_.expired(wall_now());
  say("no connection to " + why +
      (expired ? "; this node's certificate has expired: join again with a token from `muster "
                 "token create --node " +
                     work_dir_.node_name() + "`"
               : "") +
      "; retrying");
}

// Of several coordinators, one that did not register the node is not worth a line, unless all have
// been tried.
void Agent::close_link(const std::string& why) {
  const bool served = link_.get() != nullptr && link_->session != nullptr;
  turned_ = !served && coordinators_.several() && coordinators_.next(why);
  if (!result_ && !turned_)
    say_lost(served || !coordinators_.several() ? address_ + ": " + why : coordinators_.failures());
  link_ = nullptr;
  saying_leave_ = false;
  templates_.clear();  // sent again over the next connection
  node_.disconnected();
}

kj::Promise<void> Agent::heartbeats(Link& link) {
  Millis sent_at = boot_now();
  if (sent_at - link.answered_at > link.silence_max_ms) {
    link.give_up("no answer for " + std::to_string((sent_at - link.answered_at) / 1000) + " s");
    return kj::READY_NOW;
  }
  send_heartbeat(link);
  return timer_.afterDelay(link.heartbeat_ms * kj::MILLISECONDS).then([this, &link] {
    return heartbeats(link);
  });
}

void Agent::send_heartbeat(Link& link) {
  Millis sent_at = boot_now();
  const std::string failure = health_failure();
  const size_t text = trouble_.reason.size() + trouble_.message.size() + failure.size();
  size_t words = 24 + text / 8 + 3;
  auto request = KJ_ASSERT_NONNULL(link.session).heartbeatRequest(capnp::MessageSize{words, 0});
  if (trouble_) {
    auto trouble = request.initTrouble();
    trouble.setReason(trouble_.reason);
    trouble.setMessage(trouble_.message);
  }
  request.setStarted(node_.started() + 1);
  if (check_ || !failure.empty()) {
    auto check = request.initCheck();
    check.setRuns(true);
    if (!failure.empty()) check.setFailure(failure);
  }
  link.tasks.add(request.send().then(
      [this, &link, sent_at](capnp::Response<wire::Session::HeartbeatResults>&& a) {
        core::node::Term term = term_of(a.getEpoch(), a.getNonce());
        if (!learn(work_dir_.cluster_id(), term) || !node_.heartbeat_answered(term, sent_at)) {
          link.give_up("its epoch is outdated");
          return;
        }
        link.answered_at = boot_now();
        work_dir_.learn_commit(a.getCommit(), seal_of(a.getSeal()));
        schedule();  // the renewed lease may allow a start
      }));
}

void Agent::send(Link& link, wire::Session::Client session, const core::node::Report& report) {
  auto request = session.reportRequest(size_of(report));
  write_report(report, boot_now(), request);
  link.tasks.add(request.send().then(
      [this, id = report.id](capnp::Response<wire::Session::ReportResults>&& answer) {
        node_.report_returned(id, read_pods(answer.getKept()));
        work_dir_.learn_commit(answer.getCommit(), seal_of(answer.getSeal()));
        if (answer.getLaunches().size() > 0) accept(node_.term(), answer.getLaunches());
        schedule();
      }));
}

}  // namespace muster::agent
