// Dependency: a job waits for another one to end (muster.dev/after, ADR 42).
//
// The other job is identified by its id, which is looked up when the dependent job is created: a
// later job with the same name does not count.
//
// A job may also follow another one index by index (each:JOB): its index i may run once index i of
// the other has passed.
#pragma once

#include "core/ids.hpp"
#include "core/index_set.hpp"
#include "core/spec/fields/after.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::core {

struct Dependency {
  JobId job = 0;
  After after;
  bool operator==(const Dependency&) const = default;
};

enum class DependencyEnd : uint8_t {
  succeeded,  // Complete
  failed,     // Failed
  deleted,    // before it finished
  waived,     // the annotation was removed
};
std::string_view name(DependencyEnd how);  // "succeeded"

// How far the indexes of a job are. An index is in at most one of the sets.
struct Progress {
  IndexSet passed;  // have succeeded, or are not run by this job (muster.dev/indexes)
  IndexSet failed;
  bool operator==(const Progress&) const = default;
};
using ProgressPtr = std::shared_ptr<const Progress>;

// A job that this one follows index by index, and what is known of it. An index that is in one of
// the sets stays there, whatever its owner does to the other job later.
struct Followed {
  JobId job = 0;
  std::string name;
  Progress known;
  bool ended = false;  // no other index passes
  bool operator==(const Followed&) const = default;
};

// Whether other jobs wait for the end of a job and have not recorded it yet, and whether one of
// them follows it index by index.
struct Dependents {
  bool any = false;
  bool following = false;
};

// Whether an end is what the dependent job needs. If it follows the other job, each index decides
// for itself.
bool satisfies(DependencyEnd how, Needed needed);

}  // namespace muster::core
