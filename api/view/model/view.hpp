// View: the read model. GET, list and watch read only this.
//
// The journal hands over each batch once it is on disk, and the same records are applied here to a
// copy of each job. So everything shown is durable and in commit order, and reading it involves
// no actor. Objects are rendered as JSON only when requested.
//
// Its parts: the jobs and which of them are in memory (job_store.hpp), the recent changes for
// watches (changes.hpp), and the nodes and kept objects, which are few and stay here.
//
// Invariant: an object's newest change has the object's version, which every list, GET and watch
// shows. In a commit, an object has one `touched` change at most, with its state at the end of the
// commit.
#pragma once

#include "api/kube/objects/kept_view.hpp"
#include "api/view/model/changes.hpp"
#include "api/view/model/job_store.hpp"
#include "api/view/model/past_jobs.hpp"
#include "api/view/model/shown.hpp"
#include "core/cluster/fold/effect.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/cluster/nodes/reach.hpp"
#include "core/job/fold/batch.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::api {

// Selects jobs whose objects are wanted. `named` can rule out an unloaded job without reading it.
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

// Sees each durable record as it is applied, with the job before and after.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  virtual void before(const core::Job& job, const core::Record& record) = 0;
  virtual void after(const core::Job& job, const core::Record& record) = 0;
};

class View {
 public:
  using LoadJob = JobStore::LoadJob;
  using Place = JobStore::Place;

  // `changes_max`: changes of each kind that are kept for watches.
  explicit View(size_t changes_max = 1u << 18);
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // How unloaded jobs are read, and how many of them stay in memory (see JobStore).
  void load_with(LoadJob load, size_t recent_max = 1'000) {
    jobs_.load_with(std::move(load), recent_max);
  }
  void brief_with(LoadJob load) { jobs_.brief_with(std::move(load)); }

  // At startup: add the recovered objects, then call start_at() with the commit they reflect.
  void add(core::Job job);
  void add_unloaded(const core::JobSummary& job) { jobs_.add_unloaded(job); }
  // A quarantined job, and why. Without an `object`, it is not shown.
  void add_damaged(JobId id, core::JobObjectPtr object, const std::string& why, Millis at_ms);
  void add_kept(core::Kept kept);
  void start_at(uint64_t commit, std::vector<core::NodeInfo> nodes);
  // Gives each namespace in use the config map that `make` returns for it, which is not stored.
  void provide(std::function<core::Kept(const std::string& ns)> make);

  // Applies a batch that is on disk.
  void commit(const core::Committed& committed);
  // Ignored for a node whose row is not on disk yet.
  void health(const core::NodeHealth& health);
  // How users stand in the cluster, a short while ago.
  void set_shares(core::cluster::ShowShares shares) { shares_ = std::move(shares); }
  const core::cluster::ShowShares& shares() const { return shares_; }
  // Why the job waits because of its queue; null: it does not, as far as is known.
  const core::Slots::QueueWait* queue_wait(JobId job) const {
    const auto found = shares_.queue_waits.find(job);
    return found == shares_.queue_waits.end() ? nullptr : &found->second;
  }
  // The nodes of MPI jobs that did not reach each other a short while ago. None: they do again.
  using UnreachedNodes = std::map<JobId, std::vector<core::Unreached>>;
  // nullopt: nothing is known about the nodes of this job any more.
  void set_unreached(JobId job, std::optional<std::vector<core::Unreached>> pairs) {
    if (pairs)
      unreached_.insert_or_assign(job, std::move(*pairs));
    else
      unreached_.erase(job);
  }
  const UnreachedNodes& unreached() const { return unreached_; }
  // Called after commit() and health(); set by the server.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }

  // Must outlive the View. Recovered jobs are not passed to it.
  void observe(RecordObserver* observer) { observer_ = observer; }
  uint64_t commits() const { return commits_; }  // since the start

  // The version of a list made now: of the last change.
  uint64_t version() const { return version_; }
  std::optional<Shown> job(std::string_view ns, std::string_view name) const;
  std::optional<Shown> pod(std::string_view ns, std::string_view name) const;
  std::optional<Shown> node(std::string_view name) const;
  std::optional<Shown> event(std::string_view ns, std::string_view name) const;
  std::optional<Shown> kept(core::KeptKind kind, std::string_view ns, std::string_view name) const;
  std::optional<Shown> kept_by_id(uint64_t id) const;
  // The ids of kept objects with owners.
  const std::set<uint64_t>& owned() const { return owned_; }
  // The ids of kept objects, other than namespaces, that are being deleted in the foreground.
  const std::set<uint64_t>& leaving() const { return leaving_; }
  struct Stored {
    size_t count = 0, bytes = 0;
  };
  Stored stored(core::KeptKind kind) const;
  // Whether the namespace is `default`, was created, or has jobs or stored objects. Any name is a
  // namespace, but lists show only those in use.
  bool in_use(std::string_view ns) const;
  std::set<std::string> namespaces_in_use() const;
  // Namespaces that are being deleted.
  const std::set<std::string, std::less<>>& terminating() const { return terminating_; }
  // Also finds pods and events of a hidden job while its fold exists.
  std::optional<Shown> find(const Key& key) const;
  // Like find(), but an unloaded job has only what lists show.
  std::optional<Shown> listed(const Key& key) const;
  // The version of the last change of metadata or spec. 0: unchanged since the start.
  uint64_t owner_version(JobId id) const { return jobs_.owner_version(id); }
  const core::NodeInfo* node_info(NodeId id) const;  // any incarnation; nullptr: unknown
  std::string node_name(NodeId id) const;            // "" when unknown

