// Dependency: a job waits for another one to end (muster.dev/after, ADR 42).
//
// The other job is identified by its id, which is looked up when the dependent job is created: a
// later job with the same name does not count.
#pragma once

#include "core/ids.hpp"
#include "core/spec/fields/after.hpp"

#include <cstdint>
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

// Whether an end is what the dependent job needs.
bool satisfies(DependencyEnd how, Needed needed);

}  // namespace muster::core
