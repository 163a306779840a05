// Converts ends of pods between the types of core and of types.capnp, for the wire and the journal.
// Enumerators have the same numbers on both sides.
#pragma once

#include "core/pod_end.hpp"
#include "schema/types.capnp.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::wire {

static_assert(static_cast<int>(core::EndCause::exited) == static_cast<int>(EndCause::EXITED));
static_assert(static_cast<int>(core::EndCause::killed) == static_cast<int>(EndCause::KILLED));
static_assert(static_cast<int>(core::EndCause::never_started) ==
              static_cast<int>(EndCause::NEVER_STARTED));
static_assert(static_cast<int>(core::EndCause::start_failed) ==
              static_cast<int>(EndCause::START_FAILED));
static_assert(static_cast<int>(core::EndCause::keeper_lost) ==
              static_cast<int>(EndCause::KEEPER_LOST));
static_assert(static_cast<int>(core::EndCause::agent_stopped) ==
              static_cast<int>(EndCause::AGENT_STOPPED));
static_assert(static_cast<int>(core::EndCause::fenced) == static_cast<int>(EndCause::FENCED));
static_assert(static_cast<int>(core::EndCause::deadline) == static_cast<int>(EndCause::DEADLINE));
static_assert(static_cast<int>(core::EndCause::out_of_memory) ==
              static_cast<int>(EndCause::OUT_OF_MEMORY));
static_assert(static_cast<int>(core::EndCause::node_lost) == static_cast<int>(EndCause::NODE_LOST));
static_assert(static_cast<int>(core::EndCause::node_deleted) ==
              static_cast<int>(EndCause::NODE_DELETED));
static_assert(static_cast<int>(core::EndCause::evicted) == static_cast<int>(EndCause::EVICTED));
static_assert(static_cast<int>(core::EndCause::returned) == static_cast<int>(EndCause::RETURNED));
static_assert(static_cast<int>(core::EndCause::worker_unreachable) ==
              static_cast<int>(EndCause::WORKER_UNREACHABLE));
static_assert(static_cast<int>(core::Readiness::ready) == static_cast<int>(Readiness::READY));
static_assert(static_cast<int>(core::Readiness::initializing) ==
              static_cast<int>(Readiness::INITIALIZING));
static_assert(static_cast<int>(core::Readiness::not_ready) ==
              static_cast<int>(Readiness::NOT_READY));

inline EndCause to_wire(core::EndCause cause) {
  return static_cast<EndCause>(cause);
}
inline Readiness to_wire(core::Readiness readiness) {
  return static_cast<Readiness>(readiness);
}
// nullopt: this version does not know the value.
inline std::optional<core::EndCause> from_wire(EndCause cause) {
  if (cause > EndCause::WORKER_UNREACHABLE) return std::nullopt;
  return static_cast<core::EndCause>(cause);
}
inline std::optional<core::Readiness> from_wire(Readiness readiness) {
  if (readiness > Readiness::NOT_READY) return std::nullopt;
  return static_cast<core::Readiness>(readiness);
}

// `init` creates the struct and is not called if nothing is known.
template <class Init>
void write_usage(const core::Usage& used, Init init) {
  if (!used.known()) return;
  Usage::Builder to = init();
  to.setUserUs(used.user_us);
  to.setSystemUs(used.system_us);
  to.setPeakBytes(used.peak_bytes);
}
inline core::Usage read_usage(Usage::Reader in) {
  return {in.getUserUs(), in.getSystemUs(), in.getPeakBytes()};
}

// `code` encodes a time as a number.
template <class Time, class Code>
void write_container(const core::ContainerEndOf<Time>& end, ContainerEnd::Builder to, Code code) {
  to.setCause(to_wire(end.cause));
  to.setExitCode(end.exit_code);
  to.setSignal(end.signal);
  to.setRestarts(end.restarts);
  if (end.started_at) to.setStarted(code(*end.started_at));
  to.setEnded(code(end.ended_at));
}

// `code` encodes a time as a number; `init(size)` creates the list and is not called for an empty
// one.
template <class Time, class Init, class Code>
void write_containers(const std::vector<core::ContainerEndOf<Time>>& ends, Init init, Code code) {
  if (ends.empty()) return;
  auto list = init(static_cast<unsigned>(ends.size()));
  for (unsigned i = 0; i < ends.size(); ++i) write_container(ends[i], list[i], code);
}

// As write_containers().
template <class Time, class Init, class Code>
void write_containers_now(const std::vector<core::ContainerNowOf<Time>>& all, Init init,
                          Code code) {
  if (all.empty()) return;
  auto list = init(static_cast<unsigned>(all.size()));
  for (unsigned i = 0; i < all.size(); ++i) {
    list[i].setPhase(static_cast<ContainerPhase>(all[i].phase));
    if (all[i].since) list[i].setSince(code(*all[i].since));
    list[i].setRestarts(all[i].restarts);
    if (all[i].last) write_container(*all[i].last, list[i].initLast(), code);
  }
}

// As write_containers().
template <class Time, class Init, class Code>
void write_runs(const std::vector<core::RunEndOf<Time>>& runs, Init init, Code code) {
  if (runs.empty()) return;
  auto list = init(static_cast<unsigned>(runs.size()));
  for (unsigned i = 0; i < runs.size(); ++i) {
    auto to = list[i];
    to.setContainer(runs[i].container);
    write_container(runs[i].end, to.initEnd(), code);
    write_usage(runs[i].used, [&to] { return to.initUsed(); });
  }
}

// `time` decodes a time; `cause` converts the cause to core's.
template <class Time, class Decode, class Cause>
core::ContainerEndOf<Time> read_container(ContainerEnd::Reader in, Decode time, Cause cause) {
  core::ContainerEndOf<Time> out{
      cause(in.getCause()), in.getExitCode(), in.getSignal(), in.getRestarts(), {},
      time(in.getEnded())};
  if (in.getStarted() != 0) out.started_at = time(in.getStarted());
  return out;
}

template <class Time, class Decode, class Cause>
core::RunEndOf<Time> read_run(RunEnd::Reader in, Decode time, Cause cause) {
  return {in.getContainer(), read_container<Time>(in.getEnd(), time, cause),
          read_usage(in.getUsed())};
}

// As read_container(). A phase of a later version is `waiting`.
template <class Time, class Decode, class Cause>
core::ContainerNowOf<Time> read_container_now(ContainerNow::Reader in, Decode time, Cause cause) {
  const bool known = in.getPhase() <= ContainerPhase::ENDED;
  core::ContainerNowOf<Time> out{.phase = known ? static_cast<core::ContainerPhase>(in.getPhase())
                                                : core::ContainerPhase::waiting,
                                 .restarts = in.getRestarts()};
  if (in.getSince() != 0) out.since = time(in.getSince());
  if (in.hasLast()) out.last = read_container<Time>(in.getLast(), time, cause);
  return out;
}

}  // namespace muster::wire
