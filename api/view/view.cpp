#include "api/view/view.hpp"

#include "api/view/event_text.hpp"
#include "base/check.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <charconv>

namespace muster::api {
namespace {

// The job as it was, without what can be long: for the DELETED of a watch.
std::shared_ptr<const core::Job> slim(const core::Job& job) {
  const core::JobState& s = job.state();
  core::JobState t = core::brief(s);
  t.external_status.clear();
  t.own_conditions.clear();
  t.deleted_ms = s.deleted_ms;
  t.background_deleted = s.background_deleted;
  t.forgotten = s.forgotten;
  return std::make_shared<core::Job>(job.id(), job.object_ptr(), std::move(t));
}

// Of unloaded jobs that stay in memory: so many pods and events of them.
constexpr uint64_t kRecentWeightMax = 200'000;
constexpr size_t kRecentMin = 4;  // the last lookups stay valid

uint64_t weight(const core::Job& job) {
  return 1 + job.state().finished.size() + job.state().events.size();
}

// Without its versions.
UnloadedJob entry_of(const core::JobSummary& job) {
  return {.uid = job.uid, .complete = job.complete, .named_pods = job.named_pods};
}

// A copy that begins with this commit.
std::unique_ptr<JobView> view_of(core::Job job, uint64_t commit) {
  auto view = std::make_unique<JobView>(std::move(job));
  view->version = view->before = view->loaded = commit;
  view->job.each_pod([&](const core::Pod& pod) {
    if (shows(view->job, pod)) view->pods[pod.key] = commit;
  });
  return view;
}

// Does what a client sees of these two differ?
bool same_shown(core::NodeInfo a, const core::NodeInfo& b) {
  a.heartbeat_ms = b.heartbeat_ms;
  return a == b;
}

}  // namespace

void View::load_unloaded(const core::JobSummary& job) {
  by_name_.emplace(job.ns, job.name, job.id);
  unloaded_.emplace(job.id, entry_of(job));
}

void View::load(core::Job job) {
  if (job.state().forgotten) return;
  auto view = view_of(std::move(job), 0);
  const core::Job& j = view->job;
  by_name_.emplace(j.object().meta.ns, j.object().meta.name, j.id());
  jobs_[j.id()] = std::move(view);
}

void View::load_damaged(JobId id, core::JobObjectPtr object, const std::string& why, Millis at_ms) {
  quarantined_.insert(id);
  if (!object) return;
  core::JobState state;
  state.generation = object->meta.generation;
  state.parallelism = object->spec.parallelism.value_or(1);
  state.completions = object->spec.completions.value_or(-1);
  state.admitted_ms = object->meta.created_ms;
  state.conditions.push_back({kDamaged, true, at_ms, "Unreadable", why});
  load(core::Job(id, std::move(object), std::move(state)));
}

void View::loaded(uint64_t commit, std::vector<core::NodeInfo> nodes) {
  commit_ = floor_ = commit;
  for (auto& [id, view] : jobs_) {
    view->version = view->before = view->loaded = commit;
    for (auto& [key, version] : view->pods) version = commit;
  }
  for (auto& [id, job] : unloaded_) job.version = commit;
  for (core::NodeInfo& node : nodes) {
    if (node.deleted) {
      node_names_.erase(node.name);  // by id: what has the name after it comes later
      nodes_[node.id] = std::move(node);
      continue;
    }
    NodeView& named = node_names_[node.name];
    named.id = std::max(named.id, node.id);
    named.version = commit;
    nodes_[node.id] = std::move(node);
  }
}

namespace {

Kind kind_of(core::KeptKind kind) {
  return kind == core::KeptKind::lease ? Kind::lease : Kind::event;
}

Shown shown_of(const KeptView& view) {
  return {.kind = kind_of(view.kept->kind), .kept = &view, .version = view.kept->version};
}

}  // namespace

void View::load_kept(core::Kept kept) {
  auto view = std::make_shared<KeptView>();
  view->facts = kept_facts(kept);
  // Nothing is known of the version before: so no other number stands for this one.
  view->before = kept.version == 0 ? 0 : kept.version - 1;
  view->kept = std::make_shared<const core::Kept>(std::move(kept));
  const core::Kept& k = *view->kept;
  kept_by_id_[k.id] = view;
  kept_[static_cast<size_t>(k.kind)][{k.ns, k.name}] = std::move(view);
}

void View::merge(const core::KeptChange& change) {
  const core::Kept& kept = *change.now;
  KeptMap& map = kept_[static_cast<size_t>(kept.kind)];
  auto had = kept_by_id_.find(kept.id);
  const bool added = had == kept_by_id_.end();
  if (change.removed) {
    if (added) return;
    auto gone = std::make_shared<Gone>();
    gone->kept = had->second;
    kept_by_id_.erase(had);
    map.erase({kept.ns, kept.name});
    return push({.nr = kept.id,
                 .kind = kind_of(kept.kind),
                 .type = Change::Type::removed,
                 .gone = std::move(gone)});
  }
  auto view = std::make_shared<KeptView>();
  view->kept = change.now;
  view->facts = kept_facts(kept);
  if (!added) view->before = had->second->kept->version;
  map[{kept.ns, kept.name}] = view;
  kept_by_id_[kept.id] = std::move(view);
  push({.nr = kept.id,
        .kind = kind_of(kept.kind),
        .type = added ? Change::Type::added : Change::Type::touched});
}

std::optional<Shown> View::kept(core::KeptKind kind, std::string_view ns,
                                std::string_view name) const {
  const KeptMap& map = kept_[static_cast<size_t>(kind)];
  auto it = map.find(std::tuple(ns, name));
  if (it == map.end()) return std::nullopt;
  return shown_of(*it->second);
}

void View::each_kept(core::KeptKind kind, std::string_view ns,
                     const std::function<void(const Shown&)>& f) const {
  const KeptMap& map = kept_[static_cast<size_t>(kind)];
  for (auto it = map.lower_bound(std::tuple(ns, std::string_view()));
       it != map.end() && (ns.empty() || std::get<0>(it->first) == ns); ++it)
    f(shown_of(*it->second));
}

void View::commit(const core::Committed& committed) {
  MUSTER_CHECK(committed.commit > commit_, committed.commit, commit_);
  commit_ = committed.commit;
  ++commits_;
  brief_.reset();
  for (const auto& batch : committed.jobs) {
    if (unloaded_.contains(batch->job)) awake(batch->job, *batch);
    auto it = jobs_.find(batch->job);
    for (const core::Record& record : batch->records) {
      if (const auto* admitted = std::get_if<core::JobAdmitted>(&record)) {
        MUSTER_CHECK(it == jobs_.end(), batch->job);
        MUSTER_CHECK(admitted->object != nullptr, batch->job);
        auto view = std::make_unique<JobView>(core::Job(batch->job, admitted->object));
        view->version = view->loaded = commit_;
        const core::JobMeta& meta = admitted->object->meta;
        by_name_.emplace(meta.ns, meta.name, batch->job);
        it = jobs_.emplace(batch->job, std::move(view)).first;
        push({.job = batch->job, .kind = Kind::job, .type = Change::Type::added});
      }
      MUSTER_CHECK(it != jobs_.end(), batch->job);
      apply(*it->second, record);
      if (it->second->job.state().forgotten) {
        const core::JobMeta& meta = it->second->job.object().meta;
        by_name_.erase({meta.ns, meta.name, batch->job});
        jobs_.erase(it);
        it = jobs_.end();
      }
    }
    if (it != jobs_.end() && it->second->job.can_unload()) rest(batch->job);
  }
  for (const core::NodeInfo& node : committed.nodes) merge(node, false);
  for (const core::KeptChange& change : committed.kept) merge(change);
  if (listener_) listener_();
}

void View::nodes(const std::vector<core::NodeInfo>& nodes) {
  for (const core::NodeInfo& node : nodes) merge(node, true);
  if (listener_) listener_();
}

void View::apply(JobView& view, const core::Record& record) {
  const bool was_hidden = view.job.hidden();
  core::Touched what;
  if (observer_) observer_->before(view.job, record);
  view.job.apply(record, &what);
  if (observer_) observer_->after(view.job, record);
  touched(view, what);
  const bool hidden = view.job.hidden();
  if (std::holds_alternative<core::JobAdmitted>(record) ||
      std::holds_alternative<core::JobSpecChanged>(record)) {
    const bool first = view.version != commit_;
    if (std::holds_alternative<core::JobSpecChanged>(record))
      view.before_owner = first ? view.version : commit_;
    view.owner_version = commit_;
  }
  if (!hidden && view.version != commit_) {
    view.before = view.version;
    view.version = commit_;
    push({.job = view.job.id(), .kind = Kind::job, .type = Change::Type::touched});
  }
  if (hidden && !was_hidden) {
    auto gone = std::make_shared<Gone>();
    gone->job = slim(view.job);
    push({.job = view.job.id(),
          .kind = Kind::job,
          .type = Change::Type::removed,
          .gone = std::move(gone)});
  }
  if ((hidden && !was_hidden) || view.job.state().forgotten) hide(view);
}

// The job is not shown any more: what it has finished goes with it, and at its very end all that is
// left.
void View::hide(JobView& view) {
  std::vector<core::Pod> leaving;
  for (const auto& [key, version] : view.pods) {
    const core::Pod* pod = view.job.pod(key);
    if (pod && (view.job.state().forgotten || !shows(view.job, *pod))) leaving.push_back(*pod);
  }
  std::sort(leaving.begin(), leaving.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  for (const core::Pod& pod : leaving) remove_pod(view, pod);
}

void View::touched(JobView& view, const core::Touched& what) {
  for (PodKey key : what.pods) touch_pod(view, key);
  for (const core::Pod& pod : what.removed) remove_pod(view, pod);
  // Of a large batch only the newest events are still there.
  const size_t skip =
      what.events.size() > core::kEventsMax ? what.events.size() - core::kEventsMax : 0;
  for (size_t i = skip; i < what.events.size(); ++i) {
    view.events[what.events[i].nr] = commit_;
    push({.job = view.job.id(),
          .nr = what.events[i].nr,
          .kind = Kind::event,
          .type = Change::Type::added});
  }
  // Old events leave the fold without a word; their versions follow now and then.
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
  if (!pod) return;  // removed by the same record: in Touched::removed
  auto it = view.pods.find(key);
  const bool added = it == view.pods.end();
  if (!shows(view.job, *pod)) {
    if (!added) remove_pod(view, core::Pod(*pod));
    return;
  }
  if (!added && it->second == commit_) return;  // its change of this commit is in the ring already
  view.pods[key] = commit_;
  push({.job = view.job.id(),
        .pod = key,
        .kind = Kind::pod,
        .type = added ? Change::Type::added : Change::Type::touched});
}

void View::remove_pod(JobView& view, const core::Pod& pod) {
  if (view.pods.erase(pod.key) == 0) return;  // not shown any more
  if (!view.stub || view.stub->object_ptr() != view.job.object_ptr())
    view.stub = std::make_shared<core::Job>(view.job.id(), view.job.object_ptr());
  auto gone = std::make_shared<Gone>();
  gone->job = view.stub;
  gone->pod = pod;
  push({.job = view.job.id(),
        .pod = pod.key,
        .kind = Kind::pod,
        .type = Change::Type::removed,
        .gone = std::move(gone)});
}

void View::merge(core::NodeInfo node, bool passing) {
  MUSTER_CHECK(node.id != kNoNode, node.name);
  auto it = nodes_.find(node.id);
  if (it != nodes_.end()) {
    if (!passing && node.health == core::NodeInfo::Health::unknown) {  // a row: what passes is kept
      node.health = it->second.health;
      node.draining = it->second.draining;
      node.trouble = it->second.trouble;
      node.heartbeat_ms = it->second.heartbeat_ms;
      node.changed_ms = it->second.changed_ms;
    }
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
    auto gone = std::make_shared<Gone>();
    gone->node = node;
    return push({.nr = node.id,
                 .kind = Kind::node,
                 .type = Change::Type::removed,
                 .gone = std::move(gone)});
  }
  auto [named, added] = node_names_.try_emplace(node.name);
  if (node.id < named->second.id) return;  // an earlier incarnation is not shown
  named->second = {node.id, commit_};
  push({.nr = node.id,
        .kind = Kind::node,
        .type = added ? Change::Type::added : Change::Type::touched,
        .passing = passing});
}

void View::push(Change change) {
  change.commit = commit_;
  of_kind_[static_cast<size_t>(change.kind)].push_back(ring_end());
  ring_.push_back(std::move(change));
  while (ring_.size() > ring_max_) {
    floor_ = ring_.front().commit;
    const auto kind = static_cast<size_t>(ring_.front().kind);
    of_kind_[kind].pop_front();
    begin_of_kind_[kind] = ring_first_ + 1;
    ring_.pop_front();
    ++ring_first_;
  }
}

std::optional<uint64_t> View::after(uint64_t version) const {
  if (version < floor_ || version > commit_) return std::nullopt;
  // Passing changes carry the number of the commit that they follow: they may be seen twice, never
  // missed.
  auto it = std::partition_point(ring_.begin(), ring_.end(), [&](const Change& c) {
    return c.commit < version || (c.commit == version && !c.passing);
  });
  return ring_first_ + static_cast<uint64_t>(it - ring_.begin());
}

const JobView* View::job_view(JobId id) const {
  auto it = jobs_.find(id);
  auto unloaded = unloaded_.find(id);
  if (unloaded == unloaded_.end()) return it == jobs_.end() ? nullptr : it->second.get();
  if (it == jobs_.end()) {
    auto job = load_job_(id);
    if (!job) {
      // Its end is on disk, and about to be shown; or it can't be read.
      if (job.error().code != Errc::not_found) unreadable_[id] = job.error().message;
      return nullptr;
    }
    unreadable_.erase(id);
    auto view = view_of(std::move(*job), unloaded->second.version);
    view->owner_version = view->before_owner = unloaded->second.owner_version;
    recent_weight_ += weight(view->job);
    it = jobs_.emplace(id, std::move(view)).first;
  } else {
    recent_.erase(it->second->used);
  }
  it->second->used = ++uses_;
  recent_.emplace(uses_, id);
  keep_few(id);
  return it->second.get();
}

// Those that were not asked for in a while leave the memory.
void View::keep_few(JobId newest) const {
  while (recent_.size() > kRecentMin &&
         (recent_.size() > recent_max_ || recent_weight_ > kRecentWeightMax)) {
    auto oldest = recent_.begin();
    auto it = jobs_.find(oldest->second);
    MUSTER_CHECK(it != jobs_.end() && it->first != newest, newest);
    recent_weight_ -= weight(it->second->job);
    jobs_.erase(it);
    recent_.erase(oldest);
  }
}

// An unloaded job changes: from here on it is in memory, as it was before this batch. What was
// loaded from disk may be ahead of us.
void View::awake(JobId id, const core::JobRecords& batch) {
  MUSTER_CHECK(batch.before != nullptr, id);
  if (auto it = jobs_.find(id); it != jobs_.end()) {
    recent_weight_ -= weight(it->second->job);
    recent_.erase(it->second->used);
    jobs_.erase(it);
  }
  const UnloadedJob& entry = unloaded_.at(id);
  auto view = view_of(core::Job(*batch.before), entry.version);
  view->owner_version = view->before_owner = entry.owner_version;
  unloaded_.erase(id);
  unreadable_.erase(id);
  jobs_.emplace(id, std::move(view));
}

void View::rest(JobId id) {
  if (!load_job_) return;
  JobView& view = *jobs_.at(id);
  UnloadedJob entry = entry_of(core::summary_of(view.job));
  entry.version = view.version;
  entry.owner_version = told_since(view.owner_version, view.before_owner);
  unloaded_.emplace(id, std::move(entry));
  recent_weight_ += weight(view.job);
  view.used = ++uses_;
  recent_.emplace(uses_, id);
  keep_few(id);
}

std::optional<std::string> View::damage(Kind kind, std::string_view ns,
                                        std::string_view name) const {
  for (const auto& [id, why] : unreadable_) {
    auto is_it = [&, id = id](const Place& job) {
      const std::string& its = std::get<1>(job);
      if (std::get<JobId>(job) != id || std::get<0>(job) != ns) return false;
      return kind == Kind::job ? its == name : name.starts_with(its);
    };
    if (std::any_of(by_name_.begin(), by_name_.end(), is_it)) return why;
  }
  return std::nullopt;
}

std::pair<size_t, size_t> View::unloaded() const {
  size_t complete = 0;
  for (const auto& [id, job] : unloaded_) complete += job.complete;
  return {complete, unloaded_.size() - complete};
}

void View::each_active_job(const std::function<void(const core::Job&)>& f) const {
  for (const auto& [id, view] : jobs_)
    if (!unloaded_.contains(id)) f(view->job);
}

std::optional<Shown> View::job(std::string_view ns, std::string_view name) const {
  for (auto it = by_name_.lower_bound(std::tuple(ns, name, JobId{0})); it != by_name_.end(); ++it) {
    const auto& [its_ns, its_name, id] = *it;
    if (its_ns != ns || its_name != name) break;
    if (auto shown = find({Kind::job, id, 0, {}})) return shown;
  }
  return std::nullopt;
}

std::optional<Shown> View::pod(std::string_view ns, std::string_view name) const {
  // JOB-INDEX-xxxxx or JOB-xxxxx, the job's name cut when it is long (core/pod_name.hpp): jobs
  // whose name begins with what is left of the name, then the attempts of that index.
  constexpr size_t kSuffix = 5;
  if (name.size() <= kSuffix) return std::nullopt;
  std::string_view base = name.substr(0, name.size() - kSuffix);
  auto in_job = [&](const JobView& view, std::optional<uint32_t> index) -> std::optional<Shown> {
    const core::JobMeta& meta = view.job.object().meta;
    for (const auto& [key, version] : view.pods) {
      if (index && key.index != *index) continue;
      if (core::pod_name(meta.name, meta.uid, view.job.indexed(), key) == name)
        return find({Kind::pod, view.job.id(), 0, key});
    }
    return std::nullopt;
  };
  auto in_jobs = [&](std::string_view prefix, bool cut, bool indexed,
                     std::optional<uint32_t> index) -> std::optional<Shown> {
    for (auto it = by_name_.lower_bound(std::tuple(ns, prefix, JobId{0})); it != by_name_.end();
         ++it) {
      const auto& [its_ns, its_name, id] = *it;
      if (its_ns != ns || !its_name.starts_with(prefix)) break;
      if (!cut && its_name != prefix) break;
      const JobView* view = job_view(id);
      if (!view || view->job.indexed() != indexed) continue;
      if (auto found = in_job(*view, index)) return found;
    }
    return std::nullopt;
  };
  const bool cut = base.size() >= 58;
  if (auto found =
          in_jobs(base.ends_with('-') ? base.substr(0, base.size() - 1) : base, cut, false, {}))
    return found;
  if (!base.ends_with('-')) return std::nullopt;
  base.remove_suffix(1);
  const size_t dash = base.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  uint32_t index = 0;
  const std::string_view digits = base.substr(dash + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return in_jobs(base.substr(0, dash), cut, true, index);
}

std::optional<Shown> View::node(std::string_view name) const {
  auto it = node_names_.find(name);
  if (it == node_names_.end()) return std::nullopt;
  return Shown{
      .kind = Kind::node, .node = &nodes_.at(it->second.id), .version = it->second.version};
}

std::optional<Shown> View::event(std::string_view ns, std::string_view name) const {
  if (auto written = kept(core::KeptKind::event, ns, name)) return written;
  const auto event = parse_event_name(name);
  if (!event) return std::nullopt;
  auto shown = find({Kind::event, event->job, event->nr, {}});
  if (!shown || shown->job->object().meta.ns != ns) return std::nullopt;
  if (event_name(*shown->job, *shown->event) != name) return std::nullopt;
  return shown;
}

std::optional<Shown> View::find(const Key& key) const {
  if (key.kind == Kind::node) {
    const core::NodeInfo* info = node_info(static_cast<NodeId>(key.nr));
    return info ? node(info->name) : std::nullopt;
  }
  if (key.job == 0) {
    auto it = kept_by_id_.find(key.nr);
    if (it == kept_by_id_.end()) return std::nullopt;
    return shown_of(*it->second);
  }
  const JobView* view = job_view(key.job);
  if (!view) return std::nullopt;
  Shown shown{.kind = key.kind, .job = &view->job, .version = view->version};
  if (key.kind == Kind::job) {
    if (view->job.hidden()) return std::nullopt;
    shown.since = told_since(view->version, view->before);
  } else if (key.kind == Kind::pod) {
    auto it = view->pods.find(key.pod);
    if (it == view->pods.end()) return std::nullopt;
    shown.version = it->second;
    shown.pod = view->job.pod(key.pod);
    MUSTER_CHECK(shown.pod != nullptr, key.job, to_string(key.pod));
  } else {
    const auto& events = view->job.state().events;
    auto it = std::lower_bound(events.begin(), events.end(), key.nr,
                               [](const core::JobEvent& e, uint64_t nr) { return e.nr < nr; });
    if (it == events.end() || it->nr != key.nr) return std::nullopt;
    shown.event = &*it;
    auto version = view->events.find(key.nr);
    shown.version = version == view->events.end() ? view->loaded : version->second;
  }
  return shown;
}

std::optional<Shown> View::listed(const Key& key) const {
  if (key.kind == Kind::job)
    if (auto shown = brief(key.job)) return shown;
  return find(key);
}

// An unloaded job that is not in memory, as lists tell it.
std::optional<Shown> View::brief(JobId id) const {
  auto unloaded = unloaded_.find(id);
  if (!load_brief_ || unloaded == unloaded_.end() || jobs_.contains(id)) return std::nullopt;
  if (!brief_ || brief_->id() != id) {
    brief_.reset();
    auto job = load_brief_(id);
    if (!job) return std::nullopt;
    brief_ = std::move(*job);
    if (auto damage = unreadable_.find(id); damage != unreadable_.end()) {
      core::JobState state = brief_->state();
      state.conditions.push_back(
          {kDamaged, true, state.last_record_ms, "Unreadable", damage->second});
      brief_ = core::Job(id, brief_->object_ptr(), std::move(state));
    }
  }
  return Shown{.kind = Kind::job, .job = &*brief_, .version = unloaded->second.version};
}

const core::NodeInfo* View::node_info(NodeId id) const {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

uint64_t View::owner_version(JobId id) const {
  if (auto it = unloaded_.find(id); it != unloaded_.end()) return it->second.owner_version;
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return 0;
  return told_since(it->second->owner_version, it->second->before_owner);
}

std::string View::node_name(NodeId id) const {
  const core::NodeInfo* info = node_info(id);
  return info ? info->name : std::string();
}

void View::each(Kind kind, std::string_view ns, const Wanted& wanted,
                const std::function<void(const Shown&)>& f) const {
  if (kind == Kind::node) {
    for (const auto& [name, named] : node_names_)
      f(Shown{.kind = kind, .node = &nodes_.at(named.id), .version = named.version});
    return;
  }
  if (kind == Kind::lease) return each_kept(core::KeptKind::lease, ns, f);
  Place at{ns, "", 0};
  for (auto it = by_name_.lower_bound(at);
       it != by_name_.end() && (ns.empty() || std::get<0>(*it) == ns); ++it)
    each_of(kind, *it, wanted, f);
  if (kind == Kind::event) each_kept(core::KeptKind::event, ns, f);
}

void View::each_of(Kind kind, const Place& job, const Wanted& wanted,
                   const std::function<void(const Shown&)>& f) const {
  const auto& [ns, name, id] = job;
  if (auto rest = unloaded_.find(id);
      rest != unloaded_.end() && wanted.named && !wanted.named(name, rest->second))
    return;
  if (kind == Kind::job)
    if (const auto shown = brief(id)) return f(*shown);
  const JobView* found = job_view(id);
  if (!found) return;
  const JobView& view = *found;
  if (kind == Kind::job) {
    if (!view.job.hidden()) f(Shown{.kind = kind, .job = &view.job, .version = view.version});
    return;
  }
  if (wanted.job && !wanted.job(view.job)) return;
  if (kind == Kind::pod) {
    view.job.each_pod([&](const core::Pod& pod) {
      auto shown = view.pods.find(pod.key);
      if (shown == view.pods.end()) return;
      f(Shown{.kind = kind, .job = &view.job, .pod = &pod, .version = shown->second});
    });
    return;
  }
  for (const core::JobEvent& event : view.job.state().events) {
    auto version = view.events.find(event.nr);
    f(Shown{.kind = kind,
            .job = &view.job,
            .event = &event,
            .version = version == view.events.end() ? view.loaded : version->second});
  }
}

std::optional<View::Place> View::next_job(std::string_view ns, const Place& after) const {
  auto it = by_name_.upper_bound(after);
  if (it == by_name_.end() || (!ns.empty() && std::get<0>(*it) != ns)) return std::nullopt;
  return *it;
}

std::optional<uint64_t> View::count_after(Kind kind, std::string_view ns,
                                          const Place& after) const {
  uint64_t count = 0;
  for (auto it = by_name_.upper_bound(after);
       it != by_name_.end() && (ns.empty() || std::get<0>(*it) == ns); ++it) {
    const JobId id = std::get<JobId>(*it);
    if (kind == Kind::job && unloaded_.contains(id)) {
      ++count;
      continue;
    }
    auto found = jobs_.find(id);
    if (found == jobs_.end()) return std::nullopt;
    const JobView& view = *found->second;
    count += kind == Kind::job   ? !view.job.hidden()
             : kind == Kind::pod ? view.pods.size()
                                 : view.job.state().events.size();
  }
  return count;
}

size_t View::count_of(Kind kind, uint64_t position) const {
  const auto& positions = of_kind_[static_cast<size_t>(kind)];
  return static_cast<size_t>(positions.end() -
                             std::lower_bound(positions.begin(), positions.end(), position));
}

uint64_t View::next_of(Kind kind, uint64_t position) const {
  const auto& positions = of_kind_[static_cast<size_t>(kind)];
  auto it = std::lower_bound(positions.begin(), positions.end(), position);
  return it == positions.end() ? ring_end() : *it;
}

}  // namespace muster::api
