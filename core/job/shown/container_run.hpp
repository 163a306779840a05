// ContainerRun: which of a container's processes is the current one, for its logs.
//
// A container that is restarted in place has one process after the other; they are counted from 0.
#pragma once

#include "core/job/facts/pod.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace muster::core {

struct ContainerRun {
  bool begun = false;   // false: it has had no process
  bool over = false;    // its current process has ended
  int32_t current = 0;  // while it waits to be restarted: the one that has ended
  // The one that ended before, or while it waits to be restarted, the current one; absent: none.
  std::optional<int32_t> previous{};
  bool operator==(const ContainerRun&) const = default;
};

// `at`: the container's position in PodEnd::containers. `one`: the pod has no other.
ContainerRun container_run(const Pod& pod, size_t at, bool one);

}  // namespace muster::core
