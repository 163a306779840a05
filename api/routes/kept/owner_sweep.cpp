#include "api/routes/kept/owner_sweep.hpp"

#include "api/kube/objects/owner_refs.hpp"
#include "api/request/call.hpp"
#include "api/request/writes.hpp"
#include "api/view/render/render.hpp"
#include "base/log.hpp"
#include "base/text/json.hpp"
#include "core/pod_name.hpp"

#include <kj/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace muster::api {
namespace {

constexpr size_t kRemovalsMax = 100;                          // deletions under way
constexpr kj::Duration kSweepPause = 200 * kj::MILLISECONDS;  // between two rounds

// Nothing for kinds that muster does not have, and for namespaces, whose deletion removes what is
// in them.
std::optional<core::KeptKind> kept_kind_named(const core::OwnerRef& owner) {
  if (owner.kind == "ConfigMap" && owner.api_version == "v1") return core::KeptKind::config_map;
  if (owner.kind == "Lease" && owner.api_version == "coordination.k8s.io/v1")
    return core::KeptKind::lease;
  return std::nullopt;
}

// Whether a job of this name and uid is there, without reading one from disk. One that cannot be
// read may be it.
bool has_job(const View& view, const std::string& ns, const core::OwnerRef& owner) {
  const JobStore& jobs = view.jobs();
  if (jobs.damaged() > 0) return true;
  for (auto it = jobs.names().lower_bound({ns, owner.name, 0}); it != jobs.names().end(); ++it) {
    const auto& [its_ns, its_name, id] = *it;
    if (its_ns != ns || its_name != owner.name) return false;
    if (const UnloadedJob* unloaded = jobs.unloaded(id)) {
      if (unloaded->uid == owner.uid) return true;
    } else if (const JobView* job = jobs.in_memory(id)) {
      if (job->job.object().meta.uid == owner.uid) return !job->job.hidden();
    }
  }
  return false;
}

}  // namespace

bool OwnerSweep::exists(const core::OwnerRef& owner, const std::string& ns) const {
  if (owner.kind == "Job" && owner.api_version == "batch/v1") return has_job(view_, ns, owner);
  if (owner.kind == "Pod" && owner.api_version == "v1") {
    const auto pod = view_.pod(ns, owner.name);
    if (!pod && view_.jobs().damaged() > 0) return true;
    return pod && core::pod_uid(pod->job->object().meta.uid, pod->pod->key) == owner.uid;
  }
  if (owner.kind == "Node" && owner.api_version == "v1") {
    const auto node = view_.node(owner.name);
    return node && node->node->work_dir_id == owner.uid;
  }
  const auto kind = kept_kind_named(owner);
  if (!kind) return true;
  const auto kept = view_.kept(*kind, ns, owner.name);
  return kept && kept->kept->kept->uid == owner.uid;
}

void OwnerSweep::look() {
  if (!ready_ || view_.owned().empty()) return;
  again_ = true;
  if (running_) return;
  running_ = true;
  work_ = kj::evalLater([this] { return round(); }).eagerlyEvaluate([this](kj::Exception&& failed) {
    running_ = false;
    log::error("objects of gone owners cannot be deleted: {}", failed.getDescription().cStr());
  });
}

kj::Promise<void> OwnerSweep::round() {
  again_ = false;
  std::vector<core::KeptPtr> gone;
  for (const uint64_t id : view_.owned()) {
    if (asked_.size() + gone.size() >= kRemovalsMax) break;
    const auto shown = view_.kept_by_id(id);
    if (!shown || asked_.contains(id)) continue;
    const core::KeptPtr& kept = shown->kept->kept;
    const auto& owners = shown->kept->facts.owners;
    if (std::any_of(owners.begin(), owners.end(),
                    [&](const core::OwnerRef& owner) { return exists(owner, kept->ns); }))
      continue;
    log::info("deleting {} {}/{}: its owner {} {} is gone", resource_name(kind_of(kept->kind)),
              kept->ns, kept->name, owners.front().kind, owners.front().name);
    gone.push_back(kept);
  }
  for (const core::KeptPtr& kept : gone) {
    asked_.insert(kept->id);
    backend_.write_kept(kept, nullptr, {}, [this, id = kept->id](Status) { asked_.erase(id); });
  }
  return timer_.afterDelay(kSweepPause).then([this]() -> kj::Promise<void> {
    if (again_ && !view_.owned().empty()) return round();
    running_ = false;
    return kj::READY_NOW;
  });
}

namespace {

std::vector<core::KeptPtr> dependents_of(const View& view, const std::string& uid) {
  std::vector<core::KeptPtr> dependents;
  for (const uint64_t id : view.owned()) {
    const auto shown = view.kept_by_id(id);
    if (!shown) continue;
    const auto& owners = shown->kept->facts.owners;
    if (std::any_of(owners.begin(), owners.end(),
                    [&uid](const core::OwnerRef& owner) { return owner.uid == uid; }))
      dependents.push_back(shown->kept->kept);
  }
  return dependents;
}

std::shared_ptr<core::Kept> without_owner(const core::Kept& kept, const std::string& uid) {
  Json json = Json::parse(kept.json);
  drop_owner_refs(json["metadata"], uid);
  auto next = std::make_shared<core::Kept>(kept);
  next->json = dumped(json);
  return next;
}

kj::Promise<Status> release(const View& view, Backend& backend, std::string uid, int tries) {
  const std::vector<core::KeptPtr> dependents = dependents_of(view, uid);
  if (dependents.empty()) return Status(Nothing{});
  if (tries == 0)
    return Status(
        Error{Errc::conflict, "its dependents changed again and again while orphaned", {}});
  kj::Vector<kj::Promise<Status>> all;
  for (const core::KeptPtr& seen : dependents) {
    Call call = new_call();
    backend.write_kept(seen, without_owner(*seen, uid), {}, std::move(call.done));
    all.add(kj::mv(call.promise));
  }
  return kj::joinPromises(all.releaseAsArray())
      .then([&view, &backend, uid, tries](kj::Array<Status> done) -> kj::Promise<Status> {
        for (const Status& one : done)
          if (!one.ok() && one.error().code != Errc::conflict) return Status(one.error());
        return release(view, backend, uid, tries - 1);
      });
}

}  // namespace

kj::Promise<Status> delete_owner(const View& view, Backend& backend,
                                 std::optional<Propagation> propagation, std::string uid,
                                 std::function<void(std::function<void(Status)> done)> remove) {
  kj::Promise<Status> released = Status(Nothing{});
  if (propagation == Propagation::orphan)
    released = release(view, backend, std::move(uid), kWriteTries);
  return released.then([remove = std::move(remove)](Status status) -> kj::Promise<Status> {
    if (!status.ok()) return status;
    Call call = new_call();
    remove(std::move(call.done));
    return kj::mv(call.promise);
  });
}

}  // namespace muster::api
