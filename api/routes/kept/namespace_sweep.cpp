#include "api/routes/kept/namespace_sweep.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "api/view/model/viewer.hpp"
#include "base/log.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kAskedMax = 100;  // deletions under way
// Doubles with each round that had nothing to start, since a round visits every job of a namespace.
constexpr auto kPauseMin = 50 * kj::MILLISECONDS, kPauseMax = 1'600 * kj::MILLISECONDS;

// A job that is in memory or, of one that is not, what lists show. nullptr: it cannot be read.
const core::Job* job_of(const View& view, JobId id) {
  if (const core::Job* brief = view.jobs().brief(id)) return brief;
  const JobView* found = view.jobs().find(id);
  return found ? &found->job : nullptr;
}

}  // namespace

void NamespaceSweep::look() {
  if (!ready_ || running_ || view_.terminating().empty()) return;
  running_ = true;
  work_ = kj::evalLater([this] { return round(); }).eagerlyEvaluate([this](kj::Exception&& failed) {
    running_ = false;
    log::error("the deletion of a namespace failed: {}", failed.getDescription().cStr());
  });
}

kj::Promise<void> NamespaceSweep::round() {
  const auto spaces = view_.terminating();
  pause_ = std::min(std::max(2 * pause_, kPauseMin), kPauseMax);
  for (const std::string& ns : spaces) {
    const auto shown = view_.kept(core::KeptKind::name_space, "", ns);
    if (!shown) continue;
    // Without finalizers it goes at once, as in Kubernetes, whatever is in it.
    const std::vector<std::string>& holders = shown->kept->facts.finalizers;
    if (!holders.empty() && sweep(ns)) continue;
    const bool ours =
        std::find(holders.begin(), holders.end(), kNamespaceFinalizer) != holders.end();
    const size_t others = holders.size() - (ours ? 1 : 0);
    const core::KeptPtr kept = shown->kept->kept;
    if ((others != 0 && !ours) || !ask(kept->uid)) continue;
    backend_.write_kept(kept, others == 0 ? nullptr : finalized(*kept), {}, asked(kept->uid));
  }
  if (spaces.empty()) {
    running_ = false;
    return kj::READY_NOW;
  }
  return timer_.afterDelay(pause_).then([this] { return round(); });
}

bool NamespaceSweep::ask(const std::string& uid) {
  if (asked_.size() >= kAskedMax || !asked_.insert(uid).second) return false;
  pause_ = kPauseMin;
  return true;
}

std::function<void(Status)> NamespaceSweep::asked(const std::string& uid) {
  return [this, uid](Status) { asked_.erase(uid); };
}

bool NamespaceSweep::sweep(const std::string& ns) {
  const auto shown = view_.kept(core::KeptKind::name_space, "", ns);
  if (!shown) return true;
  const Viewer by{terminated_by(*shown->kept->kept)};
  bool left = false;
  View::Place at{ns, "", 0};
  while (const auto next = view_.next_job(ns, at)) {
    at = *next;
    const core::Job* job = job_of(view_, std::get<JobId>(at));
    if (!(job ? by.owns(job->object().meta) : !by.uid)) continue;
    left = true;
    if (job) sweep_job(*job);
  }
  std::vector<core::KeptPtr> kept;
  for (const core::KeptKind kind : core::kKeptKinds) {
    if (kind == core::KeptKind::name_space) continue;
    view_.each_kept(kind, ns, [&](const Shown& one) {
      if (one.kept->kept->name != kRootCaName && by.owns(one)) kept.push_back(one.kept->kept);
    });
  }
  for (const core::KeptPtr& one : kept)
    if (ask(one->uid)) backend_.write_kept(one, nullptr, {}, asked(one->uid));
  return left || !kept.empty();
}

void NamespaceSweep::sweep_job(const core::Job& job) {
  const core::JobMeta& meta = job.object().meta;
  if (!job.hidden()) {
    if (job.state().deleted_at || !ask(meta.uid)) return;
    return backend_.delete_job(meta.ns, meta.name, meta.uid, Propagation::background,
                               asked(meta.uid));
  }
  // Its pods are being ended, unless they were orphaned.
  if (!job.state().orphaned) return;
  std::vector<PodKey> pods;
  job.each_pod([&](const core::Pod& pod) {
    if (!pod.stopping_at) pods.push_back(pod.key);
  });
  if (!pods.empty() && ask(meta.uid))
    backend_.delete_pods(job.id(), std::move(pods), false, std::nullopt, asked(meta.uid));
}

}  // namespace muster::api
