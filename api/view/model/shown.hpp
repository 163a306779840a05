// The read model's vocabulary: a shown object, its key, and a change to it.
//
// Versions are resourceVersions. Every change has its own: the number of its commit, then its
// number within the commit. So they grow over restarts, since commits do, and say exactly which
// changes a client has seen.
#pragma once

#include "api/kube/objects/kept_view.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/job/fold/job.hpp"
#include "core/job/shown/past.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace muster::api {

enum class Kind : uint8_t {
  job,
  pod,
  node,
  event,
  lease,
  config_map,
  name_space,
  cron_job,
  queue,
  priority_class
};
constexpr size_t kKinds = 10;
Kind kind_of(core::KeptKind kind);
// For a kind whose objects are all stored for clients; nothing for events and all other kinds.
std::optional<core::KeptKind> kept_kind_of(Kind kind);

// Changes of one commit that have versions of their own. If there are more, the rest share the last
// one, and no watch can begin among them.
constexpr unsigned kChangeBits = 20;
constexpr uint64_t first_version(uint64_t commit) {
  return commit << kChangeBits;
}
constexpr uint64_t last_version(uint64_t commit) {
  return first_version(commit + 1) - 1;
}
constexpr uint64_t commit_of(uint64_t version) {
  return version >> kChangeBits;
}

// Stored objects come last in a commit, by their ids, so that their versions are the same after a
// restart. The last quarter is left to the health of nodes.
constexpr uint64_t kept_version(uint64_t commit, uint64_t id) {
  constexpr uint64_t kQuarter = uint64_t{1} << (kChangeBits - 2);
  return first_version(commit) + 2 * kQuarter + id % kQuarter;
}

// Identifies an object for its lifetime; stays valid when the View changes.
struct Key {
  Kind kind = Kind::job;
  JobId job = 0;
  // Event: its number; node: the first NodeId that its name had; kept object: its id (and job is
  // 0).
  uint64_t nr = 0;
  PodKey pod;
  auto operator<=>(const Key&) const = default;
};

// A shown object. The pointers are valid until the View changes.
struct Shown {
  Kind kind = Kind::job;
  const core::Job* job = nullptr;  // job, pod and event
  const core::Pod* pod = nullptr;
  const core::NodeInfo* node = nullptr;
  NodeId node_key = kNoNode;  // the first id that the node's name had
  const core::JobEvent* event = nullptr;
  // Lease, config map, namespace, CronJob, Queue, PriorityClass, or an event that a client wrote;
  // job is then null.
  const KeptView* kept = nullptr;
  uint64_t version = 0;
  bool stand_in = false;  // pod and event of a job that was unloaded: its version is the job's
  bool summary = false;   // of a job: render only what Sight::summary allows
};

Key key_of(const Shown& shown);

// An object as it was when it had some version. Which type is derived from its kind.
struct Past {
  virtual ~Past() = default;
};
using PastPtr = std::shared_ptr<const Past>;
struct PastJob : Past {
  explicit PastJob(core::JobPast of) : job(std::move(of)) {}
  core::JobPast job;
};
struct PastPod : Past {
  PastPod(std::shared_ptr<const core::Job> of, core::Pod that)
      : job(std::move(of)), pod(std::move(that)) {}
  std::shared_ptr<const core::Job> job;  // only its object
  core::Pod pod;
};
struct PastNode : Past {
  PastNode(const core::NodeInfo& that, NodeId its_key) : node(that), key(its_key) {}
  core::NodeInfo node;
  NodeId key;
};
struct PastKept : Past {
  explicit PastKept(std::shared_ptr<const KeptView> that) : kept(std::move(that)) {}
  std::shared_ptr<const KeptView> kept;
};

// A change to an object, with the object after it and before it. Changes of pods have the state
// only in part: `now` if a client wrote to the pod, `before` if it was removed. The events of jobs
// have none, as they never change.
struct Change {
  enum class Type : uint8_t { added, touched, removed };
  uint64_t version = 0;
  Key key;
  Type type = Type::touched;
  uint32_t bytes = 0;  // about, that are stored because of it
  PastPtr now, before;

  bool whole() const { return key.kind != Kind::pod && (now || before); }
};

// Whether clients see this pod. A pod whose deletion was requested disappears once its end is
// judged. The finished pods of a deleted job disappear with the job, unless they were orphaned.
bool shows(const core::Job& job, const core::Pod& pod);

}  // namespace muster::api
