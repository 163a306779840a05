#include "core/job/shown/container_run.hpp"

namespace muster::core {
namespace {

ContainerRun run(int32_t number, bool over, bool waits = false) {
  ContainerRun out{.begun = true, .over = over, .current = number};
  if (waits)
    out.previous = number;
  else if (number > 0)
    out.previous = number - 1;
  return out;
}

}  // namespace

ContainerRun container_run(const Pod& pod, size_t at, bool one) {
  if (pod.ended) {
    if (at < pod.end.containers.size()) {
      const ContainerEnd& end = pod.end.containers[at];
      return end.has_exit_code() ? run(end.restarts, true) : ContainerRun{.over = true};
    }
    // Of several containers, which of them ran is not known.
    return pod.started_at || !one ? run(one ? pod.restarts : 0, true) : ContainerRun{.over = true};
  }
  if (at < pod.containers.size()) {
    const ContainerNow& now = pod.containers[at];
    switch (now.phase) {
      case ContainerPhase::unborn:
        return {};
      case ContainerPhase::waiting:
        return run(now.restarts, true, true);
      case ContainerPhase::running:
        return run(now.restarts, false);
      case ContainerPhase::ended:
        return run(now.restarts, true);
    }
  }
  if (!pod.started_at) return {};
  // It has not been restarted, or that has not been reported.
  const bool waits = one && pod.readiness == Readiness::not_ready;
  return run(one ? pod.restarts : 0, waits, waits);
}

}  // namespace muster::core
