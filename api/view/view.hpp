// View: the copy that is shown.
//
// GET, list and watch read only this. The journal hands over each batch once it is on disk; here
// the same records are applied to a copy of each job. So what is shown is durable by construction,
// in commit order, and asks no actor. No JSON is made here: objects are rendered when somebody asks
// for them.
//
// A finished job is unloaded: an entry of an index, and its fold on disk, from where it is loaded
// when somebody asks. The ones that were asked for last stay in memory, within a bound.
//
// Beside the jobs the View keeps a bounded ring of changes since this start, for watches
// (watch.hpp). A change says which object, not what it is now; only what is gone carries its last
// state.
//
// Always holds: every shown pod has an entry in its job's `pods` (the commit of its last change),
// and nothing else has; commits in the ring never fall; an object's newest `touched` change has the
// object's version.
#pragma once

#include "api/kube/kept_view.hpp"
#include "base/result.hpp"
#include "core/cluster/node_info.hpp"
#include "core/job/batch.hpp"
#include "core/job/job.hpp"
#include "core/job/summary.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace muster::api {

enum class Kind : uint8_t { job, pod, node, event, lease };

// The condition of a job whose state can't be read from disk (docs/api.md).
constexpr const char* kDamaged = "muster.dev/Damaged";

// A job with the versions of what belongs to it.
struct JobView {
  explicit JobView(core::Job j) : job(std::move(j)) {}
  core::Job job;
  uint64_t version = 0;
  uint64_t before = 0;                        // its version before this one
  uint64_t owner_version = 0;                 // when metadata or spec changed last
  uint64_t before_owner = 0;                  // its version before that
  std::unordered_map<PodKey, uint64_t> pods;  // shown pods
  std::unordered_map<uint64_t, uint64_t>
      events;           // event number -> version; those missing have `loaded`
  uint64_t loaded = 0;  // the commit that this copy began with
  std::shared_ptr<const core::Job>
      stub;           // its object alone, for pods that are gone; made when needed
  uint64_t used = 0;  // of an unloaded job: when it was asked for last
};

// What is in memory of an unloaded job.
struct UnloadedJob {
  std::string uid;
  uint64_t version = 0;
  uint64_t owner_version = 0;
  bool complete = false;    // else Failed
  bool named_pods = false;  // its pods carry its own name and uid as labels
};

// Which jobs' objects are meant. `named` may refuse an unloaded job without loading it.
struct Wanted {
  Wanted(std::nullptr_t) {}
  template <std::invocable<const core::Job&> F>
  Wanted(F f) : job(std::move(f)) {}
  Wanted(std::function<bool(const core::Job&)> j,
         std::function<bool(std::string_view name, const UnloadedJob&)> n)
      : job(std::move(j)), named(std::move(n)) {}
  std::function<bool(const core::Job&)> job;
  std::function<bool(std::string_view name, const UnloadedJob&)> named;
};

// The lowest version that clients were told of a state that came with this commit: a watch tells
// the number before it while it has more of that commit to tell (watch.hpp). Not if the state
// `before` may have been told with that number.
inline uint64_t told_since(uint64_t commit, uint64_t before) {
  return before + 1 < commit ? commit - 1 : commit;
}

// The last state of something that is no longer shown.
struct Gone {
  std::shared_ptr<const core::Job> job;  // without pods and events; a pod's without status too
  std::optional<core::Pod> pod;          // for a pod
  std::optional<core::NodeInfo> node;    // for a node
  std::shared_ptr<const KeptView> kept;  // for a kept object
};

struct Change {
  enum class Type : uint8_t { added, touched, removed };
  uint64_t commit = 0;
  JobId job = 0;
  uint64_t nr = 0;  // event: its number; node: its NodeId; kept object: its id (and job is 0)
  PodKey pod;
  Kind kind = Kind::job;
  Type type = Type::touched;
  bool passing = false;              // not durable: follows the commit with the same number
  std::shared_ptr<const Gone> gone;  // removed: what it was
};

// What is shown of one object; the pointers are valid until the View changes.
struct Shown {
  Kind kind = Kind::job;
  const core::Job* job = nullptr;  // job, pod and event
  const core::Pod* pod = nullptr;
  const core::NodeInfo* node = nullptr;
  const core::JobEvent* event = nullptr;
  const KeptView* kept = nullptr;  // lease, and an event that a client wrote; then there is no job
  uint64_t version = 0;            // as it is told
  uint64_t own_version = 0;        // of the object, where a watch tells another; 0: the same
  uint64_t since = 0;  // of a job: as told_since(), the lowest that stands for all of it
};

