// How the View applies committed batches and reports of node health.
#include "api/view/model/view.hpp"
#include "base/check.hpp"
#include "base/last_words.hpp"
#include "core/job/fold/text.hpp"

#include <algorithm>

namespace muster::api {
namespace {

// The job's last state for a watch's DELETED event, without anything that can be large.
std::shared_ptr<const core::Job> slim(const core::Job& job) {
  const core::JobState& s = job.state();
  core::JobState t = core::brief(s);
  t.external_status.clear();
  t.own_conditions.clear();
  t.deleted_at = s.deleted_at;
  t.background_deleted = s.background_deleted;
  t.forgotten = s.forgotten;
  return std::make_shared<core::Job>(job.id(), job.object_ptr(), std::move(t));
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
  changes_.start_at(version_);
  for (core::NodeInfo& node : nodes) {
    if (node.deleted) {
      node_names_.erase(node.name);  // nodes are in id order, so a newer one of this name follows
      nodes_[node.id] = std::move(node);
      continue;
    }
    NodeView& named = node_names_[node.name];
    named.id = std::max(named.id, node.id);
    named.version = version_;
    nodes_[node.id] = std::move(node);
  }
}

namespace {

// The part of a removed object that is remembered for watches: a config map loses its data, since
// many removals are remembered.
std::shared_ptr<const KeptView> without_data(const std::shared_ptr<const KeptView>& view) {
  if (view->kept->kind != core::KeptKind::config_map) return view;
  auto bare = std::make_shared<KeptView>(*view);
  auto kept = std::make_shared<core::Kept>(*view->kept);
  kept->json = bare_json(*view->kept);
  bare->kept = std::move(kept);
  return bare;
}

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
  const Key key{kind_of(kept.kind), 0, kept.id, {}};
  if (change.removed) {
    if (added) return;
    Gone gone;
    gone.kept = without_data(had->second);
    if (kept.kind == core::KeptKind::name_space) terminating_.erase(kept.name);
    owned_.erase(kept.id);
    leaving_.erase(kept.id);
    kept_by_id_.erase(had);
    map.erase({kept.ns, kept.name});
    return push_removed(key, std::move(gone));
  }
  auto view = std::make_shared<KeptView>();
  view->kept = change.now;
  view->facts = kept_facts(kept);
  view->version = push(key, added ? Change::Type::added : Change::Type::touched);
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
        const uint64_t version = push({Kind::job, batch->job, 0, {}}, Change::Type::added);
        view = &jobs_.add(core::Job(batch->job, admitted->object), version);
      }
      MUSTER_CHECK(view != nullptr, batch->job, core::record_name(record));
      apply(*view, record);
      if (!view->job.state().forgotten) continue;
      jobs_.erase(*view);
      view = nullptr;
    }
    if (view) jobs_.settle(*view);
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
  core::Touched what;
  if (observer_) observer_->before(view.job, record);
  view.job.apply(record, &what);
  if (observer_) observer_->after(view.job, record);
  touched(view, std::move(what));
  const bool hidden = view.job.hidden();
  if (!hidden && !in_this_commit(view.version))
    view.version = push({Kind::job, view.job.id(), 0, {}}, Change::Type::touched);
  if (std::holds_alternative<core::JobAdmitted>(record) ||
      std::holds_alternative<core::JobSpecChanged>(record))
    view.owner_version = view.version;
  if (std::holds_alternative<core::JobSpecChanged>(record) ||
      std::holds_alternative<core::JobDeleted>(record))
    jobs_.note_owners(view.job);
  if (hidden && !was_hidden) {
    Gone gone;
    gone.job = slim(view.job);
    push_removed({Kind::job, view.job.id(), 0, {}}, std::move(gone));
  }
  if ((hidden && !was_hidden) || view.job.state().forgotten) hide(view);
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
    view.events[nr] = push({Kind::event, view.job.id(), nr, {}}, Change::Type::added);
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
  it->second =
      push({Kind::pod, view.job.id(), 0, key}, added ? Change::Type::added : Change::Type::touched);
}

void View::remove_pod(JobView& view, core::Pod pod) {
  if (view.pods.erase(pod.key) == 0) return;  // already removed
  if (!view.stub || view.stub->object_ptr() != view.job.object_ptr())
    view.stub = std::make_shared<core::Job>(view.job.id(), view.job.object_ptr());
  const Key key{Kind::pod, view.job.id(), 0, pod.key};
  Gone gone;
  gone.job = view.stub;
  gone.pod = std::move(pod);
  push_removed(key, std::move(gone));
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
    node_names_.erase(shown);
    Gone gone;
    gone.node = std::make_shared<const core::NodeInfo>(node);
    return push_removed({Kind::node, 0, node.id, {}}, std::move(gone));
  }
  auto [named, added] = node_names_.try_emplace(node.name);
  if (node.id < named->second.id) return;  // an earlier incarnation is not shown
  named->second = {node.id, push({Kind::node, 0, node.id, {}},
                                 added ? Change::Type::added : Change::Type::touched)};
}

uint64_t View::next_version() {
  version_ = std::min(version_ + 1, last_version(commit_of(version_)));
  return version_;
}

uint64_t View::push(Key key, Change::Type type) {
  const uint64_t version = next_version();
  changes_.push({.version = version, .key = key, .type = type});
  return version;
}

void View::push_removed(Key key, Gone gone) {
  changes_.push({.version = next_version(),
                 .key = key,
                 .type = Change::Type::removed,
                 .gone = std::make_shared<const Gone>(std::move(gone))});
}

}  // namespace muster::api
