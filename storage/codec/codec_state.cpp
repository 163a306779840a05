// Encodes snapshots and attempts. Index sets are gaps and lengths, attempt counts are runs,
// instants are relative to the last record.
#include "storage/codec/codec.hpp"
#include "storage/codec/codec_util.hpp"

#include <algorithm>

namespace muster::storage {
namespace {

using namespace codec;

struct AttemptRun {
  uint32_t first, count, next;
};

void write_attempts(const std::map<uint32_t, uint32_t>& attempts, wire::JobSnapshot::Builder out) {
  std::vector<AttemptRun> runs;
  for (const auto& [index, next] : attempts) {
    if (!runs.empty() && uint64_t{runs.back().first} + runs.back().count == index &&
        runs.back().next == next) {
      ++runs.back().count;
    } else {
      runs.push_back({index, 1, next});
    }
  }
  auto list = out.initAttempts(static_cast<uint32_t>(runs.size()));
  uint64_t end = 0;
  for (uint32_t i = 0; i < runs.size(); ++i) {
    auto to = list[i];
    to.setGap(static_cast<uint32_t>(runs[i].first - end));
    to.setCount(runs[i].count);
    to.setNext(runs[i].next);
    end = uint64_t{runs[i].first} + runs[i].count;
  }
}

std::map<uint32_t, uint32_t> attempts_back(wire::JobSnapshot::Reader in) {
  std::map<uint32_t, uint32_t> attempts;
  uint64_t index = 0;
  for (auto run : in.getAttempts()) {
    index += run.getGap();
    KJ_REQUIRE(index + run.getCount() <= uint64_t{UINT32_MAX} + 1, "attempts beyond the indexes");
    KJ_REQUIRE(attempts.size() + run.getCount() <= kPodsMax, "too many attempts");
    for (uint32_t i = 0; i < run.getCount(); ++i, ++index) {
      attempts.emplace_hint(attempts.end(), static_cast<uint32_t>(index), run.getNext());
    }
  }
  return attempts;
}

struct StepsRun {
  uint32_t first, count;
  core::Steps steps;
};

void write_steps(const std::map<uint32_t, core::Steps>& all, wire::JobSnapshot::Builder out) {
  if (all.empty()) return;
  std::vector<StepsRun> runs;
  for (const auto& [index, steps] : all) {
    if (!runs.empty() && runs.back().first + runs.back().count == index &&
        runs.back().steps == steps)
      ++runs.back().count;
    else
      runs.push_back({index, 1, steps});
  }
  auto list = out.initSteps(static_cast<uint32_t>(runs.size()));
  for (uint32_t i = 0; i < runs.size(); ++i) {
    auto to = list[i];
    to.setFirst(runs[i].first);
    to.setCount(runs[i].count);
    to.setMemory(runs[i].steps.memory);
    to.setTime(runs[i].steps.time);
  }
}

std::map<uint32_t, core::Steps> all_steps_back(wire::JobSnapshot::Reader in) {
  std::map<uint32_t, core::Steps> all;
  for (auto run : in.getSteps()) {
    const uint64_t end = uint64_t{run.getFirst()} + run.getCount();
    KJ_REQUIRE(end <= uint64_t{UINT32_MAX} + 1, "steps beyond the indexes");
    KJ_REQUIRE(all.size() + run.getCount() <= kPodsMax, "too many steps");
    for (uint64_t index = run.getFirst(); index < end; ++index)
      all.emplace_hint(all.end(), static_cast<uint32_t>(index),
                       steps_back(run.getMemory(), run.getTime()));
  }
  return all;
}

void write_pod(const core::Pod& pod, Millis base_ms, wire::Pod::Builder to) {
  // Fails to compile when a pod gets a member that is not written below.
  [[maybe_unused]] const auto& [key, created, node, bound, started, pid, restarts, readiness,
                                containers, runs, cpus, failures, ignored, disruptions, steps,
                                stopping, grace_ms, counted, action, spared, conditions, meta,
                                ended, end] = pod;
  to.setIndex(pod.key.index);
  to.setAttempt(pod.key.attempt);
  to.setCreated(instant(pod.created_ms, base_ms));
  to.setNode(pod.node);
  to.setBound(instant(pod.bound_ms, pod.created_ms));
  to.setStarted(instant(pod.started_at, pod.created_ms));
  to.setPid(pid.value_or(kNoPid));
  to.setRestarts(pod.restarts);
  to.setFailures(pod.failures);
  to.setIgnored(pod.ignored);
  to.setDisruptions(pod.disruptions);
  to.setMemoryStep(steps.memory);
  to.setTimeStep(steps.time);
  to.setStopping(instant(pod.stopping_at, pod.created_ms));
  to.setCounted(wire_enum<wire::Counted>(pod.counted));
  to.setIsEnded(pod.ended);
  to.setCause(wire::to_wire(pod.end.cause));
  to.setExitCode(pod.end.exit_code);
  to.setSignal(pod.end.signal);
  to.setEnded(instant(pod.end.ended_at, pod.created_ms));
  if (!pod.end.message.empty()) to.setMessage(text(pod.end.message));
  to.setReadiness(wire::to_wire(readiness));
  to.setGrace(grace(grace_ms));
  to.setAction(wire_enum<wire::FailureAction>(action));
  to.setSpared(spared);
  if (!conditions.empty()) {
    auto list = to.initConditions(static_cast<uint32_t>(conditions.size()));
    for (uint32_t i = 0; i < conditions.size(); ++i)
      write_condition(conditions[i], created, list[i]);
  }
  write_meta(meta, [&to](uint32_t n) { return to.initMeta(n); });
  write_containers(end.containers, created, [&to](uint32_t n) { return to.initContainers(n); });
  wire::write_usage(end.used, [&to] { return to.initUsed(); });
  write_containers_now(containers, created, [&to](uint32_t n) { return to.initNow(n); });
  write_runs(runs, created, [&to](uint32_t n) { return to.initRuns(n); });
  if (!cpus.empty()) to.setCpus(text(cpus));
}

core::Pod pod_back(wire::Pod::Reader in, Millis base_ms) {
  core::Pod pod;
  pod.key = {in.getIndex(), in.getAttempt()};
  pod.created_ms = instant_back(in.getCreated(), base_ms);
  pod.node = in.getNode();
  pod.bound_ms = instant_back(in.getBound(), pod.created_ms);
  pod.started_at = optional_instant_back(in.getStarted(), pod.created_ms);
  pod.pid = pid_back(in.getPid());
  pod.restarts = in.getRestarts();
  pod.failures = in.getFailures();
  pod.ignored = in.getIgnored();
  pod.disruptions = in.getDisruptions();
  pod.steps = steps_back(in.getMemoryStep(), in.getTimeStep());
  pod.stopping_at = optional_instant_back(in.getStopping(), pod.created_ms);
  pod.counted = counted_back(in.getCounted());
  pod.ended = in.getIsEnded();
  pod.end = {.cause = cause_back(in.getCause()),
             .exit_code = in.getExitCode(),
             .signal = in.getSignal(),
             .ended_at = instant_back(in.getEnded(), pod.created_ms),
             .message = text_back(in.getMessage()),
             .containers = containers_back(in.getContainers(), pod.created_ms),
             .used = wire::read_usage(in.getUsed())};
  pod.readiness = readiness_back(in.getReadiness());
  pod.grace_ms = grace_back(in.getGrace());
  pod.action = action_back(in.getAction());
  pod.spared = in.getSpared();
  for (auto one : in.getConditions()) pod.conditions.push_back(condition_back(one, pod.created_ms));
  pod.meta = meta_back(in.getMeta());
  pod.containers = containers_now_back(in.getNow(), pod.created_ms);
  pod.runs = runs_back(in.getRuns(), pod.created_ms);
  pod.cpus = text_back(in.getCpus());
  return pod;
}

void write_event(const core::JobEvent& event, Millis base_ms, wire::Event::Builder to) {
  [[maybe_unused]] const auto& [kind, at_ms, pod, nr] = event;
  static_assert(static_cast<int>(core::JobEvent::Kind::cancelled) ==
                static_cast<int>(wire::Event::Kind::CANCELLED));
  to.setKind(wire_enum<wire::Event::Kind>(event.kind));
  to.setAt(instant(event.at_ms, base_ms));
  to.setIndex(event.pod.index);
  to.setAttempt(event.pod.attempt);
  to.setNumber(event.nr);
}

core::JobEvent event_back(wire::Event::Reader in, Millis base_ms) {
  return {.kind = core_enum(in.getKind(), core::JobEvent::Kind::cancelled),
          .at_ms = instant_back(in.getAt(), base_ms),
          .pod = {in.getIndex(), in.getAttempt()},
          .nr = in.getNumber()};
}

void cancellations_back(wire::JobSnapshot::Reader in, Millis base_ms, core::JobState& s) {
  if (in.hasCancelled())
    s.cancelled = {instant_back(in.getCancelled().getAt(), base_ms),
                   text_back(in.getCancelled().getBy())};
  s.cancelled_indexes = set_back(in.getCancelledIndexes());
  for (auto from : in.getCancellations())
    s.cancellations.push_back({instant_back(from.getAt(), base_ms), text_back(from.getBy()),
                               set_back(from.getIndexes())});
  for (auto from : in.getStartTrouble())
    s.start_trouble[from.getNode()] = {instant_back(from.getAt(), base_ms),
                                       text_back(from.getWhy())};
}

core::JobState state_back(wire::JobSnapshot::Reader in) {
  core::JobState s;
  const Millis base_ms = s.last_record_ms = in.getLastRecordMs();
  s.generation = in.getGeneration();
  s.parallelism = in.getParallelism();
  s.completions = completions_back(in.getCompletions());
  s.admitted_ms = instant_back(in.getAdmitted(), base_ms);
  s.started_at = optional_instant_back(in.getStart(), base_ms);
  s.completed_at = optional_instant_back(in.getCompletion(), base_ms);
  s.deleted_at = optional_instant_back(in.getDeleted(), base_ms);
  s.background_deleted = in.getBackgroundDeleted();
  s.orphaned = in.getOrphaned();
  s.deletion_waits = in.getDeletionWaits();
  s.index_limits_off = in.getIndexLimitsOff();
  s.forgotten = in.getForgotten();
  s.synced = in.getSynced();
  for (auto condition : in.getConditions()) {
    s.conditions.push_back({.type = type_back(condition.getType()),
                            .status = condition.getStatus(),
                            .at_ms = instant_back(condition.getAt(), base_ms),
                            .reason = reason_back(condition.getReason()),
                            .message = text_back(condition.getMessage())});
  }
  s.completed = set_back(in.getCompleted());
  s.failed_indexes = set_back(in.getFailedIndexes());
  s.succeeded = in.getSucceeded();
  s.failed = in.getFailed();
  s.backoff_failures = in.getBackoffFailures();
  s.backoff_last_ms = instant_back(in.getBackoffLast(), base_ms);
  s.attempt_floor = in.getAttemptFloor();
  s.attempt_max = in.getAttemptMax();
  s.next_number = in.getNextNumber();
  s.attempts = attempts_back(in);
  s.steps = all_steps_back(in);
  for (auto from : in.getOpen()) {
    core::Pod pod = pod_back(from, base_ms);
    s.open.emplace_hint(s.open.end(), pod.key, std::move(pod));
  }
  for (auto from : in.getDeferred()) {
    core::Pod pod = pod_back(from, base_ms);
    s.deferred.emplace_hint(s.deferred.end(), pod.key.index, std::move(pod));
  }
  for (auto from : in.getFinished()) s.finished.push_back(pod_back(from, base_ms));
  for (auto from : in.getEvents()) s.events.push_back(event_back(from, base_ms));
  s.events_total = in.getEventsTotal();
  s.pods_created = in.getPodsCreated();
  s.external_status = text_back(in.getExternalStatus());
  s.own_conditions = text_back(in.getOwnConditions());
  if (in.hasBroken()) s.broken = break_back(in.getBroken());
  for (auto from : in.getInherited())
    s.inherited[from.getIndex()] = {.failures = from.getFailures(),
                                    .ignored = from.getIgnored(),
                                    .failed_ms = instant_back(from.getFailed(), base_ms),
                                    .disruptions = from.getDisruptions()};
  s.dependencies = dependencies_back(in.getDependencies());
  s.usage = {.used = wire::read_usage(in.getUsed()),
             .ran_ms = in.getRanMs(),
             .attempts = in.getAttemptsEnded(),
             .first_start = optional_instant_back(in.getFirstStart(), base_ms),
             .waited_ms = in.getWaitedMs(),
             .queue = text_back(in.getRanInQueue())};
  for (auto from : in.getFollowed())
    s.followed.push_back({.job = from.getJob(),
                          .name = text_back(from.getName()),
                          .known = {set_back(from.getPassed()), set_back(from.getFailed())},
                          .ended = from.getEnded()});
  if (in.hasHold()) s.hold = hold_back(in.getHold(), instant_back(in.getHold().getAt(), base_ms));
  if (in.hasOwnerHold())
    s.owner_hold = hold_back(in.getOwnerHold(), instant_back(in.getOwnerHold().getAt(), base_ms));
  if (in.hasPriority())
    s.overrides = overrides_back(in.getPriority(), instant_back(in.getPriority().getAt(), base_ms));
  cancellations_back(in, base_ms, s);
  for (auto from : in.getNotes()) s.notes.emplace(from.getNumber(), text_back(from.getText()));
  return s;
}

void write_notes(const std::map<uint64_t, std::string>& notes,
                 capnp::List<wire::Note>::Builder out) {
  unsigned i = 0;
  for (const auto& [number, note] : notes) {
    auto to = out[i++];
    to.setNumber(number);
    to.setText(text(note));
  }
}

void write_hold_and_overrides(const core::JobState& state, Millis base_ms,
                              wire::JobSnapshot::Builder out) {
  const auto write = [base_ms](const core::JobHeld& hold, wire::Hold::Builder to) {
    write_hold(hold, to);
    to.setAt(instant(hold.at_ms, base_ms));
  };
  if (state.hold) write(*state.hold, out.initHold());
  if (state.owner_hold) write(*state.owner_hold, out.initOwnerHold());
  if (const auto& overrides = state.overrides) {
    auto to = out.initPriority();
    write_overrides(*overrides, to);
    to.setAt(instant(overrides->at_ms, base_ms));
  }
}

void write_cancellations(const core::JobState& state, Millis base_ms,
                         wire::JobSnapshot::Builder out) {
  if (state.cancelled) {
    auto to = out.initCancelled();
    to.setBy(text(state.cancelled->by));
    to.setAt(instant(state.cancelled->at_ms, base_ms));
  }
  if (!state.cancelled_indexes.empty())
    write_set(state.cancelled_indexes, [&out](uint32_t n) { return out.initCancelledIndexes(n); });
  if (!state.cancellations.empty()) {
    auto list = out.initCancellations(static_cast<uint32_t>(state.cancellations.size()));
    unsigned i = 0;
    for (const auto& [at_ms, by, indexes] : state.cancellations) {
      auto to = list[i++];
      to.setBy(text(by));
      to.setAt(instant(at_ms, base_ms));
      write_set(indexes, [&to](uint32_t n) { return to.initIndexes(n); });
    }
  }
  if (state.start_trouble.empty()) return;
  auto list = out.initStartTrouble(static_cast<uint32_t>(state.start_trouble.size()));
  unsigned i = 0;
  for (const auto& [node, trouble] : state.start_trouble) {
    [[maybe_unused]] const auto& [at_ms, why] = trouble;
    auto to = list[i++];
    to.setNode(node);
    to.setAt(instant(at_ms, base_ms));
    to.setWhy(text(why));
  }
}

void write_conditions(const std::vector<core::Condition>& conditions, Millis base_ms,
                      capnp::List<wire::Condition>::Builder out) {
  unsigned i = 0;
  for (const auto& condition : conditions) {
    auto to = out[i++];
    to.setType(text(name(condition.type)));
    to.setStatus(condition.status);
    to.setAt(instant(condition.at_ms, base_ms));
    to.setReason(text(name(condition.reason)));
    to.setMessage(text(condition.message));
  }
}

void write_inherited(const std::map<uint32_t, core::FailureCounts>& inherited, Millis base_ms,
                     capnp::List<wire::FailureCounts>::Builder out) {
  unsigned i = 0;
  for (const auto& [index, counts] : inherited) {
    [[maybe_unused]] const auto& [failures, ignored, failed_ms, disruptions] = counts;
    auto to = out[i++];
    to.setIndex(index);
    to.setFailures(failures);
    to.setIgnored(ignored);
    to.setFailed(instant(failed_ms, base_ms));
    to.setDisruptions(disruptions);
  }
}

void write_followed(const std::vector<core::Followed>& followed,
                    capnp::List<wire::Followed>::Builder out) {
  unsigned i = 0;
  for (const auto& [job, name, known, ended] : followed) {
    auto to = out[i++];
    to.setJob(job);
    to.setName(text(name));
    write_set(known.passed, [&to](uint32_t n) { return to.initPassed(n); });
    write_set(known.failed, [&to](uint32_t n) { return to.initFailed(n); });
    to.setEnded(ended);
  }
}

void write_job_usage(const core::JobUsage& usage, Millis base_ms, wire::JobSnapshot::Builder out) {
  const auto& [used, ran_ms, attempts, first_start, waited_ms, queue] = usage;
  wire::write_usage(used, [&out] { return out.initUsed(); });
  out.setRanMs(ran_ms);
  out.setAttemptsEnded(attempts);
  out.setFirstStart(instant(first_start, base_ms));
  out.setWaitedMs(waited_ms);
  if (!queue.empty()) out.setRanInQueue(text(queue));
}

}  // namespace

std::string encode_state(const core::JobState& state, uint64_t sequence) {
  // Fails to compile when a job's state gets a member that is not written below.
  [[maybe_unused]] const auto& [generation, parallelism, completions, admitted, start, completion,
                                deleted, last_record, background_deleted, orphaned, deletion_waits,
                                forgotten, synced, conditions, completed, failed_indexes,
                                index_limits_off, succeeded, failed, backoff_failures, backoff_last,
                                attempt_floor, attempt_max, next_number, attempts, steps, open,
                                deferred, broken, inherited, finished, events, events_total,
                                pods_created, external_status, own_conditions, dependencies,
                                followed, usage, hold, owner_hold, overrides, notes, cancelled,
                                cancelled_indexes, cancellations, start_trouble] = state;
  const Millis base_ms = state.last_record_ms;
  capnp::MallocMessageBuilder message(4096);
  auto out = message.initRoot<wire::JobSnapshot>();
  out.setVersion(wire::SNAPSHOT_VERSION);
  out.setSequence(sequence);
  out.setGeneration(state.generation);
  out.setParallelism(state.parallelism);
  out.setCompletions(codec::completions(state.completions));
  out.setLastRecordMs(base_ms);
  out.setAdmitted(instant(state.admitted_ms, base_ms));
  out.setStart(instant(state.started_at, base_ms));
  out.setCompletion(instant(state.completed_at, base_ms));
  out.setDeleted(instant(state.deleted_at, base_ms));
  out.setBackgroundDeleted(state.background_deleted);
  out.setOrphaned(state.orphaned);
  out.setDeletionWaits(state.deletion_waits);
  out.setIndexLimitsOff(state.index_limits_off);
  out.setForgotten(state.forgotten);
  out.setSynced(state.synced);
  write_conditions(state.conditions, base_ms,
                   out.initConditions(static_cast<uint32_t>(state.conditions.size())));
  write_set(state.completed, [&out](uint32_t n) { return out.initCompleted(n); });
  write_set(state.failed_indexes, [&out](uint32_t n) { return out.initFailedIndexes(n); });
  out.setSucceeded(state.succeeded);
  out.setFailed(state.failed);
  out.setBackoffFailures(state.backoff_failures);
  out.setBackoffLast(instant(state.backoff_last_ms, base_ms));
  out.setAttemptFloor(state.attempt_floor);
  out.setAttemptMax(state.attempt_max);
  out.setNextNumber(state.next_number);
  write_attempts(state.attempts, out);
  write_steps(state.steps, out);
  uint32_t i = 0;
  auto open_out = out.initOpen(static_cast<uint32_t>(state.open.size()));
  for (const auto& [key, pod] : state.open) write_pod(pod, base_ms, open_out[i++]);
  i = 0;
  auto deferred_out = out.initDeferred(static_cast<uint32_t>(state.deferred.size()));
  for (const auto& [index, pod] : state.deferred) write_pod(pod, base_ms, deferred_out[i++]);
  i = 0;
  auto finished_out = out.initFinished(static_cast<uint32_t>(state.finished.size()));
  for (const auto& pod : state.finished) write_pod(pod, base_ms, finished_out[i++]);
  i = 0;
  auto events_out = out.initEvents(static_cast<uint32_t>(state.events.size()));
  for (const auto& event : state.events) write_event(event, base_ms, events_out[i++]);
  out.setEventsTotal(state.events_total);
  out.setPodsCreated(state.pods_created);
  if (!state.external_status.empty()) out.setExternalStatus(text(state.external_status));
  if (broken) write_break(*broken, out.initBroken());
  if (!inherited.empty())
    write_inherited(inherited, base_ms, out.initInherited(static_cast<uint32_t>(inherited.size())));
  if (!dependencies.empty())
    write_dependencies(dependencies,
                       out.initDependencies(static_cast<uint32_t>(dependencies.size())));
  write_job_usage(usage, base_ms, out);
  if (!followed.empty())
    write_followed(followed, out.initFollowed(static_cast<uint32_t>(followed.size())));
  write_hold_and_overrides(state, base_ms, out);
  write_cancellations(state, base_ms, out);
  if (!notes.empty()) write_notes(notes, out.initNotes(static_cast<uint32_t>(notes.size())));
  if (!state.own_conditions.empty()) out.setOwnConditions(text(state.own_conditions));
  return packed(message);
}

Result<Snapshot> decode_state(std::string_view bytes) {
  return unpacked<wire::JobSnapshot, Snapshot>(
      bytes, "a snapshot", wire::SNAPSHOT_VERSION, [](auto root) {
        return Snapshot{state_back(root), root.getSequence()};
      });
}

std::string encode_attempts(Millis at_ms, const std::vector<core::Pod>& closed) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::AttemptList>();
  out.setVersion(wire::ATTEMPTS_VERSION);
  out.setAtMs(at_ms);
  auto pods = out.initPods(static_cast<uint32_t>(closed.size()));
  uint32_t i = 0;
  for (const core::Pod& pod : closed) write_pod(pod, at_ms, pods[i++]);
  return packed(message);
}

Result<ClosedAttempts> decode_attempts(std::string_view bytes) {
  return unpacked<wire::AttemptList, ClosedAttempts>(
      bytes, "a list of attempts", wire::ATTEMPTS_VERSION, [](auto root) {
        ClosedAttempts attempts{root.getAtMs(), {}};
        for (auto pod : root.getPods()) attempts.pods.push_back(pod_back(pod, attempts.at_ms));
        return attempts;
      });
}

Result<AttemptsHead> attempts_head(std::string_view bytes) {
  return unpacked<wire::AttemptList, AttemptsHead>(
      bytes, "a list of attempts", wire::ATTEMPTS_VERSION, [](auto root) {
        return AttemptsHead{root.getAtMs(), root.getPods().size()};
      });
}

}  // namespace muster::storage
