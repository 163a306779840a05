#include "agent/agent_loop.hpp"

#include "agent/memory.hpp"
#include "agent/wire.hpp"
#include "base/check.hpp"
#include "base/hex.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "tls/link.hpp"

#include <kj/io.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster::agent {

namespace {

constexpr Millis kPauseMinMs = 100, kPauseMaxMs = 5'000;
constexpr Millis kRefusedPauseMs = 3'000, kNotServingPauseMs = 500;
constexpr Millis kConnectMaxMs = 5'000;
constexpr Millis kRegisterMaxMs = 60'000;  // register() returns once every job is folded
constexpr Millis kSilenceMinMs = 5'000;
constexpr Millis kExecutorPauseMs = 1'000, kExecutorPollMs = 1'000;
constexpr Millis kGatherMs = 2;  // between two reports, unless full, at high rates
constexpr Millis kDrainLookMs = 50;
constexpr Millis kDrainAloneMs =
    5'000;  // ends are safe in the spool: don't wait longer for the coordinator
constexpr Millis kKillMaxMs = 2'000;
constexpr Millis kGiveUpMs = 3'000;  // mpirun needs a tenth of a second to notice
constexpr Millis kSweepEachMs = 60'000, kSweepStepMs = 20;
constexpr Millis kCertificateMinMs = 100, kCertificateMaxMs = 60'000;  // between two looks
constexpr Millis kMemoryEachMs = 1'000, kMemoryAfterMs = 3'000;  // lets an eviction free memory
constexpr size_t kSweepEntries = 200;                            // about a millisecond
constexpr size_t kSocketPathMax = 107;
constexpr uint32_t kLogChunkMax = 1 << 20;

kj::Duration ms(Millis span) {
  return span * kj::MILLISECONDS;
}

std::string text(const kj::Exception& exception) {
  if (auto meant = tls::explained(exception)) return std::move(*meant);
  return {exception.getDescription().cStr(), exception.getDescription().size()};
}

core::node::Term term_of(uint64_t epoch, uint64_t nonce) {
  return {epoch, nonce};
}

// The cluster key becomes a line of a file, so only hex digits are accepted; else empty.
std::string key_of(capnp::Text::Reader text) {
  std::string key = to_string(text);
  bool hex = key.size() <= 2 * kSecretBytes &&
             key.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex ? key : "";
}

// Likewise of a seal.
std::string seal_of(capnp::Text::Reader text) {
  std::string seal = to_string(text);
  return is_hex(seal, kSealDigits) ? seal : "";
}

// The address from which we reach the coordinator; of a Unix socket, that of this machine to
// itself.
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

constexpr const char* kPastTerm =
    "this agent serves a later epoch, or another coordinator with the same epoch";

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // of generated servers: never deleted through a base
// What the coordinator may call. Each registration passes a new one; its launch, kill and unacked
// fail once its link is not the current one.
class Agent::Server final : public wire::Agent::Server {
 public:
  Server(Agent& agent, uint64_t link) : agent_(agent), link_(link) {}

  kj::Promise<void> launch(LaunchContext context) override {
    return when_welcome().then([this, context]() mutable {
      agent_.launch(context.getParams());
      context.releaseParams();
    });
  }
  kj::Promise<void> kill(KillContext context) override {
    return when_welcome().then([this, context]() mutable { agent_.kill(context.getParams()); });
  }
  kj::Promise<void> readLog(ReadLogContext context) override {
    return agent_.read_log(context.getParams(), context.getResults());
  }
  kj::Promise<void> unacked(UnackedContext context) override {
    return when_welcome().then([this, context]() mutable {
      std::vector<PodId> ended;
      for (PodId pod : agent_.node_.ended())
        if (pod.job == context.getParams().getJob()) ended.push_back(pod);
      write_pods(ended, context.getResults().initEnded(static_cast<unsigned>(ended.size())));
    });
  }
  kj::Promise<void> hosts(HostsContext context) override {
    agent_.take_hosts(context.getParams());
    return kj::READY_NOW;
  }
  kj::Promise<void> exec(ExecContext context) override {
    return when_welcome().then([this, context]() mutable {
      agent_.exec(context.getParams(), context.getResults().initResult());
    });
  }

