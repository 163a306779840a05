#include "coordinator/desks/exec_relay.hpp"

#include "base/clock.hpp"
#include "coordinator/links/wire_convert.hpp"
#include "core/node/command.hpp"

#include <algorithm>
#include <utility>

namespace muster::coordinator {
namespace {

constexpr Millis kUnknownMs = 5'000;    // before a job is reported as unknown
constexpr Millis kLookAgainMs = 1'000;  // longest wait between checks for a pod
constexpr Millis kPermitMs = 600'000;   // clocks differ between machines
constexpr Millis kUnusedMs = 60'000;
constexpr Millis kDropEveryMs = 5'000;
constexpr size_t kUserSessionsMax = 1'000;
constexpr size_t kCommandMax = core::node::kStringsMax;
constexpr Millis kStartMs = 30'000;  // for a node to answer
constexpr size_t kAskedMax = 4'096;  // calls in progress per node
constexpr ptrdiff_t kSessionsOfUserMax = 200;

std::string text_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

void refuse(wire::Executed::Builder result, const std::string& message, bool lost) {
  auto refused = result.initRefused();
  refused.setMessage(message);
  refused.setLost(lost);
}

Error no_session() {
  return {Errc::not_found, "there is no such session", {}};
}

}  // namespace

kj::Promise<void> ExecRelay::exec(ExecCall context, NodeId node) {
  context.allowCancellation();
  size_t bytes = context.getParams().getHost().size();
  for (auto word : context.getParams().getCommand()) bytes += word.size();
  if (bytes > kCommandMax) {
    refuse(context.getResults().initResult(), "the command is too long", false);
    return kj::READY_NOW;
  }
  size_t& asked = asked_[node];
  if (asked >= kAskedMax) {
    refuse(context.getResults().initResult(),
           "too many commands are waiting for pods; try again later", false);
    return kj::READY_NOW;
  }
  ++asked;
  return exec(context, node, boot_now() + kUnknownMs).attach(kj::defer([this, node] {
    if (--asked_[node] == 0) asked_.erase(node);
  }));
}

// Waits until the pod runs. The caller decides how long that may take, and drops the call.
kj::Promise<void> ExecRelay::exec(ExecCall context, NodeId node, Millis unknown_until) {
  const auto params = context.getParams();
  const PodId from = read_pod(params.getFrom());
  // Copied for each use, since then() keeps only a reference to an lvalue.
  auto again = [this, context, node, unknown_until] { return exec(context, node, unknown_until); };
  auto soon = [this] { return timer_.afterDelay(kLookAgainMs * kj::MILLISECONDS); };
  auto wait = [&] { return desk_.changes(from.job).exclusiveJoin(soon()).then(kj::cp(again)); };
  auto no = [&](const std::string& message, bool lost) -> kj::Promise<void> {
    refuse(context.getResults().initResult(), message, lost);
    return kj::READY_NOW;
  };
  const core::HostListPtr list = desk_.of(from.job);
  // A coordinator that has just started may not know the job yet.
  if (list == nullptr && boot_now() < unknown_until) return wait();
  if (list == nullptr || !desk_.is_on(from, node))
    return no("this pod is not a running pod of an MPI job on its node", false);
  const std::string host = text_of(params.getHost());
  const auto index = desk_.resolve(from.job, host, nodes_.name);
  if (!index)
    return no("no pod of this job is called " + host + "; they are called " + desk_.names(from.job),
              false);
  const std::string shown = "index " + std::to_string(*index);
  const int64_t before = params.getAttempt();
  const auto found =
      std::ranges::find_if(list->hosts, [&](const auto& one) { return one.pod.index == *index; });
  const bool here = found != list->hosts.end();
  if (before >= 0 && (!here || found->pod.attempt != before))
    return no(shown + " (attempt " + std::to_string(before) + ") has ended", true);
  if (!here && list->over.contains(*index))
    return no(shown + " has ended and will not run again", true);
  if (!here || !found->running) return wait();
  KJ_IF_MAYBE (agent, nodes_.agent(found->node)) {
    Command command;
    command.input = params.getInput();
    for (auto word : params.getCommand()) command.words.push_back(text_of(word));
    const Target target{
        {from.job, found->pod.index, found->pod.attempt}, found->node, list->object};
    return run(*agent, target, text_of(params.getSession()), command)
        .then(
            [context, again, soon](Answer&& answer) mutable -> kj::Promise<void> {
              const auto result = answer.getResult();
              // The pod has just ended: look for a successor.
              if (result.isRefused() && result.getRefused().getLost() &&
                  !result.getRefused().getOver())
                return soon().then(kj::cp(again));
              context.getResults().setResult(result);
              return kj::READY_NOW;
            },
            [again, soon](kj::Exception&& e) -> kj::Promise<void> {
              if (e.getType() != kj::Exception::Type::DISCONNECTED) return kj::mv(e);
              return soon().then(kj::cp(again));
            });
  }
  return wait();
}

kj::Promise<ExecRelay::Answer> ExecRelay::run(wire::Agent::Client agent, const Target& target,
                                              const std::string& session, const Command& command) {
  if (core::config_needs(target.object->spec.pod).empty() || coordinator_.replies == nullptr)
    return run(kj::mv(agent), target, session, command, {});
  // If a config map is gone by now, its variables are left out where they are optional; otherwise
  // the agent refuses the command.
  using Found = Result<api::PodConfigs>;
  auto paf = kj::newPromiseAndFulfiller<Found>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Found>>>(kj::mv(paf.fulfiller));
  (*coordinator_.pod_configs)(target.pod, target.node,
                              coordinator_.replies->across<Found>([fulfiller](Found found) {
                                (*fulfiller)->fulfill(kj::mv(found));
                              }));
  return paf.promise.then([this, agent = kj::mv(agent), target, session,
                           command](Found found) mutable {
    return run(kj::mv(agent), target, session, command, found ? found->data() : core::ConfigMaps());
  });
}

kj::Promise<ExecRelay::Answer> ExecRelay::run(wire::Agent::Client agent, const Target& target,
                                              const std::string& session, const Command& command,
                                              const core::ConfigMaps& configs) {
  auto request = agent.execRequest();
  request.setEpoch(coordinator_.epoch);
  request.setNonce(coordinator_.nonce);
  auto out = request.initTemplate();
  auto job = template_of(target.pod.job, *target.object, nodes_.figures(target.node), {}, configs);
  write_template(out, job, nodes_.takes(target.node).templates);
  if (const auto& key = *coordinator_.permit_key)
    if (auto permit = permit_for(coordinator_.cluster_id, nodes_.name(target.node), *target.object,
                                 std::move(job), wall_now())) {
      permit->until_ms = wall_now() + kPermitMs;
      permit->session = PermitSession{
          target.pod.index,
          target.pod.attempt,
          command.container.value_or(static_cast<uint16_t>(permit->job.init_containers)),
          session,
          command.words,
          command.input,
          command.terminal};
      write_signed(out, *permit, *key);
    }
  write_pod(request.initPod(), target.pod);
  request.setSession(session);
  auto words = request.initCommand(static_cast<unsigned>(command.words.size()));
  for (unsigned i = 0; i < command.words.size(); ++i) words.set(i, command.words[i]);
  request.setInput(command.input);
  request.setTerminal(command.terminal);
  if (command.container) request.setContainer(*command.container);
  return request.send().dropPipeline();
}

// ---- for users

bool ExecRelay::is_taken(const api::ExecSession& session) const {
  const auto found = users_.find(session.id);
  return found != users_.end() && found->second.of != session;
}

ExecRelay::UserSession* ExecRelay::find(const api::ExecSession& session) {
  const auto found = users_.find(session.id);
  return found == users_.end() || found->second.of != session ? nullptr : &found->second;
}

kj::Promise<Result<api::ExecStarted>> ExecRelay::start(const api::ExecRequest& ask) {
  using Started = Result<api::ExecStarted>;
  if (is_taken(ask.session)) return Started(no_session());
  if (find(ask.session) == nullptr) {
    const auto of_caller = std::ranges::count_if(
        users_, [&ask](const auto& one) { return one.second.of.caller == ask.session.caller; });
    if (users_.size() + starting_ >= kUserSessionsMax || of_caller >= kSessionsOfUserMax)
      return Started(Error{Errc::overloaded, "too many commands run in pods; try again later", {}});
  }
  KJ_IF_MAYBE (agent, nodes_.agent(ask.node)) {
    const bool first = ask.container == ask.object->spec.pod.init_containers.size();
    if (!first && !ask.command.empty() && !nodes_.takes(ask.node).containers)
      return Started(Error{
          Errc::conflict,
          "the agent of this node is too old: commands there run in a pod's first container only",
          {}});
    ++starting_;
    return timer_
        .timeoutAfter(kStartMs * kj::MILLISECONDS,
                      run(*agent, {ask.pod, ask.node, ask.object}, ask.session.id,
                          {ask.command, ask.input, ask.terminal, ask.container}))
        .attach(kj::defer([this] { --starting_; }))
        .then(
            [this, session = ask.session, input = ask.input](Answer&& answer) -> Started {
              const auto result = answer.getResult();
              if (result.isRefused())
                return Error{Errc::conflict, text_of(result.getRefused().getMessage()), {}};
              if (is_taken(session)) return no_session();
              if (input && !result.getRan().getHeedsInput()) {
                result.getRan().getProcess().endRequest().send().ignoreResult().detach(
                    [](kj::Exception&&) {});
                return Error{
                    Errc::conflict,
                    "the agent of this node is too old: it does not pass input to commands",
                    {}};
              }
              users_.erase(session.id);
              users_.emplace(session.id,
                             UserSession{session, result.getRan().getProcess(), boot_now(), 0});
              return api::ExecStarted{};
            },
            [](kj::Exception&& e) -> Started { return no_answer(e); });
  }
  return Started(Error{Errc::unavailable, "the node of this pod is not connected", {}});
}

kj::Promise<Result<api::ExecOutput>> ExecRelay::read(const api::ExecRead& ask) {
  using Output = Result<api::ExecOutput>;
  UserSession* const session = find(ask.session);
  if (session == nullptr) return Output(no_session());
  auto request = session->process.readRequest();
  request.setStdout(ask.out);
  request.setStderr(ask.err);
  request.setLimit(ask.limit);
  auto used = use(ask.session);
  return request.send()
      .then(
          [](auto&& answer) -> Output {
            auto bytes = [](capnp::Data::Reader data) {
              return std::string(reinterpret_cast<const char*>(data.begin()), data.size());
            };
            return api::ExecOutput{bytes(answer.getStdout()), bytes(answer.getStderr()),
                                   answer.getEnded(), answer.getExitCode(),
                                   text_of(answer.getMessage())};
          },
          [](kj::Exception&& e) -> Output { return no_answer(e); })
      .attach(kj::mv(used));
}

kj::Promise<Result<api::ExecTaken>> ExecRelay::write(const api::ExecWrite& ask) {
  using Taken = Result<api::ExecTaken>;
  UserSession* const session = find(ask.session);
  if (session == nullptr) return Taken(no_session());
  auto request = session->process.writeRequest();
  request.setOffset(ask.offset);
  request.setData({reinterpret_cast<const kj::byte*>(ask.data.data()), ask.data.size()});
  request.setEof(ask.eof);
  auto used = use(ask.session);
  return request.send()
      .then(
          [](auto&& answer) -> Taken {
            return api::ExecTaken{answer.getTaken(), answer.getClosed()};
          },
          [](kj::Exception&& e) -> Taken { return no_answer(e); })
      .attach(kj::mv(used));
}

kj::Own<void> ExecRelay::use(const api::ExecSession& session) {
  auto change = [this, session](int by) {
    if (UserSession* const one = find(session)) {
      one->used_at = boot_now();
      if (by > 0 || one->calls > 0) one->calls += static_cast<unsigned>(by);
    }
  };
  change(1);
  return kj::heap(kj::defer([change] { change(-1); }));
}

// A session whose node cannot be notified is kept, so that its end can be requested again.
kj::Promise<Status> ExecRelay::end(const api::ExecSession& of) {
  UserSession* const session = find(of);
  if (session == nullptr) return Status(no_session());
  return session->process.endRequest().send().then(
      [this, of](auto&&) -> Status {
        if (find(of) != nullptr) users_.erase(of.id);
        return Nothing{};
      },
      [](kj::Exception&& e) -> Status { return no_answer(e); });
}

kj::Promise<void> ExecRelay::drop_unused() {
  return timer_.afterDelay(kDropEveryMs * kj::MILLISECONDS).then([this] {
    for (auto one = users_.begin(); one != users_.end();) {
      UserSession& session = one->second;
      if (session.calls > 0 || boot_now() - session.used_at < kUnusedMs) {
        ++one;
        continue;
      }
      session.process.endRequest().send().ignoreResult().detach([](kj::Exception&&) {});
      one = users_.erase(one);
    }
    return drop_unused();
  });
}

}  // namespace muster::coordinator