// The name of an object for as long as it lives; also when the View has changed.
struct Key {
  Kind kind = Kind::job;
  JobId job = 0;
  uint64_t nr = 0;
  PodKey pod;
  auto operator<=>(const Key&) const = default;
};

// Sees each durable record as it is applied, with the job before and after it.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  virtual void before(const core::Job& job, const core::Record& record) = 0;
  virtual void after(const core::Job& job, const core::Record& record) = 0;
};

class View {
 public:
  // `ring_max`: changes kept for watches.
  explicit View(size_t ring_max = 1u << 18) : ring_max_(ring_max) {}
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // Loads an unloaded job from disk; not_found: it is gone; another error: it can't be read.
  // Without one no job is ever unloaded. So many of them stay in memory: those that were asked for
  // last.
  using LoadJob = std::function<Result<core::Job>(JobId)>;
  void load_with(LoadJob load, size_t recent_max = 1'000) {
    load_job_ = std::move(load);
    recent_max_ = recent_max;
  }

  // Loads one as lists tell it (core::brief), which is much cheaper; any error: it is loaded whole.
  void brief_with(LoadJob load) { load_brief_ = std::move(load); }

  // At the start: the recovered jobs and nodes, then the commit number that they stand for.
  void load(core::Job job);
  // One that is unloaded.
  void load_unloaded(const core::JobSummary& job);
  // One that is quarantined, for this reason; `object` may be nullptr: then nothing of it is shown.
  void load_damaged(JobId id, core::JobObjectPtr object, const std::string& why, Millis at_ms);
  void load_kept(core::Kept kept);
  void loaded(uint64_t commit, std::vector<core::NodeInfo> nodes);

  // A batch that is on disk.
  void commit(const core::Committed& committed);
  // Nodes whose passing part (health, draining) changed.
  void nodes(const std::vector<core::NodeInfo>& nodes);
  // Called after each of the two; set by the server.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }

  // Outlives the View; recovered jobs are not told.
  void observe(RecordObserver* observer) { observer_ = observer; }
  uint64_t commits() const { return commits_; }  // since the start

  uint64_t version() const { return commit_; }  // of a list
  std::optional<Shown> job(std::string_view ns, std::string_view name) const;
  std::optional<Shown> pod(std::string_view ns, std::string_view name) const;
  std::optional<Shown> node(std::string_view name) const;
  std::optional<Shown> event(std::string_view ns, std::string_view name) const;
  std::optional<Shown> kept(core::KeptKind kind, std::string_view ns, std::string_view name) const;
  // Also of a hidden job, as long as its fold lives (kind pod and event).
  std::optional<Shown> find(const Key& key) const;
  // As find(), for whoever goes through a list: of an unloaded job only what lists tell.
  std::optional<Shown> listed(const Key& key) const;
  // The lowest version that stands for the metadata and spec as they are; 0: they have not changed
  // since the start. As told_since().
  uint64_t owner_version(JobId id) const;
  const core::NodeInfo* node_info(NodeId id) const;  // any incarnation; nullptr: unknown
  std::string node_name(NodeId id) const;            // "" when unknown

  // Calls f(const Shown&) for each shown object of this kind and namespace (empty: all), which is
  // valid until f returns; `wanted` skips all pods and events of a job. Unloaded jobs come as lists
  // tell them.
  void each(Kind kind, std::string_view ns, const Wanted& wanted,
            const std::function<void(const Shown&)>& f) const;
  // The jobs of a namespace (empty: all), hidden ones too, one after the other by namespace, name
  // and id: the first one after a place. Nothing is loaded for that.
  using Place = std::tuple<std::string, std::string, JobId>;
  std::optional<Place> next_job(std::string_view ns, const Place& after) const;
  // As each(), of one job.
  void each_of(Kind kind, const Place& job, const Wanted& wanted,
               const std::function<void(const Shown&)>& f) const;
  // How many objects of this kind the jobs after a place have; nothing: not known without loading.
  std::optional<uint64_t> count_after(Kind kind, std::string_view ns, const Place& after) const;
  // Calls f for each kept object of this kind and namespace (empty: all), by namespace and name.
  void each_kept(core::KeptKind kind, std::string_view ns,
                 const std::function<void(const Shown&)>& f) const;
  // Calls f for each job that is not unloaded.
  void each_active_job(const std::function<void(const core::Job&)>& f) const;
  // Unloaded jobs, as (complete, failed).
  std::pair<size_t, size_t> unloaded() const;

