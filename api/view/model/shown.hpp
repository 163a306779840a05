// The read model's vocabulary: a shown object, its key, and a change to it.
//
// Versions are resourceVersions: numbers of commits. If one commit has several changes, a watch
// announces all but the last with the number before it (watch.hpp), so the version a client knows
// may be one below the object's own.
#pragma once

#include "api/kube/objects/kept_view.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/job/fold/job.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace muster::api {

enum class Kind : uint8_t { job, pod, node, event, lease, config_map, name_space };
constexpr size_t kKinds = 7;

Kind kind_of(core::KeptKind kind);
// For a kind whose objects are all stored for clients; nothing for events and all other kinds.
std::optional<core::KeptKind> kept_kind_of(Kind kind);

// The lowest version under which a client may have seen a state introduced by this commit: the
// number before it, unless the previous state (version `before`) may have been seen under that
// number.
inline uint64_t known_since(uint64_t commit, uint64_t before) {
  return before + 1 < commit ? commit - 1 : commit;
}

// Identifies an object for its lifetime; stays valid when the View changes.
struct Key {
  Kind kind = Kind::job;
  JobId job = 0;
  uint64_t nr = 0;  // event: its number; node: its NodeId; kept object: its id (and job is 0)
  PodKey pod;
  auto operator<=>(const Key&) const = default;
};

// A shown object. The pointers are valid until the View changes.
struct Shown {
  Kind kind = Kind::job;
  const core::Job* job = nullptr;  // job, pod and event
  const core::Pod* pod = nullptr;
  const core::NodeInfo* node = nullptr;
  const core::JobEvent* event = nullptr;
  // Lease, config map, namespace, or an event that a client wrote; job is then null.
  const KeptView* kept = nullptr;
  uint64_t version = 0;      // as announced
  uint64_t own_version = 0;  // the object's own, for a change in a watch; else 0
  uint64_t since = 0;        // of a job: known_since() of its version; 0: unknown
  bool summary = false;      // of a job: render only what Sight::summary allows
};

Key key_of(const Shown& shown);

// The last state of an object that is no longer shown.
struct Gone {
  std::shared_ptr<const core::Job> job;  // without pods and events; for a pod, also without status
  std::optional<core::Pod> pod;          // set for a pod
  std::shared_ptr<const core::NodeInfo> node;  // set for a node
  std::shared_ptr<const KeptView> kept;        // set for a kept object
};

// Says which object changed, not its new state; only a removal carries the last state.
struct Change {
  enum class Type : uint8_t { added, touched, removed };
  uint64_t commit = 0;
  Key key;
  Type type = Type::touched;
  bool passing = false;              // not durable; comes after the commit with the same number
  std::shared_ptr<const Gone> gone;  // removed: the last state
};

// Whether clients see this pod. A pod whose deletion was requested disappears once its end is
// judged. The finished pods of a deleted job disappear with the job, unless they were orphaned.
bool shows(const core::Job& job, const core::Pod& pod);

}  // namespace muster::api
