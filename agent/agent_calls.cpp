// Calls to the agent from the coordinator (wire::Agent, for one registration) and from the sessions
// and launchers of pods (LocalServer::Agent).
//
// Invariants: an order is obeyed only in a term that is on disk; launch, kill, unacked and exec
// fail once their registration is not the newest, and wait until its answer has been read.
#include "agent/agent_loop.hpp"
#include "agent/link/wire.hpp"
#include "base/log.hpp"

#include <kj/debug.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace muster::agent {

namespace {

constexpr Millis kGiveUpMs = 3'000;  // mpirun needs a tenth of a second to notice
// For the keeper to report the ends that it has seen, before the coordinator gets its answer.
constexpr Millis kSettleMs = 1'000;
constexpr uint32_t kLogChunkMax = 1 << 20;

constexpr const char* kPastTerm =
    "this agent serves a later epoch, or another coordinator with the same epoch";

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wnon-virtual-dtor"  // of generated servers: never deleted through a base
// What the coordinator may call. Each registration passes a new one, whose launch, kill, unacked
// and exec fail once its link is not the current one.
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
  kj::Promise<void> limit(LimitContext context) override {
    return when_welcome().then([this, context]() mutable { agent_.limit(context.getParams()); });
  }
  kj::Promise<void> readLog(ReadLogContext context) override {
    return agent_.read_log(context.getParams(), context.getResults());
  }
  kj::Promise<void> findLog(FindLogContext context) override {
    return agent_.find_log(context.getParams(), context.getResults());
  }
  kj::Promise<void> unacked(UnackedContext context) override {
    return when_welcome()
        .then([this]() { return agent_.settled(); })
        .then([this, context]() mutable {
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
  kj::Promise<void> meet(MeetContext context) override {
    return when_welcome().then([this, context]() mutable {
      return agent_.meet(context.getParams(), context.getResults());
    });
  }
  kj::Promise<void> reach(ReachContext context) override {
    return when_welcome().then([this, context]() mutable {
      return agent_.reach(context.getParams(), context.getResults());
    });
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

wire::Agent::Client Agent::calls(uint64_t link) {
  return kj::heap<Server>(*this, link);
}

void Agent::require_term(core::node::Term term) {
  KJ_REQUIRE(learn(work_dir_.cluster_id(), term), kPastTerm);
}

void Agent::launch(wire::Agent::LaunchParams::Reader params) {
  const core::node::Term term = term_of(params.getEpoch(), params.getNonce());
  require_term(term);
  work_dir_.learn_commit(params.getCommit(), seal_of(params.getSeal()));
  for (auto job : params.getTemplates()) {
    auto known =
        std::make_shared<const core::node::PodTemplate>(read_template(job, extras_of(options_)));
    templates_[{known->job, known->generation}] = known;
  }
  accept(term, params.getPods());
}

void Agent::accept(core::node::Term term, capnp::List<wire::Launch>::Reader pods) {
  std::vector<core::node::Launch> launches;
  std::vector<core::node::PodTemplatePtr> jobs;
  launches.reserve(pods.size());
  jobs.reserve(pods.size());
  for (auto launch : pods) {
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

void Agent::limit(wire::Agent::LimitParams::Reader params) {
  const core::node::Term term = term_of(params.getEpoch(), params.getNonce());
  require_term(term);
  std::vector<core::node::Limit> limits;
  for (auto limit : params.getLimits()) {
    const Millis limit_ms = limit.getLimitMs();
    limits.push_back(
        {read_pod(limit.getPod()), limit_ms > 0 ? std::optional(limit_ms) : std::nullopt});
  }
  KJ_REQUIRE(node_.limit(term, limits, boot_now()), kPastTerm);
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
      .then([this, results, running, name, run = params.getRun(),
             times = params.getTimes()](LogChunk&& chunk) mutable {
        logs_.finish(name, run, times, chunk, wall_now());
        results.setFound(chunk.found || running);
        results.setData(
            kj::arrayPtr(reinterpret_cast<const kj::byte*>(chunk.data.data()), chunk.data.size()));
        results.setOffset(chunk.offset);
        results.setSize(chunk.size);
        results.setRunning(running && !chunk.over);
        auto marks = results.initMarks(static_cast<unsigned>(chunk.marks.size()));
        for (unsigned i = 0; i < marks.size(); ++i) {
          marks[i].setOffset(chunk.marks[i].offset);
          marks[i].setAtMs(chunk.marks[i].at);
        }
      });
}

kj::Promise<void> Agent::find_log(wire::Agent::FindLogParams::Reader params,
                                  wire::Agent::FindLogResults::Builder results) {
  LogSearch search;
  search.name = {to_string(params.getTemplate().getJobUid()),
                 to_string(params.getTemplate().getPodName()), to_string(params.getContainer())};
  search.run = params.getRun();
  search.since = params.getSinceMs();
  if (params.getLastLines() >= 0) search.last_lines = static_cast<uint64_t>(params.getLastLines());
  auto opened = [this, &search](bool wanted, bool err) -> kj::Promise<kj::AutoCloseFd> {
    LogName name = search.name;
    name.err = err;
    if (!wanted) return kj::AutoCloseFd();
    return open_output(logs_, executor_, name);
  };
  auto out = opened(params.getStdout(), false);
  return out.then([this, err = opened(params.getStderr(), true), search = std::move(search),
                   results](kj::AutoCloseFd&& out) mutable {
    return err.then([this, search = std::move(search), results,
                     out = kj::mv(out)](kj::AutoCloseFd&& err) mutable {
      const LogBegins begins = logs_.find(search, out, err, wall_now());
      results.setStdout(begins.out);
      results.setStderr(begins.err);
    });
  });
}

// Does not wait for the registration's answer: a launch may follow at once, and needs the hosts.
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

// A hollow node has no ranks, so nobody has to reach it.
void Agent::meet(wire::Agent::MeetParams::Reader params,
                 wire::Agent::MeetResults::Builder results) {
  require_term(term_of(params.getEpoch(), params.getNonce()));
  if (options_.hollow) return;
  results.setPort(peers_.open(ip_));
  results.setGreeting(peers_.greeting());
}

kj::Promise<void> Agent::reach(wire::Agent::ReachParams::Reader params,
                               wire::Agent::ReachResults::Builder results) {
  require_term(term_of(params.getEpoch(), params.getNonce()));
  std::vector<PeerPort::Peer> peers;
  for (auto peer : params.getPeers())
    peers.push_back({to_string(peer.getIp()), peer.getPort(), to_string(peer.getGreeting())});
  return peers_.reach(ip_, std::move(peers), {})
      .then([results](std::vector<std::string> failures) mutable {
        auto out = results.initFailures(static_cast<unsigned>(failures.size()));
        for (unsigned i = 0; i < out.size(); ++i) out.set(i, failures[i]);
      });
}

void Agent::exec(wire::Agent::ExecParams::Reader params, wire::Executed::Builder result) {
  require_term(term_of(params.getEpoch(), params.getNonce()));
  const PodId pod = read_pod(params.getPod());
  Sessions::Command command;
  for (auto word : params.getCommand()) command.words.push_back(to_string(word));
  command.reads = params.getInput() || params.getTerminal();
  command.terminal = params.getTerminal();
  if (const int32_t position = params.getContainer(); position >= 0)
    command.container = static_cast<uint16_t>(std::min<int32_t>(position, UINT16_MAX));
  auto job = std::make_shared<const core::node::PodTemplate>(
      read_template(params.getTemplate(), extras_of(options_)));
  const std::string session = to_string(params.getSession());
  auto process = join_pod(job, pod, session, std::move(command));
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

Result<wire::Process::Client> Agent::join_pod(const core::node::PodTemplatePtr& job, PodId pod,
                                              const std::string& session,
                                              Sessions::Command command) {
  // A pod or container that has ended meanwhile may have a session whose end has not been read.
  const bool known = sessions_.has(session, pod);
  if (job->job != pod.job || !(known || node_.runs(pod)))
    return Error{Errc::not_found, "the pod is not on this node"};
  // Of the first container, the keeper knows best: its start may not be reported yet.
  if (const auto wanted = command.container; wanted && *wanted != job->init_containers && !known &&
                                             *wanted < job->containers.size() &&
                                             !node_.runs(pod, *wanted))
    return Error{Errc::invalid,
                 "container " + job->containers[*wanted].what.name + " is not running"};
  return sessions_.join(job, pod, session, std::move(command), node_.devices_of(pod));
}

// Waits only briefly: the coordinator may need the answer although this node has nothing to report.
kj::Promise<void> Agent::settled() {
  return executor_.settled()
      .exclusiveJoin(timer_.afterDelay(kSettleMs * kj::MILLISECONDS))
      .catch_([](kj::Exception&&) {});
}

kj::Promise<void> Agent::check_sessions() {
  return timer_.afterDelay(Sessions::kCheckMs * kj::MILLISECONDS).then([this] {
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

// Delayed, because a launcher that notices ends on its own, with its own message.
void Agent::give_up(PodId pod, const std::string& why, bool lost) {
  if (!giving_up_.insert(pod).second) return;
  log::warn("{} cannot reach a worker: {}", to_string(pod), why);
  tasks_.add(timer_.afterDelay(kGiveUpMs * kj::MILLISECONDS).then([this, pod, why, lost] {
    giving_up_.erase(pod);
    using core::EndCause;
    node_.give_up(pod, lost ? EndCause::worker_unreachable : EndCause::killed, why, boot_now());
    schedule();
  }));
}

}  // namespace muster::agent