 private:
  // A call that overtakes the answer to the registration waits for it.
  kj::Promise<void> when_welcome() {
    if (agent_.link_.get() == nullptr || agent_.link_->number != link_) {
      return KJ_EXCEPTION(DISCONNECTED, "the agent has registered again");
    }
    return agent_.link_->welcomed.addBranch();
  }
  Agent& agent_;
  const uint64_t link_;
};
#pragma GCC diagnostic pop

void Agent::Bug::taskFailed(kj::Exception&& exception) {
  MUSTER_CHECK(false, text(exception));
}

void Agent::LinkLoss::taskFailed(kj::Exception&& exception) {
  if (agent.link_.get() != nullptr) agent.link_->give_up(text(exception));
}

Agent::Agent(kj::AsyncIoContext& io, const AgentOptions& options, WorkDir& work_dir,
             Credentials& credentials, LogStore& logs, RunDirs& run_dirs, Executor& executor)
    : io_(io),
      timer_(io.provider->getTimer()),
      options_(options),
      work_dir_(work_dir),
      credentials_(credentials),
      logs_(logs),
      run_dirs_(run_dirs),
      executor_(executor),
      node_(options.slots, work_dir.term(), kGatherMs, options.resources),
      sessions_(io.unixEventPort, timer_, executor, logs),
      local_(io, run_dirs, *this) {}

kj::Promise<Result<int>> Agent::run() {
  auto finished = kj::newPromiseAndFulfiller<void>();
  finished_ = kj::mv(finished.fulfiller);
  log::info("node {} with {} slots, work-dir {}", work_dir_.node_name(), options_.slots,
            work_dir_.path());
  connect_executor();
  // Without a keeper at startup, fail; only a keeper that is lost later is worth a retry.
  if (!executor_ready_ && !result_) finish(Error{Errc::unavailable, said_});
  if (!result_) {
    tasks_.add(stay_connected());
    tasks_.add(watch_executor());
    if (!options_.hollow) {
      tasks_.add(sweep_logs());
      tasks_.add(check_sessions());
    }
    if (!options_.hollow && options_.evict_below_bytes) tasks_.add(watch_memory());
  }
  return finished.promise.then([this] {
    if (link_.get() != nullptr) close_link("the agent is shutting down");
    return *result_;
  });
}

void Agent::finish(Result<int> result) {
  if (result_) return;
  result_ = std::move(result);
  finished_->fulfill();
}

void Agent::say(const std::string& state) {
  if (state == said_) return;
  said_ = state;
  log::warn("{}", state);
}

// --- the connection

kj::Promise<void> Agent::stay_connected() {
  return one_connection()
      .catch_([this](kj::Exception&& exception) { close_link(text(exception)); })
      .then([this] {
        if (pause_ms_ == 0) pause_ms_ = kPauseMinMs;
        Millis pause = std::uniform_int_distribution<Millis>(pause_ms_ / 2, pause_ms_)(chance_);
        pause_ms_ = std::min(pause_max_ms_, pause_ms_ * 2);
        return timer_.afterDelay(ms(pause));
      })
      .then([this] { return stay_connected(); });
}

kj::Promise<void> Agent::one_connection() {
  std::string address = options_.coordinator;
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
                          if (credentials_.encrypted())
                            at = tls::encrypted(kj::mv(at), credentials_.context());
                          auto promise = at->connect();
                          return promise.attach(kj::mv(at));
                        })
                        .attach(kj::mv(folder));
  return timer_.timeoutAfter(ms(kConnectMaxMs), kj::mv(connecting))
      .then([this](kj::Own<kj::AsyncIoStream> stream) { return connected(kj::mv(stream)); });
}

