// How the View applies committed batches and reports of node health.
#include "api/view/model/view.hpp"
#include "base/check.hpp"
#include "base/last_words.hpp"
#include "core/job/fold/text.hpp"

#include <algorithm>

namespace muster::api {
namespace {

// Whether the job may not be shown any more after it.
bool hides(const core::Record& record) {
  return std::holds_alternative<core::JobDeleted>(record) ||
         std::holds_alternative<core::JobForgotten>(record);
}

// The pod whose labels, annotations or conditions the record sets.
const PodKey* written_pod(const core::Record& record) {
  if (const auto* meta = std::get_if<core::PodMetaSet>(&record)) return &meta->pod;
  if (const auto* condition = std::get_if<core::PodConditionSet>(&record)) return &condition->pod;
  return nullptr;
}

// The job without anything but its object.
std::shared_ptr<const core::Job> stub_of(JobView& view) {
  if (!view.stub || view.stub->object_ptr() != view.job.object_ptr())
    view.stub = std::make_shared<core::Job>(view.job.id(), view.job.object_ptr());
  return view.stub;
}

// Whether the two look the same to a client.
bool same_shown(core::NodeInfo a, const core::NodeInfo& b) {
  a.heartbeat_ms = b.heartbeat_ms;
  return a == b;
}

}  // namespace

void View::add(core::Job job) {
  if (!job.state().forgotten) jobs_.add(std::move(job), 0);  // start_at() follows
}

void View::add_damaged(JobId id, core::JobObjectPtr object, const std::string& why, Millis at_ms) {
  jobs_.quarantine(id);
  if (!object) return;
  core::JobState state;
  state.generation = object->meta.generation;
  state.parallelism = object->spec.parallelism.value_or(1);
  state.completions = object->spec.completions;
  state.admitted_ms = object->meta.created_ms;
  state.conditions.push_back(damaged_condition(at_ms, why));
  add(core::Job(id, std::move(object), std::move(state)));
}

void View::start_at(uint64_t commit, std::vector<core::NodeInfo> nodes) {
  commit_ = commit;
  // The next commit is that of the coordinator's start and changes no object, so this is above
  // every version that was given out before.
  version_ = started_ = first_version(commit + 1);
  jobs_.start_at(version_);
  for (Changes& changes : changes_) changes.start_at(version_);
  for (core::NodeInfo& node : nodes) {
    if (node.deleted) {
      node_names_.erase(node.name);  // nodes are in id order, so a newer one of this name follows
      nodes_[node.id] = std::move(node);
      continue;
    }
    NodeView& named = node_names_[node.name];
    if (named.key == kNoNode) named.key = node.id;
    named.id = std::max(named.id, node.id);
    named.version = version_;
    nodes_[node.id] = std::move(node);
  }
  for (auto& [name, named] : node_names_)
    named.past = std::make_shared<PastNode>(nodes_.at(named.id), named.key);
}

namespace {

// A namespace, which has objects of its own, is never deleted with an owner.
bool has_owners(const KeptView& view) {
  return has_own_owners(view.facts.owners) && view.kept->kind != core::KeptKind::name_space;
}

}  // namespace

void View::note_deletion(const KeptView& view) {
  if (view.kept->kind != core::KeptKind::name_space) {
    if (view.facts.terminating) leaving_.insert(view.kept->id);
  } else if (view.facts.terminating) {
    terminating_.insert(view.kept->name);
  }
}

void View::add_kept(core::Kept kept) {
  auto view = std::make_shared<KeptView>();
  view->facts = kept_facts(kept);
  view->version = kept_version(kept.version, kept.id);
  view->kept = std::make_shared<const core::Kept>(std::move(kept));
  const core::Kept& k = *view->kept;
  note_deletion(*view);
  if (has_owners(*view)) owned_.insert(k.id);
  kept_by_id_[k.id] = view;
  kept_[static_cast<size_t>(k.kind)][{k.ns, k.name}] = std::move(view);
}

void View::merge(const core::KeptChange& change) {
  const core::Kept& kept = *change.now;
  KeptMap& map = kept_[static_cast<size_t>(kept.kind)];
  auto had = kept_by_id_.find(kept.id);
  const bool added = had == kept_by_id_.end();
  version_ = std::max(version_, kept_version(commit_, kept.id) - 1);
  Change made{.key = {kind_of(kept.kind), 0, kept.id, {}}};
  size_t bytes = 0;  // of the former object
  if (!added) {
    made.before = std::make_shared<PastKept>(had->second);
    bytes = sizeof(KeptView) + 2 * had->second->kept->json.size();
  }
  if (change.removed) {
    if (added) return;
    if (kept.kind == core::KeptKind::name_space) terminating_.erase(kept.name);
    owned_.erase(kept.id);
    leaving_.erase(kept.id);
    kept_by_id_.erase(had);
    map.erase({kept.ns, kept.name});
    made.type = Change::Type::removed;
    push(std::move(made), bytes);
    return;
  }
  auto view = std::make_shared<KeptView>();
  view->kept = change.now;
  view->facts = kept_facts(kept);
  if (added) made.type = Change::Type::added;
  made.now = std::make_shared<PastKept>(view);
  view->version = push(std::move(made), bytes);
  note_deletion(*view);
  if (has_owners(*view))
    owned_.insert(kept.id);
  else
    owned_.erase(kept.id);
  map[{kept.ns, kept.name}] = view;
  kept_by_id_[kept.id] = std::move(view);
}

void View::commit(const core::Committed& committed) {
  MUSTER_CHECK(committed.commit > commit_, committed.commit, commit_);
  commit_ = committed.commit;
  version_ = std::max(version_, first_version(commit_));
  ++commits_;
  jobs_.drop_brief();
  for (const auto& batch : committed.jobs) {
    JobView* view = jobs_.activate(*batch);
    for (const core::Record& record : batch->records) {
      if (const auto* admitted = std::get_if<core::JobAdmitted>(&record)) {
        MUSTER_CHECK(view == nullptr && admitted->object != nullptr, batch->job);
        const uint64_t version =
            push({.key = {Kind::job, batch->job, 0, {}}, .type = Change::Type::added});
        view = &jobs_.add(core::Job(batch->job, admitted->object), version);
      }
      MUSTER_CHECK(view != nullptr, batch->job, core::record_name(record));
      apply(*view, record);
      if (!view->job.state().forgotten) continue;
      jobs_.erase(*view);
      view = nullptr;
    }
    if (view) {
      take_state(*view);
      take_pods(*view);
      jobs_.settle(*view);
    }
    written_.clear();
  }
  for (const core::NodeInfo& node : committed.nodes) merge(node, false);
  std::vector<const core::KeptChange*> kept;
  for (const core::KeptChange& change : committed.kept) kept.push_back(&change);
  std::stable_sort(kept.begin(), kept.end(), [](const auto* a, const auto* b) {
    return kept_version(0, a->now->id) < kept_version(0, b->now->id);
  });
  for (const core::KeptChange* change : kept) merge(*change);
  if (listener_) listener_();
}

void View::health(const core::NodeHealth& health) {
  auto known = nodes_.find(health.id);
  if (known == nodes_.end()) return;
  core::NodeInfo node = known->second;
  core::set_health(node, health);
  merge(std::move(node), true);
  if (listener_) listener_();
}

void View::apply(JobView& view, const core::Record& record) {
  const WorksOn works(view.job.id());
  const bool was_hidden = view.job.hidden();
  const Key key{Kind::job, view.job.id(), 0, {}};
  if (!was_hidden && !in_this_commit(view.version)) {
    if (!view.past) view.past = std::make_shared<PastJob>(view.trail.take(view.job));
  } else if (hides(record)) {
    take_state(view);  // the last one
  }
  core::Touched what;
  if (observer_) observer_->before(view.job, record);
  view.job.apply(record, &what);
  if (observer_) observer_->after(view.job, record);
  view.trail.note(what);
  if (const PodKey* pod = written_pod(record)) written_.insert(*pod);
  touched(view, std::move(what));
  const bool hidden = view.job.hidden();
  if (!hidden && !in_this_commit(view.version))
    view.version = push({.key = key, .before = view.past});
  if (std::holds_alternative<core::JobAdmitted>(record) ||
      std::holds_alternative<core::JobSpecChanged>(record))
    view.owner_version = view.version;
  if (std::holds_alternative<core::JobSpecChanged>(record) ||
      std::holds_alternative<core::JobDeleted>(record))
    jobs_.note_owners(view.job);
  if (hidden && !was_hidden)
    push({.key = key, .type = Change::Type::removed, .before = view.past},
         view.trail.take(view.job).bytes);
  if ((hidden && !was_hidden) || view.job.state().forgotten) hide(view);
}

// Completes the job's change in this commit, if there is one, with the job's state.
void View::take_state(JobView& view) {
  if (view.job.hidden() || !in_this_commit(view.version)) return;
  view.past = std::make_shared<PastJob>(view.trail.take(view.job));
  changes_[static_cast<size_t>(Kind::job)].set_now(view.version, {Kind::job, view.job.id(), 0, {}},
                                                   view.past, view.past->job.bytes);
}

// Likewise for the pods that clients have written to.
void View::take_pods(JobView& view) {
  for (const PodKey& key : written_) {
    const auto shown = view.pods.find(key);
    if (shown == view.pods.end() || !in_this_commit(shown->second)) continue;
    const core::Pod* pod = view.job.pod(key);
    if (!pod) continue;
    changes_[static_cast<size_t>(Kind::pod)].set_now(
        shown->second, {Kind::pod, view.job.id(), 0, key},
        std::make_shared<PastPod>(stub_of(view), *pod), sizeof *pod);
  }
}

// Removes the job's finished pods along with the job and, once the job is forgotten, all remaining
// pods.
void View::hide(JobView& view) {
  std::vector<core::Pod> leaving;
  for (const auto& [key, version] : view.pods) {
    const core::Pod* pod = view.job.pod(key);
    if (pod && (view.job.state().forgotten || !shows(view.job, *pod))) leaving.push_back(*pod);
  }
  std::sort(leaving.begin(), leaving.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  for (core::Pod& pod : leaving) remove_pod(view, std::move(pod));
}

void View::touched(JobView& view, core::Touched what) {
  for (PodKey key : what.pods) touch_pod(view, key);
  for (core::Pod& pod : what.removed) remove_pod(view, std::move(pod));
  // After a large batch, the fold has only the newest of its events.
  const size_t skip =
      what.events.size() > core::kEventsMax ? what.events.size() - core::kEventsMax : 0;
  for (size_t i = skip; i < what.events.size(); ++i) {
    const uint64_t nr = what.events[i].nr;
    view.events[nr] =
        push({.key = {Kind::event, view.job.id(), nr, {}}, .type = Change::Type::added});
  }
  // Old events leave the fold without a record, so their versions are cleaned up from time to time.
  if (view.events.size() > 2 * view.job.state().events.size() + 64) {
    std::unordered_map<uint64_t, uint64_t> kept;
    for (const core::JobEvent& event : view.job.state().events) {
      auto it = view.events.find(event.nr);
      if (it != view.events.end()) kept.insert(*it);
    }
    view.events = std::move(kept);
  }
}

void View::touch_pod(JobView& view, PodKey key) {
  const core::Pod* pod = view.job.pod(key);
  if (!pod) return;  // removed by the same record, so it is in Touched::removed
  if (!shows(view.job, *pod)) return remove_pod(view, *pod);
  const auto [it, added] = view.pods.try_emplace(key, 0);
  if (!added && in_this_commit(it->second)) return;  // the ring already has its change
  it->second = push({.key = {Kind::pod, view.job.id(), 0, key},
                     .type = added ? Change::Type::added : Change::Type::touched});
}

void View::remove_pod(JobView& view, core::Pod pod) {
  if (view.pods.erase(pod.key) == 0) return;  // already removed
  const Key key{Kind::pod, view.job.id(), 0, pod.key};
  push({.key = key,
        .type = Change::Type::removed,
        .before = std::make_shared<PastPod>(stub_of(view), std::move(pod))},
       sizeof(PastPod));
}

void View::merge(core::NodeInfo node, bool passing) {
  MUSTER_CHECK(node.id != kNoNode, node.name);
  auto it = nodes_.find(node.id);
  if (it != nodes_.end()) {
    // A row has no transient state, so keep what is known.
    if (!passing && node.health == core::NodeInfo::Health::unknown)
      core::set_health(node, core::health_of(it->second));
    const bool same = same_shown(it->second, node);
    it->second = node;
    if (same) return;
  } else {
    nodes_.emplace(node.id, node);
  }
  if (node.deleted) {
    auto shown = node_names_.find(node.name);
    if (shown == node_names_.end() || shown->second.id != node.id) return;
    const NodeView last = std::move(shown->second);
    node_names_.erase(shown);
    push(
        {.key = {Kind::node, 0, last.key, {}}, .type = Change::Type::removed, .before = last.past});
    return;
  }
  auto [named, added] = node_names_.try_emplace(node.name);
  NodeView& view = named->second;
  if (node.id < view.id) return;  // an earlier incarnation is not shown
  if (added) view.key = node.id;
  Change change{.key = {Kind::node, 0, view.key, {}}, .before = view.past};
  if (added) change.type = Change::Type::added;
  view.id = node.id;
  view.past = change.now = std::make_shared<PastNode>(node, view.key);
  view.version = push(std::move(change), sizeof(PastNode));
}

uint64_t View::next_version() {
  version_ = std::min(version_ + 1, last_version(commit_of(version_)));
  return version_;
}

uint64_t View::push(Change change, size_t bytes) {
  change.version = next_version();
  change.bytes = static_cast<uint32_t>(bytes);
  const uint64_t version = change.version;
  const Kind kind = change.key.kind;
  changes_[static_cast<size_t>(kind)].push(std::move(change));
  return version;
}

}  // namespace muster::api
