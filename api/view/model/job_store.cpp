#include "api/view/model/job_store.hpp"

#include "base/check.hpp"
#include "core/job/rules/decide.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/values/well_known.hpp"

#include <algorithm>

namespace muster::api {
namespace {

// Total weight of the unloaded jobs that stay in memory: 1 each, plus their pods and events.
constexpr uint64_t kRecentWeightMax = 200'000;
constexpr size_t kRecentMin = 4;  // so that the last few results of find() stay valid

uint64_t weight(const core::Job& job) {
  return 1 + job.state().finished.size() + job.state().events.size();
}

// The versions are left at 0.
UnloadedJob entry_of(const core::JobSummary& job) {
  return {.uid = job.uid, .complete = job.complete, .named_pods = job.named_pods};
}

// With this version for all its objects.
std::unique_ptr<JobView> view_of(core::Job job, uint64_t version) {
  auto view = std::make_unique<JobView>(std::move(job));
  view->version = view->loaded = version;
  view->job.each_pod([&](const core::Pod& pod) {
    if (shows(view->job, pod)) view->pods[pod.key] = version;
  });
  return view;
}

// An unloaded job in memory, with the versions of its entry.
std::unique_ptr<JobView> view_of(core::Job job, const UnloadedJob& entry) {
  auto view = view_of(std::move(job), entry.version);
  view->owner_version = entry.owner_version;
  return view;
}

JobStore::Place place_of(const core::Job& job) {
  return {job.object().meta.ns, job.object().meta.name, job.id()};
}

}  // namespace

core::Condition damaged_condition(Millis at_ms, const std::string& why) {
  return {core::ConditionType::damaged, true, at_ms, core::ConditionReason::unreadable, why};
}

void JobStore::add_unloaded(const core::JobSummary& job) {
  names_.emplace(job.ns, job.name, job.id);
  unloaded_.emplace(job.id, entry_of(job));
  if (has_own_owners(job.owners)) owned_.set(job.id, {job.ns, job.name, job.uid, job.owners});
  note_notice(job.id, job.notice_due);
}

void JobStore::start_at(uint64_t version) {
  for (auto& [id, view] : jobs_) {
    view->version = view->loaded = version;
    for (auto& [key, pod_version] : view->pods) pod_version = version;
  }
  for (auto& [id, job] : unloaded_) job.version = version;
}

JobView& JobStore::add(core::Job job, uint64_t version) {
  const JobId id = job.id();
  names_.insert(place_of(job));
  auto [it, added] = jobs_.emplace(id, view_of(std::move(job), version));
  MUSTER_CHECK(added, id);
  count_active(it->second->job, 1);
  note_owners(it->second->job);
  note_notice(id, core::notice_due(it->second->job));
  return *it->second;
}

void JobStore::note_notice(JobId id, bool due) {
  if (due)
    notices_.insert(id);
  else if (!notices_.empty())
    notices_.erase(id);
}

void JobStore::note_owners(const core::Job& job) {
  const core::JobMeta& meta = job.object().meta;
  if (has_own_owners(meta.owners))
    owned_.set(job.id(), {meta.ns, meta.name, meta.uid, meta.owners});
  else
    owned_.erase(job.id());
  const auto& names = meta.finalizers;
  const bool held =
      job.state().deleted_at && !job.hidden() &&
      std::find(names.begin(), names.end(), core::kForegroundFinalizer) != names.end();
  if (held)
    held_.insert(job.id());
  else
    held_.erase(job.id());
}

JobView* JobStore::activate(const core::JobRecords& batch) {
  auto it = jobs_.find(batch.job);
  auto entry = unloaded_.find(batch.job);
  if (entry == unloaded_.end()) return it == jobs_.end() ? nullptr : it->second.get();
  // What find() read from disk may already contain this batch, so start from the state before it.
  MUSTER_CHECK(batch.before != nullptr, batch.job);
  if (it != jobs_.end()) {
    recent_weight_ -= weight(it->second->job);
    recent_.erase(it->second->used);
    jobs_.erase(it);
  }
  auto view = view_of(core::Job(*batch.before), entry->second);
  unloaded_.erase(entry);
  unreadable_.erase(batch.job);
  count_active(view->job, 1);
  note_owners(view->job);
  return jobs_.emplace(batch.job, std::move(view)).first->second.get();
}

void JobStore::count_active(const core::Job& job, int change) {
  const auto uid = core::owner_uid(job.object().meta.annotations);
  if (!uid) return;
  const auto it = active_by_owner_.try_emplace(*uid, 0).first;
  it->second += static_cast<size_t>(change);
  if (it->second == 0) active_by_owner_.erase(it);
}

void JobStore::settle(JobView& view) {
  note_notice(view.job.id(), !view.job.hidden() && core::notice_due(view.job));
  if (!load_ || !view.job.can_unload()) return;
  count_active(view.job, -1);
  UnloadedJob entry = entry_of(core::summary_of(view.job));
  entry.version = view.version;
  entry.owner_version = view.owner_version;
  unloaded_.emplace(view.job.id(), std::move(entry));
  recent_weight_ += weight(view.job);
  used_now(view);
}

void JobStore::erase(JobView& view) {
  count_active(view.job, -1);
  names_.erase(place_of(view.job));
  owned_.erase(view.job.id());
  held_.erase(view.job.id());
  notices_.erase(view.job.id());
  jobs_.erase(view.job.id());
}

const JobView* JobStore::find(JobId id) const {
  auto it = jobs_.find(id);
  auto entry = unloaded_.find(id);
  if (entry == unloaded_.end()) return it == jobs_.end() ? nullptr : it->second.get();
  if (it == jobs_.end()) {
    auto job = load_(id);
    if (!job) {
      // not_found: its removal is on disk and will soon reach the read model.
      if (job.error().code != Errc::not_found) unreadable_[id] = job.error().message;
      return nullptr;
    }
    unreadable_.erase(id);
    auto view = view_of(std::move(*job), entry->second);
    recent_weight_ += weight(view->job);
    it = jobs_.emplace(id, std::move(view)).first;
  } else {
    recent_.erase(it->second->used);
  }
  used_now(*it->second);
  return it->second.get();
}

// Drops the least recently used unloaded jobs from memory.
void JobStore::used_now(JobView& view) const {
  view.used = ++uses_;
  recent_.emplace(uses_, view.job.id());
  while (recent_.size() > kRecentMin &&
         (recent_.size() > recent_max_ || recent_weight_ > kRecentWeightMax)) {
    auto oldest = recent_.begin();
    auto it = jobs_.find(oldest->second);
    MUSTER_CHECK(it != jobs_.end() && it->second.get() != &view, oldest->second);
    recent_weight_ -= weight(it->second->job);
    jobs_.erase(it);
    recent_.erase(oldest);
  }
}

const core::Job* JobStore::brief(JobId id) const {
  if (!load_brief_ || !unloaded_.contains(id) || jobs_.contains(id)) return nullptr;
  if (brief_ && brief_->id() == id) return &*brief_;
  brief_.reset();
  auto job = load_brief_(id);
  if (!job) return nullptr;
  brief_ = std::move(*job);
  if (auto damage = unreadable_.find(id); damage != unreadable_.end()) {
    core::JobState state = brief_->state();
    state.conditions.push_back(damaged_condition(state.last_record_ms, damage->second));
    brief_ = core::Job(id, brief_->object_ptr(), std::move(state));
  }
  return &*brief_;
}

const UnloadedJob* JobStore::unloaded(JobId id) const {
  auto it = unloaded_.find(id);
  return it == unloaded_.end() ? nullptr : &it->second;
}

const JobView* JobStore::in_memory(JobId id) const {
  auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second.get();
}

uint64_t JobStore::owner_version(JobId id) const {
  if (const UnloadedJob* entry = unloaded(id)) return entry->owner_version;
  const JobView* view = in_memory(id);
  return view ? view->owner_version : 0;
}

void JobStore::each_active(const std::function<void(const core::Job&)>& f) const {
  for (const auto& [id, view] : jobs_)
    if (!unloaded_.contains(id)) f(view->job);
}

const core::Job* JobStore::next_active(JobId after) const {
  for (auto it = jobs_.upper_bound(after); it != jobs_.end(); ++it)
    if (!unloaded_.contains(it->first)) return &it->second->job;
  return nullptr;
}

std::pair<size_t, size_t> JobStore::unloaded_counts() const {
  size_t complete = 0;
  for (const auto& [id, job] : unloaded_) complete += job.complete;
  return {complete, unloaded_.size() - complete};
}

std::optional<std::string> JobStore::damage(Kind kind, std::string_view ns,
                                            std::string_view name) const {
  for (const auto& [id, why] : unreadable_) {
    auto is_it = [&, id = id](const Place& job) {
      const std::string& its = std::get<1>(job);
      if (std::get<JobId>(job) != id || std::get<0>(job) != ns) return false;
      return kind == Kind::job ? its == name : name.starts_with(its);
    };
    if (std::any_of(names_.begin(), names_.end(), is_it)) return why;
  }
  return std::nullopt;
}

}  // namespace muster::api