kj::Promise<void> Agent::connected(kj::Own<kj::AsyncIoStream> stream) {
  link_ = kj::heap<Link>(++links_, kj::mv(stream), link_loss_.handler());
  Link& link = *link_;
  if (credentials_.must_join())
    return join(link).exclusiveJoin(link.net.onDisconnect()).then([this] {
      if (credentials_.must_join()) return close_link("it closed the connection");
      link_ = nullptr;  // the next connection is that of the node
    });
  auto request = link.coordinator().registerRequest();
  write_hello(request.initHello());
  request.setAgent(kj::heap<Server>(*this, link.number));
  Millis sent_at = boot_now();
  auto registering =
      timer_.timeoutAfter(ms(kRegisterMaxMs), request.send().dropPipeline())
          .then([this, sent_at](capnp::Response<wire::Coordinator::RegisterResults>&& answer) {
            return greeted(answer.getResult(), sent_at);
          });
  return registering.exclusiveJoin(link.net.onDisconnect()).then([this] {
    close_link(link_->why.empty() ? "it closed the connection" : link_->why);
  });
}

kj::Promise<void> Agent::join(Link& link) {
  return timer_.timeoutAfter(ms(kRegisterMaxMs), get_certificate(link)).then([this] {
    pause_ms_ = 0;
  });
}