  // Calls f(const Shown&) for each shown object of this kind and namespace (empty: all); the
  // argument is valid until f returns. `wanted` skips jobs along with their pods and events.
  // Unloaded jobs have only what lists show.
  void each(Kind kind, std::string_view ns, const Wanted& wanted,
            const std::function<void(const Shown&)>& f) const;
  // The first job after a place, by namespace, name and id; hidden jobs are included. An empty
  // namespace means all. Reads nothing from disk.
  std::optional<Place> next_job(std::string_view ns, const Place& after) const;
  // Like each(), for one job.
  void each_of(Kind kind, const Place& job, const Wanted& wanted,
               const std::function<void(const Shown&)>& f) const;
  // Likewise for its pods, the first `most` of those after this one, by index and attempt.
  void pods_after(const Place& job, const Wanted& wanted, const std::optional<PodKey>& after,
                  size_t most, const std::function<void(const Shown&)>& f) const;
  // The number of objects of this kind that belong to the jobs after a place; nothing if counting
  // them would require reading from disk.
  std::optional<uint64_t> count_after(Kind kind, std::string_view ns, const Place& after) const;
  // Calls f for each kept object of this kind and namespace (empty: all), ordered by namespace and
  // name.
  void each_kept(core::KeptKind kind, std::string_view ns,
                 const std::function<void(const Shown&)>& f) const;

  const JobStore& jobs() const { return jobs_; }
  const Changes& changes(Kind kind) const { return changes_[static_cast<size_t>(kind)]; }
  // Whether a list of this version can be continued: it began in this run, or nothing has changed
  // since. Its objects may have changed more often than changes are kept.
  bool continues(Kind kind, uint64_t version) const {
    return version <= version_ && (version >= started_ || changes(kind).after(version));
  }
  // Like Changes::after(); also nothing for a version in the future.
  std::optional<uint64_t> after(Kind kind, uint64_t version) const {
    return version > version_ ? std::nullopt : changes(kind).after(version);
  }
  // An object as it was, with the version of a change to it. Valid as long as both exist.
  struct Was {
    Shown shown;
    std::shared_ptr<const core::Job> job;  // what shown.job points to
  };
  Was was(const Key& key, const PastPtr& past, uint64_t version) const;

 private:
  void apply(JobView& view, const core::Record& record);
  void touched(JobView& view, core::Touched touched);
  void take_state(JobView& view);
  void take_pods(JobView& view);
  void touch_pod(JobView& view, PodKey key);
  void remove_pod(JobView& view, core::Pod pod);
  void hide(JobView& view);
  void merge(core::NodeInfo node, bool passing);
  void merge(const core::KeptChange& change);
  // Returns the version of the change. `bytes`: what only the change stores.
  uint64_t push(Change change, size_t bytes = 0);
  uint64_t next_version();
  bool in_this_commit(uint64_t version) const { return commit_of(version) == commit_; }
  std::optional<Shown> brief(JobId id) const;
  bool may_want(const Place& job, const Wanted& wanted) const;

  JobStore jobs_;
  std::vector<Changes> changes_;  // by kind
  mutable PastJobs past_jobs_;
  std::set<PodKey> written_;  // pods that clients wrote to in the job's batch that is being applied
  uint64_t commit_ = 0;
  uint64_t version_ = 0;
  uint64_t started_ = 0;  // the version at the start
  uint64_t commits_ = 0;
  std::map<NodeId, core::NodeInfo> nodes_;
  struct NodeView {
    NodeId id = kNoNode;   // newest incarnation
    NodeId key = kNoNode;  // the first one
    uint64_t version = 0;
    PastPtr past;
  };
  static Shown shown_of(const core::NodeInfo& node, const NodeView& view) {
    return {.kind = Kind::node, .node = &node, .node_key = view.key, .version = view.version};
  }
  std::map<std::string, NodeView, std::less<>> node_names_;
  // The kept objects: per kind by namespace and name, and all by id.
  using KeptMap = std::map<std::pair<std::string, std::string>, std::shared_ptr<const KeptView>>;
  std::array<KeptMap, std::size(core::kKeptKinds)> kept_;
  std::unordered_map<uint64_t, std::shared_ptr<const KeptView>> kept_by_id_;
  std::set<std::string, std::less<>> terminating_;
  std::set<uint64_t> owned_, leaving_;
  void note_deletion(const KeptView& view);
  // The provided config maps requested so far, by namespace, and their namespaces by id. Ids count
  // down from the maximum.
  std::shared_ptr<const KeptView> provided(std::string_view ns) const;
  std::function<core::Kept(const std::string& ns)> provide_;
  std::string provided_name_;
  mutable std::map<std::string, std::shared_ptr<const KeptView>, std::less<>> provided_;
  mutable std::unordered_map<uint64_t, std::string> provided_by_id_;
  core::cluster::ShowShares shares_;
  UnreachedNodes unreached_;
  std::function<void()> listener_;
  RecordObserver* observer_ = nullptr;
};

}  // namespace muster::api
