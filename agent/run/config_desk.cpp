#include "agent/run/config_desk.hpp"

#include "agent/link/link.hpp"
#include "agent/link/wire.hpp"
#include "base/check.hpp"
#include "base/log.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace muster::agent {
namespace {

constexpr Millis kAgainMs = 1'000;
constexpr Millis kKeptMs = 60'000;  // data that no start has used for so long is forgotten

}  // namespace

core::node::PodTemplatePtr ConfigDesk::fresh(const core::node::PodTemplate& of) const {
  const auto job = jobs_.find({of.job, of.generation});
  if (job == jobs_.end() || !job->second.held.empty() || !job->second.missing.empty())
    return nullptr;
  return boot_now() - job->second.fetched_at <= kFreshMs ? job->second.fetched : nullptr;
}

void ConfigDesk::hold(Executor::Start start) {
  const Key id = key_of(start);
  jobs_[id].held.push_back(std::move(start));
  ask(id);
}

void ConfigDesk::hold_longer(Executor::Start start) {
  const Key id = key_of(start);
  jobs_[id].held.push_back(std::move(start));
  ask_later(id);
}

void ConfigDesk::ask(Key id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  if (job.asking || job.waiting || job.held.empty()) return;
  KJ_IF_MAYBE (session, agent_.session()) {
    job.asking = true;
    auto request = session->configsRequest();
    // For each pod in turn, in case one has just left this node.
    write_pod(job.held[job.asked++ % job.held.size()].order.pod, request.initPod());
    request.setHave(job.fetched ? job.version : 0);
    tasks_.add(request.send().then(
        [this, id, at = boot_now()](capnp::Response<wire::Session::ConfigsResults>&& answer) {
          answered(id, at, answer);
        },
        [this, id](kj::Exception&& e) {
          log::debug("job {}: cannot fetch its config maps: {}", id.first, text_of(e));
          if (const auto job = jobs_.find(id); job != jobs_.end()) job->second.asking = false;
          ask_later(id);
        }));
  }
}

void ConfigDesk::answered(Key id, Millis asked_at, wire::Session::ConfigsResults::Reader answer) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  job.asking = false;
  std::string missing = to_string(answer.getMissing());
  if (missing != job.missing && !missing.empty() && !job.held.empty())
    log::info("pods of {} wait: {}", job.held.front().job->job_name, missing);
  job.missing = std::move(missing);
  if (job.missing.empty() && answer.hasTemplate()) {
    job.fetched = std::make_shared<const core::node::PodTemplate>(
        read_template(answer.getTemplate(), extras_));
    job.version = answer.getVersion();
  }
  if (!job.missing.empty() || job.fetched == nullptr || job.version != answer.getVersion())
    return ask_later(id);
  job.fetched_at = asked_at;
  auto held = std::exchange(job.held, {});
  for (Executor::Start& start : held) start.job = job.fetched;
  if (!held.empty()) agent_.release(std::move(held));
  sweep();
}

void ConfigDesk::ask_later(Key id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || std::exchange(found->second.waiting, true)) return;
  tasks_.add(timer_.afterDelay(kAgainMs * kj::MILLISECONDS).then([this, id] {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return;
    found->second.waiting = false;
    ask(id);
    sweep();
  }));
}

std::vector<core::node::ProcessEnd> ConfigDesk::drop(
    const std::vector<core::node::KillOrder>& kills, const std::vector<PodId>& withdrawn) {
  std::vector<core::node::ProcessEnd> ends;
  auto drop_from = [&](PodId pod, auto dropped) {
    for (auto it = jobs_.lower_bound({pod.job, INT64_MIN});
         it != jobs_.end() && it->first.first == pod.job; ++it)
      std::erase_if(it->second.held, [&](const Executor::Start& start) {
        if (start.order.pod != pod || !dropped(start.order.step)) return false;
        ends.push_back({.pod = pod,
                        .step = start.order.step,
                        .error = it->second.missing,
                        .ended_at = boot_now(),
                        .unstarted = true});
        return true;
      });
  };
  for (const auto& kill : kills)
    drop_from(kill.pod, [&](core::node::Step step) { return step == kill.step; });
  for (const PodId pod : withdrawn) drop_from(pod, [](core::node::Step) { return true; });
  return ends;
}

void ConfigDesk::clear() {
  for (auto& [id, job] : jobs_) job.held.clear();
}

void ConfigDesk::connected() {
  for (auto& [id, job] : jobs_) {
    job.asking = false;
    ask(id);
  }
}

void ConfigDesk::sweep() {
  std::erase_if(jobs_, [](const auto& one) {
    const Job& job = one.second;
    return job.held.empty() && !job.asking && !job.waiting && boot_now() - job.fetched_at > kKeptMs;
  });
}

void ConfigDesk::taskFailed(kj::Exception&& exception) {
  MUSTER_CHECK(false, text_of(exception));
}

}  // namespace muster::agent
