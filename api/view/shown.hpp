// The read model's vocabulary: what is shown of one object, its key, and a change of it.
//
// Versions are resourceVersions: numbers of commits. A watch announces all but the last of several
// changes in one commit with the number before it (watch.hpp), so a client may know an object by a
// version that is one below the object's own.
#pragma once

#include "api/kube/kept_view.hpp"
#include "core/cluster/node_info.hpp"
#include "core/job/job.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace muster::api {

enum class Kind : uint8_t { job, pod, node, event, lease };
constexpr size_t kKinds = 5;

Kind kind_of(core::KeptKind kind);

// The lowest version by which a client may know a state that came with this commit: the number
// before it, unless the state `before` may be known by that number.
inline uint64_t told_since(uint64_t commit, uint64_t before) {
  return before + 1 < commit ? commit - 1 : commit;
}

// The key of an object for as long as it lives; stays valid when the View changes.
struct Key {
  Kind kind = Kind::job;
  JobId job = 0;
  uint64_t nr = 0;  // event: its number; node: its NodeId; kept object: its id (and job is 0)
  PodKey pod;
  auto operator<=>(const Key&) const = default;
};

// What is shown of one object. The pointers are valid until the View changes.
struct Shown {
  Kind kind = Kind::job;
  const core::Job* job = nullptr;  // job, pod and event
  const core::Pod* pod = nullptr;
  const core::NodeInfo* node = nullptr;
  const core::JobEvent* event = nullptr;
  const KeptView* kept = nullptr;  // lease, or an event that a client wrote; then there is no job
  uint64_t version = 0;            // as it is announced
  uint64_t own_version = 0;        // the object's, where a watch announces another; 0: the same
  uint64_t since = 0;              // of a job: told_since() of its version
};

Key key_of(const Shown& shown);

// The last state of something that is no longer shown.
struct Gone {
  std::shared_ptr<const core::Job> job;  // without pods and events; a pod's without status too
  std::optional<core::Pod> pod;          // for a pod
  std::optional<core::NodeInfo> node;    // for a node
  std::shared_ptr<const KeptView> kept;  // for a kept object
};

// Says which object changed, not what it is now; only a removal carries the last state.
struct Change {
  enum class Type : uint8_t { added, touched, removed };
  uint64_t commit = 0;
  Key key;
  Type type = Type::touched;
  bool passing = false;              // not durable: follows the commit with the same number
  std::shared_ptr<const Gone> gone;  // removed: what it was
};

// Whether a pod of this job is an object that clients see. One whose deletion was requested goes
// with its end, as soon as that is judged; the finished pods of a deleted job go with the job,
// unless they were orphaned.
bool shows(const core::Job& job, const core::Pod& pod);

}  // namespace muster::api
