#include "api/routes/kept/namespace_sweep.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "api/view/model/viewer.hpp"
#include "base/log.hpp"

#include <utility>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kAskedMax = 100;  // deletions under way
constexpr auto kSweepPause = 50 * kj::MILLISECONDS;

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
  for (const std::string& ns : spaces) {
    if (sweep(ns)) continue;
    const auto shown = view_.kept(core::KeptKind::name_space, "", ns);
    if (!shown || !asked_.insert(shown->kept->kept->uid).second) continue;
    backend_.write_kept(shown->kept->kept, nullptr, {},
                        [this, uid = shown->kept->kept->uid](Status) { asked_.erase(uid); });
  }
  if (spaces.empty()) {
    running_ = false;
    return kj::READY_NOW;
  }
  return timer_.afterDelay(kSweepPause).then([this] { return round(); });
}

bool NamespaceSweep::sweep(const std::string& ns) {
  const auto shown = view_.kept(core::KeptKind::name_space, "", ns);
  if (!shown) return true;
  const Viewer by{terminated_by(*shown->kept->kept)};
  bool left = view_.next_job(ns, {ns, "", 0}).has_value();
  view_.each(Kind::job, ns, nullptr, [&](const Shown& job) {
    const core::JobMeta& meta = job.job->object().meta;
    if (asked_.size() >= kAskedMax || !by.owns(job) || !asked_.insert(meta.uid).second) return;
    backend_.delete_job(ns, meta.name, meta.uid, Propagation::background,
                        [this, uid = meta.uid](Status) { asked_.erase(uid); });
  });
  for (const core::KeptKind kind : core::kKeptKinds) {
    if (kind == core::KeptKind::name_space) continue;
    view_.each_kept(kind, ns, [&](const Shown& one) {
      const core::KeptPtr& kept = one.kept->kept;
      if (kept->name == kRootCaName) return;
      left = true;
      // Leases and events belong to no user.
      const bool ours = kind != core::KeptKind::config_map || by.owns(one);
      if (asked_.size() >= kAskedMax || !ours || !asked_.insert(kept->uid).second) return;
      backend_.write_kept(kept, nullptr, {},
                          [this, uid = kept->uid](Status) { asked_.erase(uid); });
    });
  }
  return left;
}

}  // namespace muster::api