  // Jobs that are quarantined, or whose rows could not be read when somebody asked.
  size_t damaged() const { return quarantined_.size() + unreadable_.size(); }
  // Why an object of this name, or what belongs to a job of this name, could not be read just now.
  std::optional<std::string> damage(Kind kind, std::string_view ns, std::string_view name) const;

  // The ring. Positions count changes since the start.
  uint64_t ring_begin() const { return ring_first_; }
  uint64_t ring_end() const { return ring_first_ + ring_.size(); }
  const Change& change(uint64_t position) const { return ring_[position - ring_first_]; }
  // The position of the first change of this kind at or after a position; ring_end(): there is
  // none.
  uint64_t next_of(Kind kind, uint64_t position) const;
  // How many changes of this kind there are from a position on.
  size_t count_of(Kind kind, uint64_t position) const;
  // All changes of this kind from this position on are still in the ring.
  uint64_t begin_of(Kind kind) const { return begin_of_kind_[static_cast<size_t>(kind)]; }
  // The position of the first change after this version; nothing: too old, or not yet given.
  std::optional<uint64_t> after(uint64_t version) const;

 private:
  using JobPtr = std::unique_ptr<JobView>;
  void apply(JobView& view, const core::Record& record);
  void touched(JobView& view, const core::Touched& touched);
  void touch_pod(JobView& view, PodKey key);
  void remove_pod(JobView& view, const core::Pod& pod);
  void hide(JobView& view);
  void merge(core::NodeInfo node, bool passing);
  void merge(const core::KeptChange& change);
  void push(Change change);
  const JobView* job_view(JobId id) const;
  std::optional<Shown> brief(JobId id) const;
  void awake(JobId id, const core::JobRecords& batch);
  void rest(JobId id);
  void keep_few(JobId newest) const;

  size_t ring_max_;
  uint64_t commit_ = 0;
  uint64_t floor_ = 0;  // changes up to this commit are no longer all in the ring
  LoadJob load_job_, load_brief_;
  mutable std::optional<core::Job> brief_;  // the last one of those
  size_t recent_max_ = 0;
  mutable std::map<JobId, JobPtr> jobs_;  // those not unloaded, and of the others some
  std::unordered_map<JobId, UnloadedJob> unloaded_;
  mutable std::map<uint64_t, JobId> recent_;  // of the latter in jobs_, by their `used`
  mutable uint64_t uses_ = 0, recent_weight_ = 0;
  std::set<JobId> quarantined_;
  mutable std::map<JobId, std::string> unreadable_;  // of those unloaded, and why
  std::set<std::tuple<std::string, std::string, JobId>, std::less<>> by_name_;  // hidden ones too
  std::map<NodeId, core::NodeInfo> nodes_;
  struct NodeView {
    NodeId id = kNoNode;  // newest incarnation
    uint64_t version = 0;
  };
  std::map<std::string, NodeView, std::less<>> node_names_;
  std::deque<Change> ring_;
  uint64_t ring_first_ = 0;
  // By namespace and name, of each kind; and where each is.
  using KeptMap =
      std::map<std::tuple<std::string, std::string>, std::shared_ptr<const KeptView>, std::less<>>;
  std::array<KeptMap, 2> kept_;
  std::unordered_map<uint64_t, std::shared_ptr<const KeptView>> kept_by_id_;
  static constexpr size_t kKinds = 5;
  std::array<std::deque<uint64_t>, kKinds> of_kind_;  // positions of the changes in the ring
  std::array<uint64_t, kKinds> begin_of_kind_{};
  std::function<void()> listener_;
  RecordObserver* observer_ = nullptr;
  uint64_t commits_ = 0;
};

inline Key key_of(const Shown& s) {
  switch (s.kind) {
    case Kind::job:
      return {Kind::job, s.job->id(), 0, {}};
    case Kind::pod:
      return {Kind::pod, s.job->id(), 0, s.pod->key};
    case Kind::node:
      return {Kind::node, 0, s.node->id, {}};
    case Kind::event:
      if (s.kept) return {Kind::event, 0, s.kept->kept->id, {}};
      return {Kind::event, s.job->id(), s.event->nr, {}};
    case Kind::lease:
      return {Kind::lease, 0, s.kept->kept->id, {}};
  }
  return {};
}

// Is a pod of this job an object that a client can see? One whose deletion was requested goes with
// its end, as soon as it is judged; what a deleted job has finished goes with the job, unless it
// was orphaned.
inline bool shows(const core::Job& job, const core::Pod& pod) {
  if (!pod.ended) return true;
  if (job.hidden() && !job.state().orphaned) return false;
  return pod.stopping_ms == 0 || pod.counted == core::Counted::not_yet;
}

}  // namespace muster::api
