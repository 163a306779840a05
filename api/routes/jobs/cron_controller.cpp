#include "api/routes/jobs/cron_controller.hpp"

#include "api/kube/objects/event_object.hpp"
#include "api/kube/objects/kept_object.hpp"
#include "api/kube/objects/status_object.hpp"
#include "api/kube/objects/time_zones.hpp"
#include "api/request/call.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/text/time_text.hpp"

#include <kj/vector.h>

#include <algorithm>
#include <utility>

namespace muster::api {
namespace {

constexpr const char* kComponent = "cronjob-controller";
constexpr auto kCronPause = 100 * kj::MILLISECONDS;  // between two looks
// Jumps of the wall clock are noticed after this time.
constexpr Millis kSleepMaxMs = 5'000;
constexpr Millis kRetryMs = 10'000;   // after a failed creation or deletion
constexpr size_t kRoundsMax = 100;    // under way
constexpr size_t kMessageMax = 1024;  // bytes of an event

core::ChildJob::End end_of(const core::Job& job) {
  if (job.condition(core::ConditionType::complete)) return core::ChildJob::End::complete;
  return job.condition(core::ConditionType::failed) ? core::ChildJob::End::failed
                                                    : core::ChildJob::End::none;
}

}  // namespace

void CronController::start() {
  work_ = run().eagerlyEvaluate([](kj::Exception&& failed) {
    log::error("cron jobs are no longer started: {}", failed.getDescription().cStr());
  });
}

void CronController::look() {
  if (changed_.get() != nullptr) changed_->fulfill();
}

kj::Promise<void> CronController::run() {
  look_at_all();
  Millis sleep_ms = kSleepMaxMs;
  const Millis now = options_.now();
  for (const auto& [id, known] : known_)
    if (known->wake && !known->busy) sleep_ms = std::clamp<Millis>(*known->wake - now, 0, sleep_ms);
  auto paf = kj::newPromiseAndFulfiller<void>();
  changed_ = kj::mv(paf.fulfiller);
  auto woken = known_.empty()
                   ? kj::mv(paf.promise)
                   : paf.promise.exclusiveJoin(timer_.afterDelay(sleep_ms * kj::MILLISECONDS));
  return woken
      .then([this] {
        changed_ = nullptr;
        return timer_.afterDelay(kCronPause);
      })
      .then([this] { return run(); });
}

void CronController::look_at_all() {
  const Millis now = options_.now();
  std::map<uint64_t, std::shared_ptr<Known>> before;
  before.swap(known_);
  std::vector<Shown> all;
  view_.each_kept(core::KeptKind::cron_job, "", [&](const Shown& shown) {
    const uint64_t id = shown.kept->kept->id;
    auto had = before.find(id);
    known_[id] = had == before.end() ? std::make_shared<Known>() : had->second;
    all.push_back(shown);
  });
  for (const Shown& shown : all) look_at(shown, now);
  std::erase_if(ended_, [this](const auto& one) { return !view_.jobs().unloaded(one.first); });
}

// Begins a round if something has changed or is due.
void CronController::look_at(const Shown& shown, Millis now) {
  const core::KeptPtr& kept = shown.kept->kept;
  Known& known = *known_.at(kept->id);
  if (known.busy || busy_ >= kRoundsMax) return;  // the end of a round leads to another look
  std::vector<core::ChildJob> children = children_of(*kept);
  if (known.kept == kept && known.children == children && !(known.wake && *known.wake <= now))
    return;
  if (known.kept != kept) {
    known.json = Json::parse(kept->json);
    known.cron = cron_of(known.json);
    known.zone = known.cron.spec.time_zone ? zone_named(*known.cron.spec.time_zone) : local_zone();
    known.kept = kept;
  }
  known.children = std::move(children);
  known.busy = true;
  ++busy_;
  rounds_.add(kj::evalNow([&] {
                return round(kept->id);
              }).attach(kj::defer([this, one = known_.at(kept->id)] {
    one->busy = false;
    --busy_;
    look();
  })));
}

// Whether the CronJob of this uid is the controller of the job.
bool CronController::controls(JobId job, const std::string& uid) const {
  const auto& owned = view_.jobs().owned();
  const auto it = owned.find(job);
  const auto* const controller =
      it == owned.end() ? nullptr : core::controller_of(it->second.owners);
  return controller != nullptr && controller->uid == uid;
}

// Jobs of other users that name the CronJob as their controller are not its children.
std::vector<core::ChildJob> CronController::children_of(const core::Kept& cron) {
  const std::string& uid = cron.uid;
  std::vector<core::ChildJob> children;
  for (const JobId id : view_.jobs().dependents(uid)) {
    if (!controls(id, uid)) continue;
    if (auto found = child(id, cron.owner)) children.push_back(std::move(*found));
  }
  return children;
}

// A finished job does not change any more, and need not be read from disk again.
std::optional<core::ChildJob> CronController::child(JobId id, std::optional<uint32_t> owner) {
  const JobStore& jobs = view_.jobs();
  if (const auto ended = ended_.find(id); ended != ended_.end() && jobs.unloaded(id))
    return ended->second;
  const JobView* const found = jobs.find(id);
  if (found == nullptr || found->job.hidden()) return std::nullopt;
  const core::Job& job = found->job;
  const core::JobMeta& meta = job.object().meta;
  if (core::owner_uid(meta.annotations) != owner) return std::nullopt;
  core::ChildJob out{{meta.name, meta.uid}, end_of(job), job.state().started_at, 0};
  // In whole seconds, as the status has it.
  if (const auto completed = job.state().completed_at) out.ended_ms = *completed / 1000 * 1000;
  if (out.end != core::ChildJob::End::none && jobs.unloaded(id)) ended_.emplace(id, out);
  return out;
}

kj::Promise<void> CronController::round(uint64_t id) {
  const std::shared_ptr<Known> known = known_.at(id);
  const Millis now = options_.now();
  auto decision = std::make_shared<core::CronDecision>(
      core::decide(known->cron, known->children, known->zone ? &*known->zone : nullptr, now));
  known->wake = decision->wake;
  return remove(*known, decision->remove)
      .then([this, known, decision](bool removed) -> kj::Promise<Created> {
        if (!removed) {
          decision->status = known->cron.status;
          known->wake = options_.now() + kRetryMs;
          return Created{std::nullopt, ""};
        }
        for (const core::CronEvent& event : decision->events) report(*known, event);
        if (!decision->start || view_.terminating().contains(known->kept->ns))
          return Created{std::nullopt, ""};
        return create(*known, *decision->start);
      })
      .then([this, known, decision](Created created) {
        if (created.job)
          decision->status = core::started(decision->status, *created.job, *decision->start);
        if (!created.why.empty()) {
          report(*known, {true, "FailedCreate", "Error creating job: " + created.why});
          known->wake = options_.now() + kRetryMs;
        }
        return write(*known, decision->status);
      });
}

// Whether all of them are gone.
kj::Promise<bool> CronController::remove(const Known& known,
                                         const std::vector<core::JobRef>& jobs) {
  if (jobs.empty()) return true;
  kj::Vector<kj::Promise<bool>> all;
  for (const core::JobRef& job : jobs) {
    Call call = new_call();
    backend_.delete_job(known.kept->ns, job.name, job.uid, Propagation::background,
                        std::move(call.done));
    all.add(call.promise.then([this, &known, job](Status status) {
      const bool gone = status.ok() || status.error().code == Errc::not_found;
      report(known, gone ? core::CronEvent{false, "SuccessfulDelete", "Deleted job " + job.name}
                         : core::CronEvent{true, "FailedDelete",
                                           "Deleted job: " + status.error().message});
      return gone;
    }));
  }
  return kj::joinPromises(all.releaseAsArray()).then([](kj::Array<bool> gone) {
    return std::all_of(gone.begin(), gone.end(), [](bool one) { return one; });
  });
}

kj::Promise<CronController::Created> CronController::create(const Known& known,
                                                            Millis scheduled_ms) {
  if (options_.roles.any() && !known.kept->owner)
    return Created{std::nullopt, "the cron job has no owner"};
  Json job = cron_child(known.json, scheduled_ms, known.zone ? *known.zone : local_zone());
  const std::string name = member_text(job["metadata"], "name");
  return create_for(known.kept->owner, std::move(job), kComponent)
      .then([this, &known, name](Result<core::JobObjectPtr> made) -> Created {
        if (!made.ok() && made.error().code == Errc::exists) return existing(*known.kept, name);
        if (!made.ok()) return {std::nullopt, made.error().message};
        report(known, {false, "SuccessfulCreate", "Created job " + name});
        return {core::JobRef{name, (*made)->meta.uid}, ""};
      });
}

// The job that has the name already: this CronJob's own, or somebody else's.
CronController::Created CronController::existing(const core::Kept& cron,
                                                 const std::string& name) const {
  const auto shown = view_.job(cron.ns, name);
  if (shown && controls(shown->job->id(), cron.uid))
    return {core::JobRef{name, shown->job->object().meta.uid}, ""};
  return {std::nullopt, "jobs.batch \"" + name + "\" already exists"};
}

// A conflict shows as a change of the CronJob, and so leads to another round.
kj::Promise<void> CronController::write(const Known& known, const core::CronStatus& status) {
  if (status == known.cron.status) return kj::READY_NOW;
  Json json = known.json;
  set_cron_status(json, status);
  auto next = std::make_shared<core::Kept>(*known.kept);
  next->json = dumped(json);
  if (next->json == known.kept->json) return kj::READY_NOW;
  Call call = new_call();
  backend_.write_kept(known.kept, std::move(next), {}, std::move(call.done));
  return call.promise.ignoreResult();
}

void CronController::report(const Known& known, const core::CronEvent& event) {
  const core::Kept& cron = *known.kept;
  const std::string name = cron.name + "." + event_hash(cron.uid + event.reason + event.message);
  const auto shown = view_.kept(core::KeptKind::event, cron.ns, name);
  auto next = std::make_shared<core::Kept>();
  Json json;
  if (shown) {
    *next = *shown->kept->kept;
    json = Json::parse(next->json);
    json["count"] = json.value("count", 1) + 1;
    json["lastTimestamp"] = time_text(options_.now());
  } else {
    *next = {.kind = core::KeptKind::event, .ns = cron.ns, .name = name, .uid = random_uid()};
    next->owner = cron.owner;
    json = event_object(*next, {"CronJob", "batch/v1", cron.ns, cron.name, cron.uid},
                        {.warning = event.warning,
                         .reason = event.reason,
                         .message = utf8_prefix(event.message, kMessageMax),
                         .component = kComponent,
                         .first = options_.now(),
                         .last = options_.now()});
  }
  next->json = dumped(json);
  if (kept_too_long(*next)) return;
  backend_.write_kept(shown ? shown->kept->kept : nullptr, std::move(next), {}, [](Status) {});
}

void CronController::taskFailed(kj::Exception&& failed) {
  log::error("a round of a cron job failed: {}", failed.getDescription().cStr());
}

}  // namespace muster::api
