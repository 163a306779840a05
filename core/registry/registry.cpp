#include "core/registry/registry.hpp"

#include "core/spec/fields/after.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <iterator>

namespace muster::core::registry {
namespace {

DependencyEnd end_of(bool complete) {
  return complete ? DependencyEnd::succeeded : DependencyEnd::failed;
}

std::vector<JobId> jobs_of(const std::vector<Dependency>& dependencies) {
  std::vector<JobId> ids;
  for (const Dependency& one : dependencies) ids.push_back(one.job);
  return ids;
}

Entry entry_of(const JobMeta& meta, Place place) {
  Entry entry{meta.ns, meta.name, meta.uid, place};
  entry.owner_uid = owner_uid(meta.annotations);
  return entry;
}

Error no_such_job(const JobMeta& meta, const std::string& name) {
  const std::string key(kAfterKey);
  Violations wrong;
  wrong.invalid("metadata.annotations[" + key + "]", meta.annotations.at(key),
                "there is no job `" + name + "` in namespace `" + meta.ns + "`");
  return {Errc::invalid, "", wrong.take()};
}

// Whether a new job may wait for this one; absent: it depends on its owner, who must be read first.
// For a user's job, only the user's own exist: it would otherwise tell whether another user's job
// does and how it ended, and keep it from being forgotten.
std::optional<bool> may_await(const JobMeta& meta, const Entry& entry) {
  if (!is_users(meta.annotations)) return true;
  if (!entry.owner_known) return std::nullopt;
  return entry.owner_uid == owner_uid(meta.annotations);
}

}  // namespace

void Registry::adopt(const Job& job, const Now& now) {
  const JobState& state = job.state();
  const bool over = state.open.empty() && (job.finished() || state.orphaned) &&
                    (!state.deleted_at || state.orphaned);
  Entry entry = entry_of(job.object().meta, over ? Place::unloaded : Place::running);
  entry.clock = {now.wall_ms, now.elapsed_ms, state.last_record_ms};
  entry.awaits = jobs_of(state.dependencies);
  if (job.finished()) entry.end = end_of(job.condition(ConditionType::complete) != nullptr);
  if (over) {
    const JobSummary summary = summary_of(job);
    keep_finished(job.id(), entry, summary.finished_ms);
    set_wake(job.id(), entry, summary.wake_ms, now.elapsed_ms);
  }
  add(job.id(), std::move(entry), !job.hidden());
}

void Registry::adopt(JobSummary job, const Now& now) {
  Entry entry{std::move(job.ns), std::move(job.name), std::move(job.uid), Place::unloaded};
  entry.clock = {now.wall_ms, now.elapsed_ms, job.finished_ms};
  entry.end = end_of(job.complete);
  entry.owner_known = false;
  keep_finished(job.id, entry, job.finished_ms);
  set_wake(job.id, entry, job.wake_ms, now.elapsed_ms);
  add(job.id, std::move(entry));
}

void Registry::adopt_damaged(JobId id, const JobObjectPtr& object, const std::string& why) {
  unrecovered_.insert(id);
  if (!object) return;
  add(id, entry_of(object->meta, Place::quarantined));
  quarantine(id, why);
}

Effects Registry::settle() {
  Effects effects;
  for (const auto& [of, dependents] : dependents_) {
    const Entry* entry = job(of);
    if (entry ? entry->end.has_value() : !unrecovered_.contains(of)) tell_end(of, effects);
  }
  delete_excess(effects);
  return effects;
}

Admission Registry::admit(const JobObjectPtr& object, bool holder_asked, const Now& now) {
  const JobMeta& meta = object->meta;
  if (const JobId named = holder(meta.ns, meta.name)) {
    // A client may know more than we do: the job may be gone, with its actor's message about that
    // still in flight. A job without an actor has no such message in flight.
    const Place place = jobs_.at(named).place;
    if (!holder_asked && (place == Place::running || place == Place::leaving))
      return AskHolder{named};
    return Error{Errc::exists, "jobs.batch \"" + meta.name + "\" already exists", {}};
  }
  std::vector<Dependency> dependencies;
  for (After& after : after_of(meta.annotations)) {
    const JobId named = holder(meta.ns, after.job);
    const std::optional<bool> may = named ? may_await(meta, jobs_.at(named)) : false;
    if (!may) return ReadOwner{named};
    if (!*may) return no_such_job(meta, after.job);
    dependencies.push_back({named, std::move(after)});
  }
  Admitted admitted{next_id_++, {now.wall_ms, object, std::move(dependencies)}, {}};
  Entry entry = entry_of(meta, Place::creating);
  entry.clock = {now.wall_ms, now.elapsed_ms, now.wall_ms};
  entry.awaits = jobs_of(admitted.record.after);
  add(admitted.id, std::move(entry));
  for (const Dependency& one : admitted.record.after) {
    const Entry& awaited = jobs_.at(one.job);
    if (awaited.end)
      tell_end(one.job, admitted.effects);
    else if (awaited.place == Place::running)
      admitted.effects.push_back(TellDependents{one.job, true});
  }
  return admitted;
}

void Registry::set_owner(JobId id, std::optional<uint32_t> uid) {
  Entry& entry = jobs_.at(id);
  entry.owner_known = true;
  entry.owner_uid = uid;
}

Result<JobId> Registry::find(const std::string& ns, const std::string& name,
                             const std::string& uid) const {
  const JobId named = holder(ns, name);
  if (!named) return Error{Errc::not_found, "jobs.batch \"" + name + "\" not found", {}};
  const Entry& entry = jobs_.at(named);
  if (uid.empty() || uid == entry.uid) return named;
  return Error{Errc::conflict,
               "the UID in the precondition (" + uid + ") does not match the UID of the job (" +
                   entry.uid + ")",
               {}};
}

void Registry::set_running(JobId id) {
  Entry& entry = jobs_.at(id);
  entry.place = Place::running;
  forget_wake(id, entry);
}

void Registry::quarantine(JobId id, const std::string& why) {
  Entry& entry = jobs_.at(id);
  entry.place = Place::quarantined;
  entry.damage = "job " + entry.ns + "/" + entry.name + " is damaged: " + why;
  forget_wake(id, entry);
}

Effects Registry::over(JobId id, const JobOver& how, const Now& now) {
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return {};
  Entry& entry = it->second;
  Effects effects;
  if (how.complete) entry.end = end_of(*how.complete);
  if (how.complete || how.forgotten) tell_end(id, effects);
  if (entry.place == Place::running) {
    entry.place = Place::leaving;
    effects.push_back(StopActor{id});
  }
  set_wake(id, entry, how.wake_ms, now.elapsed_ms);
  if (!how.forgotten) {
    if (!entry.finished_ms) keep_finished(id, entry, now.wall_ms);
    delete_excess(effects);
    return effects;
  }
  if (entry.finished_ms) finished_.erase({*entry.finished_ms, id});
  free_name(id);
  const std::vector<JobId> awaited = std::move(entry.awaits);
  jobs_.erase(it);
  for (JobId of : awaited)
    for (const Effect& effect : dependent_knows(id, of)) effects.push_back(effect);
  return effects;
}

void Registry::free_name(JobId id) {
  const Entry* entry = job(id);
  if (entry && holder(entry->ns, entry->name) == id) names_.erase({entry->ns, entry->name});
}

void Registry::actor_left(JobId id) {
  if (auto it = jobs_.find(id); it != jobs_.end()) it->second.place = Place::unloaded;
}

Effects Registry::dependent_knows(JobId dependent, JobId of) {
  auto waiting = dependents_.find(of);
  if (waiting == dependents_.end() || waiting->second.erase(dependent) == 0 ||
      !waiting->second.empty())
    return {};
  dependents_.erase(waiting);
  return job(of) ? Effects{TellDependents{of, false}} : Effects{};
}

std::vector<JobId> Registry::take_due(Millis elapsed_ms) {
  std::vector<JobId> due;
  while (!wakes_.empty() && wakes_.begin()->first <= elapsed_ms) {
    due.push_back(wakes_.begin()->second);
    jobs_.at(due.back()).wake_at.reset();
    wakes_.erase(wakes_.begin());
  }
  return due;
}

std::vector<PodId> Registry::ends_to_keep(const std::map<JobId, PodsReported>& reported) const {
  std::vector<PodId> keep;
  for (const auto& [id, part] : reported)
    if (unrecovered_.contains(id))
      for (const auto& end : part.ends) keep.push_back({id, end.pod.index, end.pod.attempt});
  return keep;
}

std::vector<PodId> Registry::strangers(const std::map<JobId, std::set<PodKey>>& known) const {
  std::vector<PodId> strangers;
  for (const auto& [id, pods] : known) {
    const Entry* entry = job(id);
    if ((entry && entry->place == Place::running) || unrecovered_.contains(id)) continue;
    for (PodKey pod : pods) strangers.push_back({id, pod.index, pod.attempt});
  }
  return strangers;
}

const Entry* Registry::job(JobId id) const {
  auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

JobId Registry::holder(const std::string& ns, const std::string& name) const {
  auto named = names_.find({ns, name});
  return named == names_.end() ? 0 : named->second;
}

void Registry::add(JobId id, Entry entry, bool named) {
  if (named) names_[{entry.ns, entry.name}] = id;
  for (JobId of : entry.awaits) dependents_[of].insert(id);
  jobs_.emplace(id, std::move(entry));
}

void Registry::keep_finished(JobId id, Entry& entry, Millis finished_ms) {
  entry.finished_ms = finished_ms;
  finished_.insert({finished_ms, id});
}

void Registry::forget_wake(JobId id, Entry& entry) {
  if (auto at = std::exchange(entry.wake_at, std::nullopt)) wakes_.erase({*at, id});
}

// `wake_ms`: when to load it again, in its own time.
void Registry::set_wake(JobId id, Entry& entry, std::optional<Millis> wake_ms, Millis elapsed_ms) {
  forget_wake(id, entry);
  if (!wake_ms) return;
  entry.wake_at = elapsed_ms + std::max<Millis>(0, *wake_ms - entry.clock.now(elapsed_ms));
  wakes_.insert({*entry.wake_at, id});
}

void Registry::tell_end(JobId of, Effects& out) const {
  auto waiting = dependents_.find(of);
  if (waiting == dependents_.end()) return;
  const Entry* entry = job(of);
  const auto how = entry ? entry->end.value_or(DependencyEnd::deleted) : DependencyEnd::deleted;
  for (JobId dependent : waiting->second) out.push_back(TellEnd{dependent, of, how});
}

void Registry::delete_excess(Effects& out) {
  for (; finished_.size() > finished_max_; finished_.erase(finished_.begin()))
    out.push_back(DeleteFinished{finished_.begin()->second});
}

}  // namespace muster::core::registry
