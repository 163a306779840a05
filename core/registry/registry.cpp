#include "core/registry/registry.hpp"

#include "core/spec/fields/after.hpp"
#include "core/spec/fields/annotations.hpp"
#include "core/spec/fields/owner.hpp"

#include <algorithm>
#include <iterator>

namespace muster::core::registry {
namespace {

DependencyEnd end_of(bool complete) {
  return complete ? DependencyEnd::succeeded : DependencyEnd::failed;
}

void set_facts(Entry& entry, const JobObject& object) {
  entry.owner_uid = owner_uid(object.meta.annotations);
  entry.indexed = object.spec.indexed();
  entry.completions = object.spec.completions;
}

Entry entry_of(const JobObject& object, Place place) {
  Entry entry{object.meta.ns, object.meta.name, object.meta.uid, place};
  set_facts(entry, object);
  return entry;
}

Error refuse(const JobMeta& meta, std::string why) {
  const std::string key(kAfterKey);
  Violations wrong;
  wrong.invalid("metadata.annotations[" + key + "]", meta.annotations.at(key), std::move(why));
  return {Errc::invalid, "", wrong.take()};
}

Error no_such_job(const JobMeta& meta, const std::string& name) {
  return refuse(meta, "there is no job `" + name + "` in namespace `" + meta.ns + "`");
}

bool follows(const After& after) {
  return after.needed == Needed::each;
}

// Whether the answer depends on what must be read first.
bool must_read(const JobMeta& meta, const After& after, const Entry& entry) {
  return !entry.read && (is_users(meta.annotations) || follows(after));
}

// Whether a new job may wait for this one. For a user's job, only the user's own exist: it would
// otherwise tell whether another user's job does and how it ended, and keep it from being
// forgotten.
bool may_await(const JobMeta& meta, const Entry& entry) {
  if (!is_users(meta.annotations)) return true;
  return entry.owner_uid == owner_uid(meta.annotations);
}

// Why no index of this job could ever follow its own in the other; empty: each can.
std::string cannot_follow(const JobObject& object, const Entry& other) {
  if (!other.indexed)
    return "job `" + other.name + "` has no indexes: its completion mode is NonIndexed";
  if (!other.completions) return "";
  int64_t highest = object.spec.completions.value_or(0) - 1;
  if (const auto own = read_annotations(object.meta.annotations).indexes; own && !own->empty())
    highest = own->intervals().rbegin()->second;
  if (highest < *other.completions) return "";
  return "job `" + other.name + "` has no index " + std::to_string(highest) +
         ": its spec.completions is " + std::to_string(*other.completions);
}

}  // namespace

void Registry::adopt(const Job& job, const Now& now) {
  const JobState& state = job.state();
  const bool over = state.open.empty() && (job.finished() || state.orphaned) &&
                    (!state.deleted_at || state.orphaned);
  Entry entry = entry_of(job.object(), over ? Place::unloaded : Place::running);
  entry.clock = {now.wall_ms, now.elapsed_ms, state.last_record_ms};
  entry.awaits = state.dependencies;
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
  entry.read = false;
  keep_finished(job.id, entry, job.finished_ms);
  set_wake(job.id, entry, job.wake_ms, now.elapsed_ms);
  add(job.id, std::move(entry));
}

void Registry::adopt_damaged(JobId id, const JobObjectPtr& object, const std::string& why) {
  unrecovered_.insert(id);
  if (!object) return;
  add(id, entry_of(*object, Place::quarantined));
  quarantine(id, why);
}

Effects Registry::settle() {
  Effects effects;
  for (const auto& [of, dependents] : dependents_) {
    const Entry* entry = job(of);
    if (entry ? !entry->end : unrecovered_.contains(of)) continue;
    tell_end(of, nullptr, !entry, effects);
    const Dependents all = dependents_of(of);
    if (entry && all.following) effects.push_back(TellDependents{of, all});
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
    if (!named) return no_such_job(meta, after.job);
    const Entry& other = jobs_.at(named);
    if (must_read(meta, after, other)) return ReadJob{named};
    if (!may_await(meta, other)) return no_such_job(meta, after.job);
    if (follows(after))
      if (std::string why = cannot_follow(*object, other); !why.empty()) return refuse(meta, why);
    dependencies.push_back({named, std::move(after)});
  }
  Admitted admitted{next_id_++, {now.wall_ms, object, std::move(dependencies)}, {}};
  Entry entry = entry_of(*object, Place::creating);
  entry.clock = {now.wall_ms, now.elapsed_ms, now.wall_ms};
  entry.awaits = admitted.record.after;
  add(admitted.id, std::move(entry));
  for (const Dependency& one : admitted.record.after) {
    const Entry& awaited = jobs_.at(one.job);
    if (awaited.end) tell_end(one.job, nullptr, false, admitted.effects);
    // What it follows is asked for its progress, even after its end.
    if (awaited.end ? follows(one.after) : awaited.place == Place::running)
      admitted.effects.push_back(TellDependents{one.job, dependents_of(one.job)});
  }
  return admitted;
}

void Registry::set_read(JobId id, const JobObject* object) {
  Entry& entry = jobs_.at(id);
  entry.read = true;
  entry.owner_uid.reset();
  if (object) set_facts(entry, *object);
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

void Registry::set_completions(JobId id, std::optional<int32_t> completions) {
  if (auto it = jobs_.find(id); it != jobs_.end()) it->second.completions = completions;
}

Effects Registry::advanced(JobId id, const ProgressPtr& progress) const {
  Effects effects;
  auto waiting = dependents_.find(id);
  if (waiting == dependents_.end()) return effects;
  for (const auto& [dependent, following] : waiting->second) {
    if (!following) continue;
    const Place place = jobs_.at(dependent).place;
    if (place == Place::creating || place == Place::running)
      effects.push_back(TellProgress{dependent, id, progress});
  }
  return effects;
}

Effects Registry::over(JobId id, const JobOver& how, const ProgressPtr& progress, const Now& now) {
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return {};
  Entry& entry = it->second;
  Effects effects;
  if (how.complete) entry.end = end_of(*how.complete);
  if (how.complete || how.forgotten) tell_end(id, progress, how.forgotten, effects);
  if (entry.place == Place::running) {
    entry.place = Place::leaving;
    effects.push_back(StopActor{id});
  }
  set_wake(id, entry, how.wake_ms, now.elapsed_ms);
  if (!how.forgotten) {
    if (!entry.finished_ms) keep_finished(id, entry, now.wall_ms);
    if (how.complete) release(id, std::exchange(entry.awaits, {}), effects);
    delete_excess(effects);
    return effects;
  }
  if (entry.finished_ms) finished_.erase({*entry.finished_ms, id});
  free_name(id);
  std::vector<Dependency> awaited = std::move(entry.awaits);
  jobs_.erase(it);
  release(id, std::move(awaited), effects);
  return effects;
}

void Registry::release(JobId id, std::vector<Dependency> awaited, Effects& out) {
  for (const Dependency& one : awaited)
    for (const Effect& effect : dependent_knows(id, one.job)) out.push_back(effect);
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
  return job(of) ? Effects{TellDependents{of, {}}} : Effects{};
}

Dependents Registry::dependents_of(JobId id) const {
  auto waiting = dependents_.find(id);
  if (waiting == dependents_.end()) return {};
  return {true, std::ranges::any_of(waiting->second, [](const auto& one) { return one.second; })};
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
  for (const Dependency& one : entry.awaits) dependents_[one.job][id] = follows(one.after);
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

void Registry::tell_end(JobId of, const ProgressPtr& progress, bool gone, Effects& out) const {
  auto waiting = dependents_.find(of);
  if (waiting == dependents_.end()) return;
  const Entry* entry = job(of);
  const auto how = entry ? entry->end.value_or(DependencyEnd::deleted) : DependencyEnd::deleted;
  for (const auto& [dependent, following] : waiting->second) {
    if (!following)
      out.push_back(TellEnd{dependent, of, how});
    else if (progress || gone)
      out.push_back(TellEnd{dependent, of, how, progress});
  }
}

void Registry::delete_excess(Effects& out) {
  for (; finished_.size() > finished_max_; finished_.erase(finished_.begin()))
    out.push_back(DeleteFinished{finished_.begin()->second});
}

}  // namespace muster::core::registry