// An Error ends the agent only if it has no certificate that still works.
kj::Promise<void> Agent::get_certificate(Link& link) {
  auto request = link.coordinator().certifyRequest();
  const auto der = credentials_.request();
  if (!der.ok()) {
    finish(der.error());
    return kj::READY_NOW;
  }
  request.setRequest(kj::arrayPtr(reinterpret_cast<const kj::byte*>(der->data()), der->size()));
  return request.send().then([this](capnp::Response<wire::Coordinator::CertifyResults>&& answer) {
    auto result = answer.getResult();
    Status status = result.isCertificate()
                        ? credentials_.accept(to_string(result.getCertificate()))
                        : invalid(options_.coordinator + " rejects node " + work_dir_.node_name() +
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
          return timer_.afterDelay(ms(std::max(kCertificateMinMs, credentials_.renew_again_ms())));
        })
        .then([this, &link] { return keep_certificate(link); });
  // In steps, because the wall clock may be set.
  return timer_.afterDelay(ms(std::clamp(pause, kCertificateMinMs, kCertificateMaxMs)))
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
  hello.setClusterKey(work_dir_.cluster_key());
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
  auto labels = hello.initLabels(static_cast<unsigned>(options_.labels.size()));
  unsigned i = 0;
  for (const auto& [key, value] : options_.labels) {
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
  hello.setPid(static_cast<uint32_t>(getpid()));
  hello.setHeedsOwners(true);
  hello.setAddress(host_name());
  const std::string ip = options_.node_ip.empty() ? own_address(*link_->stream) : options_.node_ip;
  run_dirs_.set_ip(ip);
  hello.setIp(ip);
  Executor::Limits limits = executor_.limits();
  hello.setEnforcesMemory(limits.memory);
  hello.setEnforcesCpu(limits.cpu);
  if (!limits.memory || !limits.cpu) hello.setNoLimits(limits.why);
}

// Makes the term durable before it is obeyed. False: it must not be obeyed.
bool Agent::told(const std::string& cluster_id, core::node::Term term,
                 const std::string& cluster_key, uint64_t commit, const std::string& seal) {
  if (cluster_id != work_dir_.cluster_id()) {
    if (!node_.empty() && !work_dir_.cluster_id().empty()) return false;
    if (!work_dir_.cluster_id().empty()) node_.new_cluster();
  }
  if (!node_.term().yields_to(term)) return false;
  if (Status kept = work_dir_.told(cluster_id, term, cluster_key, commit, seal); !kept) {
    finish(kept.error());
    return false;
  }
  return true;
}

void Agent::welcome(wire::Welcome::Reader from, wire::Session::Client session, Millis sent_at) {
  core::node::Term term = term_of(from.getEpoch(), from.getNonce());
  const std::string seal = seal_of(from.getSeal());
  if (!told(to_string(from.getClusterId()), term, key_of(from.getClusterKey()), from.getCommit(),
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
  work_dir_.told_commit(from.getCommit(), seal);
  Link& link = *link_;
  link.session = session;
  link.heartbeat_ms = std::max<Millis>(1, static_cast<Millis>(from.getHeartbeatMs()));
  link.silence_max_ms = std::max(kSilenceMinMs, static_cast<Millis>(from.getLeaseMs()));
  link.answered_at = boot_now();
  pause_ms_ = 0;
  // A coordinator that restarts waits for its nodes for a limited time (core::back_within_ms), so
  // we must reconnect within it.
  pause_max_ms_ = std::clamp(static_cast<Millis>(from.getLeaseMs()) / 2, kPauseMinMs, kPauseMaxMs);
  said_.clear();
  log::info("registered with {} as node {} ({}), epoch {}", options_.coordinator,
            work_dir_.node_name(), from.getNodeId(), term.epoch);
  link.let_in->fulfill();
  for (auto& waiting : std::exchange(want_session_, {})) waiting->fulfill();
  if (draining_) say_leave(link, session);
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
      finish(Error{Errc::invalid, options_.coordinator + " rejects node " + work_dir_.node_name() +
                                      ": " + message});
      break;
  }
  link_->give_up("it rejects node " + work_dir_.node_name() + ": " + message);
}

void Agent::close_link(const std::string& why) {
  const bool expired = credentials_.expired(wall_now());
  if (!result_)
    say("no connection to " + options_.coordinator + ": " + why +
        (expired ? "; this node's certificate has expired: join again with a token from `muster "
                   "token create --node " +
                       work_dir_.node_name() + "`"
                 : "") +
        "; retrying");
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
  return timer_.afterDelay(ms(link.heartbeat_ms)).then([this, &link] { return heartbeats(link); });
}

void Agent::send_heartbeat(Link& link) {
  Millis sent_at = boot_now();
  size_t words = 16 + (trouble_.reason.size() + trouble_.message.size()) / 8 + 2;
  auto request = KJ_ASSERT_NONNULL(link.session).heartbeatRequest(capnp::MessageSize{words, 0});
  if (trouble_) {
    auto trouble = request.initTrouble();
    trouble.setReason(trouble_.reason);
    trouble.setMessage(trouble_.message);
  }
  link.tasks.add(request.send().then(
      [this, &link, sent_at](capnp::Response<wire::Session::HeartbeatResults>&& a) {
        core::node::Term term = term_of(a.getEpoch(), a.getNonce());
        if (!told(work_dir_.cluster_id(), term) || !node_.heartbeat_answered(term, sent_at)) {
          link.give_up("its epoch is outdated");
          return;
        }
        link.answered_at = boot_now();
        work_dir_.told_commit(a.getCommit(), seal_of(a.getSeal()));
        schedule();  // the renewed lease may allow a start
      }));
}

void Agent::send(Link& link, wire::Session::Client session, const core::node::Report& report) {
  auto request = session.reportRequest(size_of(report));
  write_report(report, boot_now(), request);
  link.tasks.add(request.send().then(
      [this, id = report.id](capnp::Response<wire::Session::ReportResults>&& answer) {
        node_.report_returned(id, read_pods(answer.getKept()));
        work_dir_.told_commit(answer.getCommit(), seal_of(answer.getSeal()));
        schedule();
      }));
}

// --- calls from the coordinator

void Agent::require_term(core::node::Term term) {
  KJ_REQUIRE(told(work_dir_.cluster_id(), term), kPastTerm);
}

void Agent::launch(wire::Agent::LaunchParams::Reader params) {
  const core::node::Term term = term_of(params.getEpoch(), params.getNonce());
  require_term(term);
  work_dir_.told_commit(params.getCommit(), seal_of(params.getSeal()));
  for (auto job : params.getTemplates()) {
    auto known = std::make_shared<const core::node::PodTemplate>(read_template(job));
    templates_[{known->job, known->generation}] = known;
  }
  std::vector<core::node::Launch> launches;
  std::vector<core::node::PodTemplatePtr> jobs;
  launches.reserve(params.getPods().size());
  jobs.reserve(params.getPods().size());
  for (auto launch : params.getPods()) {
    PodId pod = read_pod(launch.getPod());
    auto job = templates_.find({pod.job, launch.getGeneration()});
    KJ_REQUIRE(job != templates_.end(),
               "no template of this job and generation came over this connection", pod.job,
               launch.getGeneration());
    launches.push_back({pod, job->second->grace_ms, job->second->plan});
    jobs.push_back(job->second);
  }
  KJ_REQUIRE(node_.launch(term, launches, boot_now()), kPastTerm);
  for (size_t i = 0; i < launches.size(); ++i) {
    if (node_.runs(launches[i].pod)) pods_.try_emplace(launches[i].pod, std::move(jobs[i]));
  }
  schedule();
}

void Agent::kill(wire::Agent::KillParams::Reader params) {
  const core::node::Term term = term_of(params.getEpoch(), params.getNonce());
  require_term(term);
  std::vector<core::node::Kill> kills;
  for (auto kill : params.getKills()) kills.push_back({read_pod(kill.getPod()), kill.getGraceMs()});
  KJ_REQUIRE(node_.kill(term, kills, boot_now()), kPastTerm);
  schedule();
}

kj::Promise<void> Agent::read_log(wire::Agent::ReadLogParams::Reader params,
                                  wire::Agent::ReadLogResults::Builder results) {
  PodId pod = read_pod(params.getPod());
  const LogName name{to_string(params.getTemplate().getJobUid()),
                     to_string(params.getTemplate().getPodName()), to_string(params.getContainer()),
                     params.getStream() == wire::LogStream::STDERR};
  // Check before reading: if the pod has ended by now, the file holds everything it wrote.
  const bool running = node_.runs(pod);
  return muster::agent::read_log(logs_, executor_, name, params.getOffset(),
                                 std::min(params.getLimit(), kLogChunkMax))
      .then([results, running](const LogChunk& chunk) mutable {
        results.setFound(chunk.found || running);
        results.setData(
            kj::arrayPtr(reinterpret_cast<const kj::byte*>(chunk.data.data()), chunk.data.size()));
        results.setOffset(chunk.offset);
        results.setSize(chunk.size);
        results.setRunning(running);
      });
}

// Does not wait for the registration to be answered: a launch may follow at once, and needs it.
void Agent::take_hosts(wire::Agent::HostsParams::Reader params) {
  require_term(term_of(params.getEpoch(), params.getNonce()));
  for (auto job : params.getJobs()) {
    JobHosts hosts{job.getCompletions(), {}};
    for (auto host : job.getHosts())
      hosts.hosts.push_back({host.getIndex(), host.getAttempt(), to_string(host.getNode()),
                             to_string(host.getIp()), host.getRunning()});
    run_dirs_.set_hosts(job.getJob(), std::move(hosts));
  }
}

void Agent::exec(wire::Agent::ExecParams::Reader params, wire::Executed::Builder result) {
  require_term(term_of(params.getEpoch(), params.getNonce()));
  const PodId pod = read_pod(params.getPod());
  Sessions::Command command;
  for (auto word : params.getCommand()) command.words.push_back(to_string(word));
  command.reads = params.getInput() || params.getTerminal();
  command.terminal = params.getTerminal();
  auto job = std::make_shared<const core::node::PodTemplate>(read_template(params.getTemplate()));
  const std::string session = to_string(params.getSession());
  // A pod that has ended meanwhile may have a session whose end nobody has read.
  auto process =
      job->job == pod.job && (node_.runs(pod) || sessions_.has(session, pod))
          ? sessions_.join(job, pod, session, std::move(command), node_.devices_of(pod))
          : Result<wire::Process::Client>(Error{Errc::not_found, "the pod is not on this node"});
  if (process) {
    auto ran = result.initRan();
    ran.setProcess(kj::mv(*process));
    ran.setAttempt(pod.attempt);
    ran.setIndex(pod.index);
    ran.setHeedsInput(true);
  } else {
    auto refused = result.initRefused();
    refused.setMessage(process.error().message);
    const bool over = process.error().code == Errc::conflict;
    refused.setLost(over || process.error().code == Errc::not_found);
    refused.setOver(over);
  }
}

kj::Promise<void> Agent::check_sessions() {
  return timer_.afterDelay(ms(Sessions::kCheckMs)).then([this] {
    sessions_.check(link_.get() != nullptr && link_->session != nullptr);
    return check_sessions();
  });
}

kj::Maybe<wire::Session::Client> Agent::session() {
  if (link_.get() == nullptr) return nullptr;
  return link_->session.map([](wire::Session::Client& one) { return one; });
}

kj::Promise<void> Agent::session_changes() {
  auto paf = kj::newPromiseAndFulfiller<void>();
  std::erase_if(want_session_, [](auto& one) { return !one->isWaiting(); });
  want_session_.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

// A launcher that has noticed ends by itself, with its own message.
void Agent::give_up(PodId pod, const std::string& why, bool lost) {
  if (!giving_up_.insert(pod).second) return;
  log::warn("{} cannot reach a worker: {}", to_string(pod), why);
  tasks_.add(timer_.afterDelay(ms(kGiveUpMs)).then([this, pod, why, lost] {
    giving_up_.erase(pod);
    using core::EndCause;
    node_.give_up(pod, lost ? EndCause::worker_unreachable : EndCause::killed, why, boot_now());
    schedule();
  }));
}

// --- the executor

void Agent::connect_executor() {
  auto known = executor_.connect(*this);
  if (known) {
    executor_ready_ = true;
    say_limits();
    executor_gone_.clear();
    pods_.insert(known->templates.begin(), known->templates.end());
    listen_to_pods();
    node_.executor_queues(executor_.queues());
    node_.executor_connected(known->living, known->ended, boot_now());
    schedule();
    return;
  }
  executor_gone_ = known.error().message;
  say("no keeper: " + executor_gone_);
  if (known.error().code != Errc::unavailable) finish(known.error());
}

// MPI jobs need it, all others do without.
void Agent::listen_to_pods() {
  if (options_.hollow || listening_) return;
  Status listening = local_.listen(executor_.runs_users());
  listening_ = listening.ok();
  if (!listening_) log::warn("MPI jobs cannot run here: {}", listening.error().message);
}

void Agent::say_limits() {
  if (options_.hollow) return;
  const Executor::Limits limits = executor_.limits();
  if (limits.memory && limits.cpu)
    log::info("memory and cpu limits of containers are enforced");
  else
    log::warn("{} limits of containers are not enforced: {}",
              limits.cpu      ? "memory"
              : limits.memory ? "cpu"
                              : "memory and cpu",
              limits.why);
}

// Keeps the node's condition up to date; running pods are not affected.
kj::Promise<void> Agent::watch_executor() {
  core::node::Trouble trouble =
      executor_ready_ ? executor_.check() : core::node::Trouble{"KeeperNotRunning", executor_gone_};
  if (trouble != trouble_) {
    if (trouble)
      log::warn("{}: {}", trouble.reason, trouble.message);
    else
      log::info("the keeper has recovered");
    trouble_ = std::move(trouble);
    node_.executor_in_trouble(static_cast<bool>(trouble_));
    schedule();
    if (link_.get() != nullptr && link_->session != nullptr) send_heartbeat(*link_);
  }
  return timer_.afterDelay(ms(kExecutorPollMs)).then([this] { return watch_executor(); });
}

void Agent::on_started(const std::vector<core::node::ProcessStart>& started) {
  for (const auto& start : started) node_.process_started(start);
  schedule();
}

void Agent::on_ended(const std::vector<core::node::ProcessEnd>& ended) {
  for (const auto& end : ended) node_.process_ended(end);
  schedule();
}

void Agent::on_executor_gone(const std::string& why) {
  executor_ready_ = false;
  if (leaving_) return finish(0);
  say("the keeper is gone: " + why + "; starting another");
  reconnect_executor();
}

void Agent::reconnect_executor() {
  if (leaving_) return finish(0);
  connect_executor();
  if (executor_ready_) return;
  tasks_.add(timer_.afterDelay(ms(kExecutorPauseMs)).then([this] { reconnect_executor(); }));
}

// --- the node's orders

void Agent::schedule() {
  if (std::exchange(pumping_, true)) return;
  tasks_.add(kj::evalLast([this] { pump(); }));
}

void Agent::pump() {
  pumping_ = false;
  if (leaving_ || !executor_ready_) return;
  core::node::Orders orders = node_.next(boot_now());
  if (!orders.kills.empty()) executor_.kill(orders.kills);
  if (orders.room) executor_.set_room(*orders.room);
  if (!orders.withdrawn.empty()) executor_.withdraw(orders.withdrawn);
  if (!orders.starts.empty()) {
    std::vector<Executor::Start> starts;
    starts.reserve(orders.starts.size());
    for (const auto& order : orders.starts) starts.push_back({order, pods_.at(order.pod)});
    executor_.start(starts);
  }
  for (const auto& report : orders.reports) {
    // The node reports only while it is registered, which implies a link with a session.
    send(*link_, KJ_ASSERT_NONNULL(link_->session), report);
  }
  executor_.forget(orders.forget);
  for (PodId pod : orders.over) {
    pods_.erase(pod);
    run_dirs_.remove(pod);
  }
  if (!orders.again_at || (again_at_ && *again_at_ <= *orders.again_at)) return;
  again_at_ = orders.again_at;  // replaces a later one, which next() will ask for again
  again_ = timer_.afterDelay(ms(std::max<Millis>(1, *again_at_ - boot_now())))
               .then([this] {
                 again_at_.reset();
                 schedule();
               })
               .eagerlyEvaluate([](kj::Exception&& e) { MUSTER_CHECK(false, text(e)); });
}

// --- leaving

void Agent::obey(AgentControl::Command command) {
  switch (command) {
    case AgentControl::Command::none:
      return;
    case AgentControl::Command::drain:
      return drain();
    case AgentControl::Command::leave:
      log::info("shutting down; pods keep running");
      leaving_ = true;
      return finish(0);
    case AgentControl::Command::kill:
      if (std::exchange(leaving_, true)) return;
      log::info("shutting down; terminating all pods");
      executor_.end_all();
      if (!executor_ready_) return finish(0);
      tasks_.add(timer_.afterDelay(ms(kKillMaxMs)).then([this] { finish(0); }));
      return;
  }
}

void Agent::drain() {
  if (std::exchange(draining_, true)) return;
  log::info("draining: {} pods running, {} waiting", node_.running().size(),
            node_.waiting().size());
  node_.stop(boot_now());
  if (link_.get() != nullptr) {
    KJ_IF_MAYBE (session, link_->session) {
      say_leave(*link_, *session);
    }
  }
  schedule();
  tasks_.add(watch_drain(boot_now()));
}

void Agent::say_leave(Link& link, wire::Session::Client session) {
  saying_leave_ = true;
  link.tasks.add(session.leaveRequest().send().then(
      [this](capnp::Response<wire::Session::LeaveResults>&&) { saying_leave_ = false; }));
}

kj::Promise<void> Agent::watch_drain(Millis alone_since) {
  Millis now = boot_now();
  bool heard = link_.get() != nullptr && link_->session != nullptr;
  if (heard || !node_.idle()) alone_since = now;
  if ((node_.empty() && !saying_leave_) || now - alone_since >= kDrainAloneMs) {
    if (!node_.empty())
      log::warn("leaving {} unacknowledged ends in {} for the next agent", node_.unacked(),
                work_dir_.path());
    finish(0);
    return kj::READY_NOW;
  }
  return timer_.afterDelay(ms(kDrainLookMs)).then([this, alone_since] {
    return watch_drain(alone_since);
  });
}

kj::Promise<void> Agent::sweep_logs() {
  bool done =
      logs_.sweep({options_.log_keep_ms, options_.log_max_bytes}, wall_now(), kSweepEntries);
  return timer_.afterDelay(ms(done ? kSweepEachMs : kSweepStepMs)).then([this] {
    return sweep_logs();
  });
}

// While the node is short of memory, evicts the largest pod, one at a time: the kernel's OOM killer
// might pick the keeper.
kj::Promise<void> Agent::watch_memory() {
  auto available = available_memory();
  Millis pause = kMemoryEachMs;
  if (available && *available < *options_.evict_below_bytes) {
    const auto used = memory_by_group();
    std::optional<PodId> largest;
    uint64_t most = 0;
    for (const auto& [id, pids] : node_.processes()) {
      uint64_t bytes = 0;
      for (int pid : pids)
        if (auto it = used.find(pid); it != used.end()) bytes += it->second;
      if (!largest || bytes > most) largest = id, most = bytes;
    }
    if (largest) {
      log::warn("{} MiB of memory left: evicting {}, which uses {} MiB", *available >> 20,
                to_string(*largest), most >> 20);
      node_.evict(*largest, boot_now());
      schedule();
      pause = kMemoryAfterMs;
    }
  }
  return timer_.afterDelay(ms(pause)).then([this] { return watch_memory(); });
}

}  // namespace muster::agent
