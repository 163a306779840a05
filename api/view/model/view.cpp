// The View's queries.
#include "api/view/model/view.hpp"

#include "api/view/model/event_text.hpp"
#include "base/check.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <charconv>

namespace muster::api {
namespace {

Shown shown_kept(const KeptView& view) {
  return {.kind = kind_of(view.kept->kind), .kept = &view, .version = view.version};
}

}  // namespace

View::View(size_t changes_max) {
  for (size_t kind = 0; kind < kKinds; ++kind)
    changes_.emplace_back(changes_max, changes_bytes_max(static_cast<Kind>(kind)));
}

View::Was View::was(const Key& key, const PastPtr& past, uint64_t version) const {
  Was was{.shown = {.kind = key.kind, .version = version}, .job = {}};
  Shown& shown = was.shown;
  if (const auto job = std::dynamic_pointer_cast<const PastJob>(past)) {
    was.job = past_jobs_.restored(job);
  } else if (const auto* pod = dynamic_cast<const PastPod*>(past.get())) {
    shown.pod = &pod->pod;
    was.job = pod->job;
  } else if (const auto* node = dynamic_cast<const PastNode*>(past.get())) {
    shown.node = &node->node;
    shown.node_key = node->key;
  } else if (const auto* kept = dynamic_cast<const PastKept*>(past.get())) {
    shown.kept = kept->kept.get();
  }
  shown.job = was.job.get();
  return was;
}

std::optional<Shown> View::job(std::string_view ns, std::string_view name) const {
  for (auto it = jobs_.names().lower_bound({std::string(ns), std::string(name), 0});
       it != jobs_.names().end(); ++it) {
    const auto& [its_ns, its_name, id] = *it;
    if (its_ns != ns || its_name != name) break;
    if (auto shown = find({Kind::job, id, 0, {}})) return shown;
  }
  return std::nullopt;
}

std::optional<Shown> View::pod(std::string_view ns, std::string_view name) const {
  // JOB-INDEX-xxxxx or JOB-xxxxx, with long job names cut (core/pod_name.hpp). Finds the jobs whose
  // name begins with JOB, then searches their pods, only those of INDEX if there is one.
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
    for (auto it = jobs_.names().lower_bound({std::string(ns), std::string(prefix), 0});
         it != jobs_.names().end(); ++it) {
      const auto& [its_ns, its_name, id] = *it;
      if (its_ns != ns || !its_name.starts_with(prefix)) break;
      if (!cut && its_name != prefix) break;
      const JobView* view = jobs_.find(id);
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
  return shown_of(nodes_.at(it->second.id), it->second);
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

std::optional<Shown> View::kept(core::KeptKind kind, std::string_view ns,
                                std::string_view name) const {
  if (kind == core::KeptKind::config_map && provide_ && name == provided_name_) {
    if (!in_use(ns)) return std::nullopt;
    return shown_kept(*provided(ns));
  }
  const KeptMap& map = kept_[static_cast<size_t>(kind)];
  auto it = map.find({std::string(ns), std::string(name)});
  if (it == map.end()) return std::nullopt;
  return shown_kept(*it->second);
}

std::optional<Shown> View::kept_by_id(uint64_t id) const {
  const auto found = kept_by_id_.find(id);
  if (found == kept_by_id_.end()) return std::nullopt;
  return shown_kept(*found->second);
}

void View::provide(std::function<core::Kept(const std::string& ns)> make) {
  provide_ = std::move(make);
  provided_name_ = provide_("default").name;
}

std::shared_ptr<const KeptView> View::provided(std::string_view ns) const {
  auto it = provided_.find(ns);
  if (it == provided_.end()) {
    auto view = std::make_shared<KeptView>();
    core::Kept kept = provide_(std::string(ns));
    kept.id = UINT64_MAX - provided_.size();
    provided_by_id_[kept.id] = kept.ns;
    view->facts = kept_facts(kept);
    view->version = kept_version(kept.version, kept.id);
    view->kept = std::make_shared<const core::Kept>(std::move(kept));
    it = provided_.emplace(ns, std::move(view)).first;
  }
  return it->second;
}

View::Stored View::stored(core::KeptKind kind) const {
  Stored stored;
  for (const auto& [place, view] : kept_[static_cast<size_t>(kind)]) {
    ++stored.count;
    stored.bytes += view->kept->json.size();
  }
  return stored;
}

bool View::in_use(std::string_view ns) const {
  if (ns == "default") return true;
  if (next_job(ns, {std::string(ns), "", 0})) return true;
  for (const core::KeptKind kind : core::kKeptKinds) {
    const KeptMap& map = kept_[static_cast<size_t>(kind)];
    if (kind == core::KeptKind::name_space && map.contains({"", std::string(ns)})) return true;
    if (core::is_cluster_wide(kind)) continue;
    const auto it = map.lower_bound({std::string(ns), ""});
    if (it != map.end() && it->first.first == ns) return true;
  }
  return false;
}

// Jumps from namespace to namespace without visiting every job.
std::set<std::string> View::namespaces_in_use() const {
  std::set<std::string> names = {"default"};
  Place after;
  while (const auto job = next_job("", after)) {
    names.insert(std::get<0>(*job));
    after = {std::get<0>(*job), "\xff", UINT64_MAX};  // after every job of the namespace
  }
  for (const core::KeptKind kind : core::kKeptKinds) {
    const KeptMap& map = kept_[static_cast<size_t>(kind)];
    if (kind == core::KeptKind::name_space) {
      for (const auto& [place, view] : map) names.insert(place.second);
      continue;
    }
    if (core::is_cluster_wide(kind)) continue;
    for (auto it = map.begin(); it != map.end(); it = map.lower_bound({it->first.first + '\0', ""}))
      names.insert(it->first.first);
  }
  return names;
}

void View::each_kept(core::KeptKind kind, std::string_view ns,
                     const std::function<void(const Shown&)>& f) const {
  const KeptMap& map = kept_[static_cast<size_t>(kind)];
  std::set<std::string> provided_in;  // namespaces whose provided config map f has not seen yet
  if (kind == core::KeptKind::config_map && provide_) {
    if (ns.empty())
      provided_in = namespaces_in_use();
    else if (in_use(ns))
      provided_in = {std::string(ns)};
  }
  auto provide_before = [&](const std::pair<std::string, std::string>* place) {
    while (!provided_in.empty()) {
      const std::string first = *provided_in.begin();
      if (place && std::pair(first, provided_name_) > *place) return;
      f(shown_kept(*provided(first)));
      provided_in.erase(first);
    }
  };
  for (auto it = map.lower_bound({std::string(ns), ""});
       it != map.end() && (ns.empty() || std::get<0>(it->first) == ns); ++it) {
    provide_before(&it->first);
    f(shown_kept(*it->second));
  }
  provide_before(nullptr);
}

std::optional<Shown> View::find(const Key& key) const {
  if (key.kind == Kind::node) {
    const core::NodeInfo* info = node_info(static_cast<NodeId>(key.nr));
    return info ? node(info->name) : std::nullopt;
  }
  if (key.job == 0) {
    auto it = kept_by_id_.find(key.nr);
    if (it != kept_by_id_.end()) return shown_kept(*it->second);
    const auto ns = provided_by_id_.find(key.nr);
    if (ns == provided_by_id_.end()) return std::nullopt;
    return kept(core::KeptKind::config_map, ns->second, provided_name_);
  }
  const JobView* view = jobs_.find(key.job);
  if (!view) return std::nullopt;
  Shown shown{.kind = key.kind, .job = &view->job, .version = view->version};
  if (key.kind == Kind::job) {
    if (view->job.hidden()) return std::nullopt;
  } else if (key.kind == Kind::pod) {
    auto it = view->pods.find(key.pod);
    if (it == view->pods.end()) return std::nullopt;
    shown.version = it->second;
    shown.stand_in = shown.version == view->loaded;
    shown.pod = view->job.pod(key.pod);
    MUSTER_CHECK(shown.pod != nullptr, key.job, to_string(key.pod));
  } else {
    const auto& events = view->job.state().events;
    auto it = std::lower_bound(events.begin(), events.end(), key.nr,
                               [](const core::JobEvent& e, uint64_t nr) { return e.nr < nr; });
    if (it == events.end() || it->nr != key.nr) return std::nullopt;
    shown.event = &*it;
    shown.version = view->event_version(key.nr);
    shown.stand_in = shown.version == view->loaded;
  }
  return shown;
}

std::optional<Shown> View::listed(const Key& key) const {
  if (key.kind == Kind::job)
    if (auto shown = brief(key.job)) return shown;
  return find(key);
}

std::optional<Shown> View::brief(JobId id) const {
  const core::Job* job = jobs_.brief(id);
  if (!job) return std::nullopt;
  return Shown{.kind = Kind::job, .job = job, .version = jobs_.unloaded(id)->version};
}

const core::NodeInfo* View::node_info(NodeId id) const {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

std::string View::node_name(NodeId id) const {
  const core::NodeInfo* info = node_info(id);
  return info ? info->name : std::string();
}

void View::each(Kind kind, std::string_view ns, const Wanted& wanted,
                const std::function<void(const Shown&)>& f) const {
  if (kind == Kind::node) {
    for (const auto& [name, named] : node_names_) f(shown_of(nodes_.at(named.id), named));
    return;
  }
  if (const auto kept = kept_kind_of(kind)) return each_kept(*kept, ns, f);
  Place at{ns, "", 0};
  for (auto it = jobs_.names().lower_bound(at);
       it != jobs_.names().end() && (ns.empty() || std::get<0>(*it) == ns); ++it)
    each_of(kind, *it, wanted, f);
  if (kind == Kind::event) each_kept(core::KeptKind::event, ns, f);
}

namespace {

// Absent: it is not shown.
std::optional<Shown> shown_pod(const JobView& view, const core::Pod& pod) {
  const auto shown = view.pods.find(pod.key);
  if (shown == view.pods.end()) return std::nullopt;
  return Shown{.kind = Kind::pod, .job = &view.job, .pod = &pod, .version = shown->second};
}

}  // namespace

// Whether a job that is not in memory must be read.
bool View::may_want(const Place& job, const Wanted& wanted) const {
  const auto& [ns, name, id] = job;
  const UnloadedJob* unloaded = jobs_.unloaded(id);
  return !unloaded || !wanted.named || wanted.named(name, *unloaded);
}

void View::each_of(Kind kind, const Place& job, const Wanted& wanted,
                   const std::function<void(const Shown&)>& f) const {
  if (!may_want(job, wanted)) return;
  const JobId id = std::get<JobId>(job);
  if (kind == Kind::job)
    if (const auto shown = brief(id)) return f(*shown);
  const JobView* found = jobs_.find(id);
  if (!found) return;
  const JobView& view = *found;
  if (kind == Kind::job) {
    if (!view.job.hidden()) f(Shown{.kind = kind, .job = &view.job, .version = view.version});
    return;
  }
  if (wanted.job && !wanted.job(view.job)) return;
  if (kind == Kind::pod) {
    view.job.each_pod([&](const core::Pod& pod) {
      if (const auto shown = shown_pod(view, pod)) f(*shown);
    });
    return;
  }
  for (const core::JobEvent& event : view.job.state().events)
    f(Shown{
        .kind = kind, .job = &view.job, .event = &event, .version = view.event_version(event.nr)});
}

void View::pods_after(const Place& job, const Wanted& wanted, const std::optional<PodKey>& after,
                      size_t most, const std::function<void(const Shown&)>& f) const {
  if (!may_want(job, wanted)) return;
  const JobView* found = jobs_.find(std::get<JobId>(job));
  if (!found || (wanted.job && !wanted.job(found->job))) return;
  const JobView& view = *found;
  const core::JobState& state = view.job.state();
  std::vector<Shown> pods;
  auto add = [&](const core::Pod& pod) {
    if (after && pod.key <= *after) return false;
    const auto shown = shown_pod(view, pod);
    if (shown) pods.push_back(*shown);
    return shown.has_value();
  };
  // What is beyond the first `most` of one of these is not among the first of all.
  auto add_first = [&](auto it, auto end) {
    for (size_t added = 0; added < most && it != end; ++it) added += add(it->second) ? 1 : 0;
  };
  add_first(after ? state.open.upper_bound(*after) : state.open.begin(), state.open.end());
  add_first(after ? state.deferred.lower_bound(after->index) : state.deferred.begin(),
            state.deferred.end());
  for (const core::Pod& pod : state.finished) add(pod);
  std::sort(pods.begin(), pods.end(),
            [](const Shown& a, const Shown& b) { return a.pod->key < b.pod->key; });
  if (pods.size() > most) pods.resize(most);
  for (const Shown& shown : pods) f(shown);
}

std::optional<View::Place> View::next_job(std::string_view ns, const Place& after) const {
  auto it = jobs_.names().upper_bound(after);
  if (it == jobs_.names().end() || (!ns.empty() && std::get<0>(*it) != ns)) return std::nullopt;
  return *it;
}

std::optional<uint64_t> View::count_after(Kind kind, std::string_view ns,
                                          const Place& after) const {
  uint64_t count = 0;
  for (auto it = jobs_.names().upper_bound(after);
       it != jobs_.names().end() && (ns.empty() || std::get<0>(*it) == ns); ++it) {
    const JobId id = std::get<JobId>(*it);
    if (kind == Kind::job && jobs_.unloaded(id)) {
      ++count;
      continue;
    }
    const JobView* found = jobs_.in_memory(id);
    if (!found) return std::nullopt;
    const JobView& view = *found;
    count += kind == Kind::job   ? !view.job.hidden()
             : kind == Kind::pod ? view.pods.size()
                                 : view.job.state().events.size();
  }
  return count;
}

}  // namespace muster::api
