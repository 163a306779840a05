#include "api/routes/kept/owner_deletion.hpp"

#include "api/kube/objects/kept_object.hpp"
#include "api/kube/objects/owner_refs.hpp"
#include "api/request/call.hpp"
#include "api/request/writes.hpp"
#include "base/text/json.hpp"
#include "core/spec/values/well_known.hpp"

#include <kj/vector.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace muster::api {
namespace {

using Done = std::function<void(Status)>;

kj::Promise<Status> asked(const std::function<void(Done)>& ask) {
  Call call = new_call();
  ask(std::move(call.done));
  return kj::mv(call.promise);
}

bool names(const Dependent& one, const std::string& uid) {
  return std::any_of(one.owners.begin(), one.owners.end(),
                     [&uid](const core::OwnerRef& owner) { return owner.uid == uid; });
}

// Removes the references to this owner from all objects.
kj::Promise<Status> release(const View& view, Backend& backend, std::string uid, int tries) {
  const Owners owners(view);
  kj::Vector<kj::Promise<Status>> all;
  if (owners.has_dependents(uid) && tries == 0)
    return Status(
        Error{Errc::conflict, "its dependents changed again and again while orphaned", {}});
  if (!owners.has_dependents(uid)) return Status(Nothing{});
  for (const Dependent& one : owners.dependents()) {
    if (!names(one, uid)) continue;
    if (one.kept) {
      all.add(asked([&](Done done) {
        backend.write_kept(one.kept, without_owners(*one.kept, {uid}), {}, std::move(done));
      }));
    } else if (const auto shown = view.find({Kind::job, one.job, 0, {}})) {
      const core::JobObjectPtr seen = shown->job->object_ptr();
      all.add(asked([&](Done done) {
        backend.update_job(seen, without_owners(*seen, {uid}), std::move(done));
      }));
    }
  }
  if (all.empty()) return Status(Nothing{});  // what is left cannot be read
  return kj::joinPromises(all.releaseAsArray())
      .then([&view, &backend, uid, tries](kj::Array<Status> done) -> kj::Promise<Status> {
        for (const Status& one : done)
          if (!one.ok() && one.error().code != Errc::conflict &&
              one.error().code != Errc::not_found)
            return Status(one.error());
        return release(view, backend, uid, tries - 1);
      });
}

// Gives the job the finalizer of a foreground deletion.
kj::Promise<Status> hold(const View& view, Backend& backend, core::JobMeta meta, int tries) {
  const auto shown = view.job(meta.ns, meta.name);
  if (!shown || shown->job->object().meta.uid != meta.uid)
    return Status(Error{Errc::not_found, "", {}});
  const core::JobObjectPtr seen = shown->job->object_ptr(), next = held(*seen, true);
  if (next->json == seen->json) return Status(Nothing{});
  return asked([&](Done done) { backend.update_job(seen, next, std::move(done)); })
      .then([&view, &backend, meta = std::move(meta),
             tries](Status status) mutable -> kj::Promise<Status> {
        if (status.ok() || status.error().code != Errc::conflict || tries <= 1) return status;
        return hold(view, backend, std::move(meta), tries - 1);
      });
}

}  // namespace

core::KeptPtr without_owners(const core::Kept& kept, const std::vector<std::string>& uids) {
  Json json = Json::parse(kept.json);
  for (const std::string& uid : uids) drop_owner_refs(json["metadata"], uid);
  auto next = std::make_shared<core::Kept>(kept);
  next->json = dumped(json);
  return next;
}

core::JobObjectPtr without_owners(const core::JobObject& job,
                                  const std::vector<std::string>& uids) {
  Json document = Json::parse(job.json);
  for (const std::string& uid : uids) drop_owner_refs(document["metadata"], uid);
  auto next = std::make_shared<core::JobObject>(job);
  next->json = document.dump();
  next->meta.owners = read_owner_refs(document["metadata"]);
  return next;
}

core::JobObjectPtr held(const core::JobObject& job, bool hold) {
  const std::string name(core::kForegroundFinalizer);
  auto next = std::make_shared<core::JobObject>(job);
  std::vector<std::string>& finalizers = next->meta.finalizers;
  std::erase(finalizers, name);
  if (hold) finalizers.push_back(name);
  Json document = Json::parse(job.json);
  if (finalizers.empty())
    document["metadata"].erase("finalizers");
  else
    document["metadata"]["finalizers"] = finalizers;
  next->json = document.dump();
  return next;
}

const Owners& OwnerDeletion::owners() {
  if (given_) return *given_;
  if (!made_) made_.emplace(view_);
  return *made_;
}

kj::Promise<Status> OwnerDeletion::job(const core::JobMeta& meta, Propagation propagation) {
  const auto remove = [&backend = backend_, meta, propagation](Done done) {
    backend.delete_job(meta.ns, meta.name, meta.uid, propagation, std::move(done));
  };
  if (propagation != Propagation::foreground || !owners().blocked(meta.uid))
    return other(meta.uid, propagation, remove);
  return hold(view_, backend_, meta, kWriteTries)
      .then([remove](Status status) -> kj::Promise<Status> {
        if (!status.ok()) return status;
        return asked(remove);
      });
}

kj::Promise<Status> OwnerDeletion::kept(const core::KeptPtr& kept,
                                        std::optional<Propagation> propagation, Millis now_ms) {
  core::KeptPtr next;
  if (propagation == Propagation::foreground && owners().blocked(kept->uid))
    next = deleted_in_foreground(*kept, now_ms);
  return other(kept->uid, propagation, [&backend = backend_, kept, next](Done done) {
    backend.write_kept(kept, next, {}, std::move(done));
  });
}

kj::Promise<Status> OwnerDeletion::other(
    const std::string& uid, std::optional<Propagation> propagation,
    std::function<void(std::function<void(Status)> done)> remove) {
  if (propagation != Propagation::orphan || !owners().has_dependents(uid)) return asked(remove);
  return release(view_, backend_, uid, kWriteTries)
      .then([remove = std::move(remove)](Status status) -> kj::Promise<Status> {
        if (!status.ok()) return status;
        return asked(remove);
      });
}

}  // namespace muster::api
