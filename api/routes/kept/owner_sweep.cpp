#include "api/routes/kept/owner_sweep.hpp"

#include "api/request/call.hpp"
#include "api/routes/kept/owner_deletion.hpp"
#include "api/view/query/owners.hpp"
#include "api/view/render/render.hpp"
#include "base/log.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

namespace muster::api {
namespace {

constexpr size_t kOwnerWritesMax = 100;                       // writes under way
constexpr kj::Duration kSweepPause = 200 * kj::MILLISECONDS;  // between two rounds, at least
constexpr int64_t kRestFactor = 20;  // of the time that a round takes: it must not hold up requests

using What = Verdict::What;

// Sends a write whose outcome the next round will see.
template <class Ask>
kj::Promise<Status> sent(Ask ask) {
  Call call = new_call();
  ask(std::move(call.done));
  return kj::mv(call.promise);
}

}  // namespace

void OwnerSweep::Errors::taskFailed(kj::Exception&& failed) {
  log::error("an object without owners cannot be deleted: {}", failed.getDescription().cStr());
}

bool OwnerSweep::idle() const {
  return view_.owned().empty() && view_.leaving().empty() && view_.jobs().owned().empty() &&
         view_.jobs().held().empty();
}

void OwnerSweep::look() {
  if (!ready_ || idle()) return;
  again_ = true;
  if (running_) return;
  running_ = true;
  work_ = kj::evalLater([this] { return round(); }).eagerlyEvaluate([this](kj::Exception&& failed) {
    running_ = false;
    log::error("objects of gone owners cannot be deleted: {}", failed.getDescription().cStr());
  });
}

kj::Promise<void> OwnerSweep::round() {
  const auto begun = std::chrono::steady_clock::now();
  again_ = false;
  const Owners owners(view_);
  for (const Dependent& one : owners.dependents()) {
    if (asked_.size() >= kOwnerWritesMax) break;
    if (!may_ask(one.uid)) continue;
    const Verdict verdict = owners.judge(one);
    if (verdict.what != What::stays) carry_out(owners, one, verdict);
  }
  let_go(owners);
  if (!asked_.empty()) again_ = true;  // a write that is refused does not change the View
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begun);
  const kj::Duration rest = kRestFactor * took.count() * kj::MICROSECONDS;
  return timer_.afterDelay(std::max(kSweepPause, rest)).then([this]() -> kj::Promise<void> {
    if (again_ && !idle()) return round();
    running_ = false;
    return kj::READY_NOW;
  });
}

void OwnerSweep::carry_out(const Owners& owners, const Dependent& one, const Verdict& verdict) {
  if (!one.kept) return carry_out_of_job(owners, one, verdict);
  const core::KeptPtr& kept = one.kept;
  if (verdict.what == What::released) {
    const auto next = without_owners(*kept, verdict.lost);
    return ask(one.uid,
               sent([&](auto done) { backend_.write_kept(kept, next, {}, std::move(done)); }));
  }
  log::info("deleting {} {}/{}: its owner {} {} is gone", resource_name(kind_of(kept->kind)),
            one.ns, one.name, one.owners.front().kind, one.owners.front().name);
  const auto how = verdict.what == What::deleted_in_foreground ? Propagation::foreground
                                                               : Propagation::background;
  ask(one.uid, OwnerDeletion(view_, backend_, owners).kept(kept, how, now_()));
}

void OwnerSweep::carry_out_of_job(const Owners& owners, const Dependent& one,
                                  const Verdict& verdict) {
  if (verdict.what == What::released) {
    const auto shown = view_.find({Kind::job, one.job, 0, {}});
    if (!shown) return;  // it cannot be read
    const core::JobObjectPtr seen = shown->job->object_ptr();
    const auto next = without_owners(*seen, verdict.lost);
    return ask(one.uid, sent([&](auto done) { backend_.update_job(seen, next, std::move(done)); }));
  }
  log::info("deleting job {}/{}: its owner {} {} is gone", one.ns, one.name,
            one.owners.front().kind, one.owners.front().name);
  const core::JobMeta meta{.name = one.name, .ns = one.ns, .uid = one.uid};
  const auto how = verdict.what == What::deleted_in_foreground ? Propagation::foreground
                                                               : Propagation::background;
  ask(one.uid, OwnerDeletion(view_, backend_, owners).job(meta, how));
}

void OwnerSweep::let_go(const Owners& owners) {
  // A write may change the sets at once.
  const std::set<uint64_t> leaving = view_.leaving();
  const std::set<JobId> held_jobs = view_.jobs().held();
  for (const uint64_t id : leaving) {
    const auto shown = view_.kept_by_id(id);
    if (asked_.size() >= kOwnerWritesMax) return;
    if (!shown) continue;
    const core::KeptPtr kept = shown->kept->kept;
    const bool waits = !shown->kept->facts.finalizers.empty() && owners.blocked(kept->uid);
    if (waits || !may_ask(kept->uid)) continue;
    ask(kept->uid,
        sent([&](auto done) { backend_.write_kept(kept, nullptr, {}, std::move(done)); }));
  }
  for (const JobId id : held_jobs) {
    if (asked_.size() >= kOwnerWritesMax) return;
    const JobView* job = view_.jobs().in_memory(id);
    if (!job) continue;
    const core::JobObjectPtr seen = job->job.object_ptr();
    if (owners.blocked(seen->meta.uid) || !may_ask(seen->meta.uid)) continue;
    ask(seen->meta.uid,
        sent([&](auto done) { backend_.update_job(seen, held(*seen, false), std::move(done)); }));
  }
}

bool OwnerSweep::may_ask(const std::string& uid) const {
  return !asked_.contains(uid);
}

void OwnerSweep::ask(const std::string& uid, kj::Promise<Status> work) {
  asked_.insert(uid);
  tasks_.add(work.attach(kj::defer([this, uid] { asked_.erase(uid); })).ignoreResult());
}

}  // namespace muster::api
