#include "coordinator/rpc/agent_session.hpp"

#include "actors/messages.hpp"
#include "coordinator/links/wire_convert.hpp"
#include "coordinator/links/wire_text.hpp"
#include "core/node/values.hpp"

#include <caf/send.hpp>
#include <kj/debug.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace muster::coordinator {

namespace {

constexpr size_t kReasonMax = 64;  // bytes of the reason for a node's trouble

bool has_failed_start(const core::PodsReported& report) {
  return std::ranges::any_of(report.ends, [](const core::PodsReported::Ended& end) {
    return end.cause == core::EndCause::start_failed;
  });
}

}  // namespace

void AgentSession::check_current() {
  KJ_REQUIRE(desks_.links.current(node_, link_), "this session is over: register again");
}

kj::Promise<void> AgentSession::heartbeat(HeartbeatContext context) {
  check_current();
  auto params = context.getParams();
  auto trouble = params.getTrouble();
  auto check = params.getCheck();
  actors::Heartbeat beat{
      node_,
      link_,
      {text_of(trouble.getReason(), kReasonMax), text_of(trouble.getMessage(), kMessageMax)}};
  if (params.getStarted() > 0) beat.started = params.getStarted() - 1;
  beat.check = {check.getRuns(), text_of(check.getFailure(), kMessageMax)};
  caf::anon_send(desks_.context.cluster, std::move(beat));
  auto results = context.getResults(capnp::MessageSize{8 + kSealWords, 0});
  results.setEpoch(desks_.context.options.epoch);
  results.setNonce(desks_.context.options.nonce);
  desks_.context.tell(results);
  return kj::READY_NOW;
}

kj::Promise<void> AgentSession::report(ReportContext context) {
  check_current();
  auto params = context.getParams();
  KJ_REQUIRE(params.getStarts().size() <= core::node::kListMax &&
                 params.getEnds().size() <= core::node::kListMax,
             "a list can have at most 512 entries");
  actors::Report report{node_, read_report(node_, params.getStarts(), params.getEnds()), nullptr};
  for (auto& [job, part] : report.jobs)
    if (has_failed_start(part)) part.node_name = name_;
  context.releaseParams();
  using Pods = std::vector<PodId>;
  auto paf = kj::newPromiseAndFulfiller<Pods>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Pods>>>(kj::mv(paf.fulfiller));
  report.done = desks_.context.replies.across<Pods>(
      [fulfiller](Pods kept) { (*fulfiller)->fulfill(kj::mv(kept)); });
  caf::anon_send(desks_.context.registry, std::move(report));
  return paf.promise.then([this, context](Pods kept) mutable {
    const std::vector<Order> next = desks_.links.take_launches(node_, link_);
    auto results = context.getResults(
        capnp::MessageSize{8 + kSealWords + 3 * kept.size() + 6 * next.size(), 0});
    desks_.context.tell(results);
    if (!kept.empty()) {
      auto pods = results.initKept(static_cast<unsigned>(kept.size()));
      for (unsigned i = 0; i < kept.size(); ++i) write_pod(pods[i], kept[i]);
    }
    if (!next.empty()) {
      auto launches = results.initLaunches(static_cast<unsigned>(next.size()));
      for (unsigned i = 0; i < next.size(); ++i) write_launch(launches[i], next[i]);
    }
  });
}

kj::Promise<void> AgentSession::exec(ExecContext context) {
  check_current();
  return desks_.mpi.tried(context.getParams().getFrom().getJob()).then([this, context] {
    return desks_.relay.exec(context, node_);
  });
}

kj::Promise<void> AgentSession::fence(FenceContext context) {
  check_current();
  return desks_.mpi.fence(context, node_);
}

kj::Promise<void> AgentSession::gather(GatherContext context) {
  check_current();
  return desks_.mpi.gather(context, node_);
}

kj::Promise<void> AgentSession::configs(ConfigsContext context) {
  check_current();
  using Answer = Result<api::PodConfigs>;
  const PodId pod = read_pod(context.getParams().getPod());
  auto paf = kj::newPromiseAndFulfiller<Answer>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<Answer>>>(kj::mv(paf.fulfiller));
  desks_.context.options.pod_configs(pod, node_,
                                     desks_.context.replies.across<Answer>([fulfiller](Answer one) {
                                       (*fulfiller)->fulfill(kj::mv(one));
                                     }));
  return paf.promise.then([this, context, pod](Answer answer) mutable {
    check_current();
    auto results = context.getResults();
    if (!answer.ok()) return results.setMissing(answer.error().message);
    results.setVersion(answer->version);
    if (!answer->missing.empty()) return results.setMissing(answer->missing);
    if (context.getParams().getHave() == answer->version) return;
    const core::ConfigMaps data = answer->data();
    auto out = results.initTemplate();
    const auto& options = desks_.context.options;
    const AgentLinks::Link& link = *desks_.links.find(node_);
    auto job = template_of(pod.job, *answer->object, link.figures, options.image_runtime, data);
    write_template(out, job, link.takes.templates);
    if (!options.permit_key) return;
    if (const auto permit =
            permit_for(options.cluster_id, link.node, *answer->object, std::move(job), wall_now()))
      write_signed(out, *permit, *options.permit_key);
  });
}

kj::Promise<void> AgentSession::leave(LeaveContext) {
  check_current();
  caf::anon_send(desks_.context.cluster, actors::AgentLeaves{node_, link_});
  return kj::READY_NOW;
}

}  // namespace muster::coordinator
