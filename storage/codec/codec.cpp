// Encodes records, nodes and kept objects. Pods with consecutive indexes are written as runs.
#include "storage/codec/codec.hpp"

#include "base/check.hpp"
#include "storage/codec/codec_util.hpp"

#include <algorithm>

namespace muster::storage {
namespace {

using namespace codec;

// Splits `items` into runs: each is its first item and the number of items that have consecutive
// indexes and otherwise agree.
template <class Item, class Agree>
std::vector<std::pair<const Item*, uint32_t>> runs_of(const std::vector<Item>& items, Agree agree) {
  std::vector<std::pair<const Item*, uint32_t>> runs;
  for (const Item& item : items) {
    if (!runs.empty()) {
      auto& [first, count] = runs.back();
      bool next = uint64_t{first->pod.index} + count == item.pod.index &&
                  first->pod.attempt == item.pod.attempt;
      if (next && agree(*first, item)) {
        ++count;
        continue;
      }
    }
    runs.emplace_back(&item, 1);
  }
  return runs;
}

// Calls each(PodKey) for the pods of a run.
template <class Run, class Each>
void unroll(Run run, uint64_t& pods, Each each) {
  KJ_REQUIRE(run.getCount() > 0 && uint64_t{run.getFirst()} + run.getCount() - 1 <= UINT32_MAX,
             "a run beyond the indexes");
  pods += run.getCount();
  KJ_REQUIRE(pods <= kPodsMax, "too many pods in one record");
  for (uint32_t i = 0; i < run.getCount(); ++i) each(PodKey{run.getFirst() + i, run.getAttempt()});
}

template <class Item, class List>
void reserve_for(std::vector<Item>& items, List runs) {
  uint64_t count = 0;
  for (auto run : runs) count += run.getCount();
  items.reserve(std::min(count, kPodsMax));
}

struct Writer {
  wire::Record::Builder out;

  void operator()(const core::JobAdmitted& r) {
    MUSTER_CHECK(r.object != nullptr);
    auto admitted = out.initJobAdmitted();
    admitted.setGeneration(r.object->meta.generation);
    admitted.setParallelism(r.object->spec.parallelism.value_or(1));
    admitted.setCompletions(completions(r.object->spec.completions));
    if (!r.after.empty())
      write_dependencies(r.after, admitted.initAfter(static_cast<uint32_t>(r.after.size())));
  }
  void operator()(const core::JobSpecChanged& r) {
    auto changed = out.initJobSpecChanged();
    changed.setGeneration(r.generation);
    changed.setParallelism(r.parallelism);
    changed.setCompletions(completions(r.completions));
  }
  void operator()(const core::JobStarted&) { out.setJobStarted(); }
  void operator()(const core::PodsCreated& r) {
    auto list = out.initPodsCreated(static_cast<uint32_t>(r.runs.size()));
    for (uint32_t i = 0; i < r.runs.size(); ++i) {
      const auto& run = r.runs[i];
      auto to = list[i];
      to.setFirst(run.first);
      to.setCount(run.count);
      to.setAttempt(run.attempt);
      to.setFailures(run.failures);
      to.setIgnored(run.ignored);
      to.setDeferredCounted(wire_enum<wire::Counted>(run.deferred_counted));
      to.setDisruptions(run.disruptions);
    }
  }
  void operator()(const core::PodsBound& r) {
    auto runs = runs_of(r.bindings, [](const auto& a, const auto& b) { return a.node == b.node; });
    auto list = out.initPodsBound(static_cast<uint32_t>(runs.size()));
    for (uint32_t i = 0; i < runs.size(); ++i) {
      auto to = list[i];
      to.setFirst(runs[i].first->pod.index);
      to.setCount(runs[i].second);
      to.setAttempt(runs[i].first->pod.attempt);
      to.setNode(runs[i].first->node);
    }
  }
  void operator()(const core::PodsStarted& r) {
    auto list = out.initPodsStarted(static_cast<uint32_t>(r.starts.size()));
    for (uint32_t i = 0; i < r.starts.size(); ++i) {
      const auto& start = r.starts[i];
      [[maybe_unused]] const auto& [pod, pid, restarts, started_ms, readiness, containers, cpus] =
          start;
      auto to = list[i];
      to.setIndex(start.pod.index);
      to.setAttempt(start.pod.attempt);
      to.setPid(start.pid.value_or(kNoPid));
      to.setRestarts(start.restarts);
      to.setStarted(instant(start.started_ms, r.at_ms));
      to.setReadiness(wire::to_wire(start.readiness));
      write_containers_now(containers, r.at_ms, [&to](uint32_t n) { return to.initContainers(n); });
      if (!cpus.empty()) to.setCpus(text(cpus));
    }
  }
  void operator()(const core::PodsEnded& r) {
    auto ended = out.initPodsEnded();
    ended.setBackoffFailures(r.backoff_failures);
    ended.setBackoffLast(instant(r.backoff_last_ms, r.at_ms));
    auto list = ended.initEnds(static_cast<uint32_t>(r.ends.size()));
    for (uint32_t i = 0; i < r.ends.size(); ++i) {
      const auto& one = r.ends[i];
      // Fails to compile when an end gets a member that is not written below.
      [[maybe_unused]] const auto& [pod, end, start, restarts, runs, counted, fails_index, action,
                                    raised] = one;
      [[maybe_unused]] const auto& [cause, exit_code, signal, ended_at, message, containers, used] =
          end;
      auto to = list[i];
      to.setIndex(one.pod.index);
      to.setAttempt(one.pod.attempt);
      to.setExitCode(one.end.exit_code);
      to.setSignal(one.end.signal);
      to.setPid(start ? start->pid : kNoPid);
      to.setRestarts(one.restarts);
      to.setEnded(instant(one.end.ended_at, r.at_ms));
      if (start) to.setStarted(instant(start->at, r.at_ms));
      to.setCause(wire::to_wire(one.end.cause));
      to.setCounted(wire_enum<wire::Counted>(one.counted));
      to.setFailsIndex(one.fails_index);
      if (!one.end.message.empty()) to.setMessage(text(one.end.message));
      to.setAction(wire_enum<wire::FailureAction>(one.action));
      to.setMemoryStep(raised.memory);
      to.setTimeStep(raised.time);
      write_containers(containers, r.at_ms, [&to](uint32_t n) { return to.initContainers(n); });
      wire::write_usage(used, [&to] { return to.initUsed(); });
      write_runs(runs, r.at_ms, [&to](uint32_t n) { return to.initRuns(n); });
    }
  }
  void operator()(const core::PodsStopping& r) {
    auto runs = runs_of(r.pods, [](const auto& a, const auto& b) {
      [[maybe_unused]] const auto& [pod, counted, fails_index, grace_ms] = a;
      return counted == b.counted && fails_index == b.fails_index && grace_ms == b.grace_ms;
    });
    auto stopping = out.initPodsStopping();
    stopping.setByOthers(!r.by_job);
    stopping.setBackoffFailures(r.backoff_failures);
    stopping.setBackoffLast(instant(r.backoff_last_ms, r.at_ms));
    auto list = stopping.initRuns(static_cast<uint32_t>(runs.size()));
    for (uint32_t i = 0; i < runs.size(); ++i) {
      auto to = list[i];
      to.setFirst(runs[i].first->pod.index);
      to.setCount(runs[i].second);
      to.setAttempt(runs[i].first->pod.attempt);
      to.setCounted(wire_enum<wire::Counted>(runs[i].first->counted));
      to.setFailsIndex(runs[i].first->fails_index);
      to.setGrace(grace(runs[i].first->grace_ms));
    }
  }
  void operator()(const core::PodConditionSet& r) {
    auto set = out.initPodConditionSet();
    set.setIndex(r.pod.index);
    set.setAttempt(r.pod.attempt);
    write_condition(r.condition, r.at_ms, set.initCondition());
  }
  void operator()(const core::PodsRemoved& r) {
    auto list = out.initPodsRemoved(static_cast<uint32_t>(r.pods.size()));
    for (uint32_t i = 0; i < r.pods.size(); ++i) {
      list[i].setFirst(r.pods[i].index);
      list[i].setCount(1);
      list[i].setAttempt(r.pods[i].attempt);
    }
  }
  void operator()(const core::JobSuspended& r) { out.setJobSuspended(r.suspended); }
  void operator()(const core::StatusWritten& r) { out.setStatusWritten(text(r.json)); }
  void operator()(const core::ConditionsWritten& r) { out.setConditionsWritten(text(r.json)); }
  void operator()(const core::PodMetaSet& r) {
    auto set = out.initPodMetaSet();
    set.setIndex(r.pod.index);
    set.setAttempt(r.pod.attempt);
    write_meta(r.changes, [&set](uint32_t n) { return set.initChanges(n); });
  }
  void operator()(const core::FinishDecided& r) {
    auto decided = out.initFinishDecided();
    decided.setSuccess(r.success);
    decided.setReason(text(name(r.reason)));
    decided.setMessage(text(r.message));
  }
  void operator()(const core::JobFinished&) { out.setJobFinished(); }
  void operator()(const core::JobDeleted& r) {
    auto deleted = out.initJobDeleted();
    deleted.setBackground(r.background);
    deleted.setOrphan(r.orphan);
    deleted.setWaits(r.waits);
  }
  void operator()(const core::JobForgotten&) { out.setJobForgotten(); }
  void operator()(const core::IndexLimitsSet& r) { out.setIndexLimitsSet(r.on); }
  void operator()(const core::GangBroken& r) { write_break(r.how, out.initGangBroken()); }
  void operator()(const core::DependencyEnded& r) {
    auto ended = out.initDependencyEnded();
    ended.setJob(r.job);
    ended.setHow(wire_enum<wire::DependencyEnd>(r.how));
  }
  void operator()(const core::DependencyAdvanced& r) {
    auto advanced = out.initDependencyAdvanced();
    advanced.setJob(r.job);
    write_set(r.more.passed, [&advanced](uint32_t n) { return advanced.initPassed(n); });
    write_set(r.more.failed, [&advanced](uint32_t n) { return advanced.initFailed(n); });
  }
  void operator()(const core::IndexesFailed& r) {
    write_set(r.indexes, [this](uint32_t n) { return out.initIndexesFailed(n); });
  }
  void operator()(const core::JobHeld& r) { write_hold(r, out.initJobHeld()); }
  void operator()(const core::JobReleased& r) { out.setJobReleased(text(r.by)); }
  void operator()(const core::OverridesSet& r) { write_overrides(r, out.initPrioritySet()); }
  void operator()(const core::JobCancelled& r) { out.setJobCancelled(text(r.by)); }
  void operator()(const core::IndexesCancelled& r) {
    auto to = out.initIndexesCancelled();
    to.setBy(text(r.by));
    write_set(r.indexes, [&to](uint32_t n) { return to.initIndexes(n); });
  }
};

core::JobAdmitted admitted_back(wire::Record::Reader in) {
  auto admitted = in.getJobAdmitted();
  auto object = std::make_shared<core::JobObject>();
  object->meta.generation = admitted.getGeneration();
  object->spec.parallelism = admitted.getParallelism();
  if (admitted.getCompletions() >= 0) object->spec.completions = admitted.getCompletions();
  return {in.getAtMs(), std::move(object), dependencies_back(admitted.getAfter())};
}

core::PodsCreated created_back(wire::Record::Reader in) {
  core::PodsCreated r{.at_ms = in.getAtMs()};
  auto list = in.getPodsCreated();
  r.runs.reserve(list.size());
  for (auto run : list) {
    r.runs.push_back({.first = run.getFirst(),
                      .count = run.getCount(),
                      .attempt = run.getAttempt(),
                      .failures = run.getFailures(),
                      .ignored = run.getIgnored(),
                      .deferred_counted = counted_back(run.getDeferredCounted()),
                      .disruptions = run.getDisruptions()});
  }
  return r;
}

core::PodsBound bound_back(wire::Record::Reader in) {
  core::PodsBound r{.at_ms = in.getAtMs()};
  uint64_t pods = 0;
  reserve_for(r.bindings, in.getPodsBound());
  for (auto run : in.getPodsBound()) {
    unroll(run, pods, [&r, node = run.getNode()](PodKey pod) {
      r.bindings.push_back({pod, node});
    });
  }
  return r;
}

core::PodsStarted started_back(wire::Record::Reader in) {
  core::PodsStarted r{.at_ms = in.getAtMs()};
  auto list = in.getPodsStarted();
  r.starts.reserve(list.size());
  for (auto start : list) {
    r.starts.push_back({.pod = {start.getIndex(), start.getAttempt()},
                        .pid = pid_back(start.getPid()),
                        .restarts = start.getRestarts(),
                        .started_ms = instant_back(start.getStarted(), r.at_ms),
                        .readiness = readiness_back(start.getReadiness()),
                        .containers = containers_now_back(start.getContainers(), r.at_ms),
                        .cpus = text_back(start.getCpus())});
  }
  return r;
}

core::PodsEnded ended_back(wire::Record::Reader in) {
  core::PodsEnded r{.at_ms = in.getAtMs()};
  auto ended = in.getPodsEnded();
  r.backoff_failures = ended.getBackoffFailures();
  r.backoff_last_ms = instant_back(ended.getBackoffLast(), r.at_ms);
  auto list = ended.getEnds();
  r.ends.reserve(list.size());
  for (auto one : list) {
    auto& end = r.ends.emplace_back(
        core::PodsEnded::One{.pod = {one.getIndex(), one.getAttempt()},
                             .end = {.cause = cause_back(one.getCause()),
                                     .exit_code = one.getExitCode(),
                                     .signal = one.getSignal(),
                                     .ended_at = instant_back(one.getEnded(), r.at_ms),
                                     .message = text_back(one.getMessage()),
                                     .containers = containers_back(one.getContainers(), r.at_ms),
                                     .used = wire::read_usage(one.getUsed())},
                             .restarts = one.getRestarts(),
                             .runs = runs_back(one.getRuns(), r.at_ms),
                             .counted = counted_back(one.getCounted()),
                             .fails_index = one.getFailsIndex(),
                             .action = action_back(one.getAction()),
                             .raised = steps_back(one.getMemoryStep(), one.getTimeStep())});
    if (const auto pid = pid_back(one.getPid()))
      end.start = {*pid,
                   optional_instant_back(one.getStarted(), r.at_ms).value_or(end.end.ended_at)};
  }
  return r;
}

core::PodsStopping stopping_back(wire::Record::Reader in) {
  auto stopping = in.getPodsStopping();
  core::PodsStopping r{.at_ms = in.getAtMs(), .by_job = !stopping.getByOthers()};
  r.backoff_failures = stopping.getBackoffFailures();
  r.backoff_last_ms = instant_back(stopping.getBackoffLast(), r.at_ms);
  uint64_t pods = 0;
  reserve_for(r.pods, stopping.getRuns());
  for (auto run : stopping.getRuns()) {
    core::PodsStopping::One one{
        {}, counted_back(run.getCounted()), run.getFailsIndex(), grace_back(run.getGrace())};
    unroll(run, pods, [&r, &one](PodKey pod) {
      one.pod = pod;
      r.pods.push_back(one);
    });
  }
  return r;
}

core::PodsRemoved removed_back(wire::Record::Reader in) {
  core::PodsRemoved r{.at_ms = in.getAtMs()};
  uint64_t pods = 0;
  for (auto run : in.getPodsRemoved())
    unroll(run, pods, [&r](PodKey pod) { r.pods.push_back(pod); });
  return r;
}

core::DependencyAdvanced advanced_back(wire::Record::DependencyAdvanced::Reader in, Millis at_ms) {
  return {at_ms, in.getJob(), {set_back(in.getPassed()), set_back(in.getFailed())}};
}

core::IndexesCancelled cancelled_back(wire::Cancelled::Reader in, Millis at_ms) {
  return {at_ms, text_back(in.getBy()), set_back(in.getIndexes())};
}

core::Record record_back(wire::Record::Reader in) {
  Millis at_ms = in.getAtMs();
  switch (in.which()) {
    case wire::Record::JOB_ADMITTED:
      return admitted_back(in);
    case wire::Record::JOB_SPEC_CHANGED: {
      auto changed = in.getJobSpecChanged();
      return core::JobSpecChanged{at_ms, changed.getGeneration(), changed.getParallelism(),
                                  completions_back(changed.getCompletions()), nullptr};
    }
    case wire::Record::JOB_STARTED:
      return core::JobStarted{at_ms};
    case wire::Record::PODS_CREATED:
      return created_back(in);
    case wire::Record::PODS_BOUND:
      return bound_back(in);
    case wire::Record::PODS_STARTED:
      return started_back(in);
    case wire::Record::PODS_ENDED:
      return ended_back(in);
    case wire::Record::PODS_STOPPING:
      return stopping_back(in);
    case wire::Record::FINISH_DECIDED: {
      auto decided = in.getFinishDecided();
      return core::FinishDecided{at_ms, decided.getSuccess(), reason_back(decided.getReason()),
                                 text_back(decided.getMessage())};
    }
    case wire::Record::JOB_FINISHED:
      return core::JobFinished{at_ms};
    case wire::Record::JOB_DELETED:
      return core::JobDeleted{at_ms, in.getJobDeleted().getBackground(),
                              in.getJobDeleted().getOrphan(), in.getJobDeleted().getWaits()};
    case wire::Record::POD_CONDITION_SET: {
      auto set = in.getPodConditionSet();
      return core::PodConditionSet{
          at_ms, {set.getIndex(), set.getAttempt()}, condition_back(set.getCondition(), at_ms)};
    }
    case wire::Record::PODS_REMOVED:
      return removed_back(in);
    case wire::Record::JOB_SUSPENDED:
      return core::JobSuspended{at_ms, in.getJobSuspended()};
    case wire::Record::STATUS_WRITTEN:
      return core::StatusWritten{at_ms, text_back(in.getStatusWritten())};
    case wire::Record::INDEX_LIMITS_SET:
      return core::IndexLimitsSet{at_ms, in.getIndexLimitsSet()};
    case wire::Record::CONDITIONS_WRITTEN:
      return core::ConditionsWritten{at_ms, text_back(in.getConditionsWritten())};
    case wire::Record::POD_META_SET: {
      auto set = in.getPodMetaSet();
      return core::PodMetaSet{
          at_ms, {set.getIndex(), set.getAttempt()}, meta_back(set.getChanges())};
    }
    case wire::Record::GANG_BROKEN:
      return core::GangBroken{at_ms, break_back(in.getGangBroken())};
    case wire::Record::DEPENDENCY_ENDED: {
      auto ended = in.getDependencyEnded();
      return core::DependencyEnded{at_ms, ended.getJob(),
                                   core_enum(ended.getHow(), core::DependencyEnd::waived)};
    }
    case wire::Record::DEPENDENCY_ADVANCED:
      return advanced_back(in.getDependencyAdvanced(), at_ms);
    case wire::Record::INDEXES_FAILED:
      return core::IndexesFailed{at_ms, set_back(in.getIndexesFailed())};
    case wire::Record::JOB_HELD:
      return hold_back(in.getJobHeld(), at_ms);
    case wire::Record::JOB_RELEASED:
      return core::JobReleased{at_ms, text_back(in.getJobReleased())};
    case wire::Record::PRIORITY_SET:
      return overrides_back(in.getPrioritySet(), at_ms);
    case wire::Record::JOB_CANCELLED:
      return core::JobCancelled{at_ms, text_back(in.getJobCancelled())};
    case wire::Record::INDEXES_CANCELLED:
      return cancelled_back(in.getIndexesCancelled(), at_ms);
    case wire::Record::JOB_FORGOTTEN:
      return core::JobForgotten{at_ms};
  }
  KJ_FAIL_REQUIRE("unknown kind of record", static_cast<uint16_t>(in.which()));
}

void write_labels(const core::StringMap& labels, capnp::List<wire::Label>::Builder out) {
  uint32_t i = 0;
  for (const auto& [key, value] : labels) {
    out[i].setKey(text(key));
    out[i++].setValue(text(value));
  }
}

void write_resources(const std::map<std::string, int64_t>& resources,
                     capnp::List<wire::Resource>::Builder out) {
  uint32_t i = 0;
  for (const auto& [name, count] : resources) {
    out[i].setName(text(name));
    out[i++].setCount(count);
  }
}

core::StringMap labels_back(capnp::List<wire::Label>::Reader list) {
  core::StringMap labels;
  for (auto label : list) labels[text_back(label.getKey())] = text_back(label.getValue());
  return labels;
}

}  // namespace

std::string encode_records(const std::vector<core::Record>& records) {
  capnp::MallocMessageBuilder message(4096);
  auto root = message.initRoot<wire::RecordList>();
  root.setVersion(wire::RECORDS_VERSION);
  auto list = root.initRecords(static_cast<uint32_t>(records.size()));
  for (uint32_t i = 0; i < records.size(); ++i) {
    list[i].setAtMs(core::at(records[i]));
    std::visit(Writer{list[i]}, records[i]);
  }
  return packed(message);
}

Result<std::vector<core::Record>> decode_records(std::string_view bytes) {
  using Records = std::vector<core::Record>;
  return unpacked<wire::RecordList, Records>(bytes, "records", wire::RECORDS_VERSION,
                                             [](auto root) {
                                               Records records;
                                               records.reserve(root.getRecords().size());
                                               for (auto record : root.getRecords())
                                                 records.push_back(record_back(record));
                                               return records;
                                             });
}

void write_claims(const core::NodeClaims& claims, wire::NodeClaims::Builder out) {
  const auto& [patterns, slots_max, resources_max, pool] = claims;
  auto labels = out.initLabels(static_cast<uint32_t>(patterns.size()));
  for (uint32_t i = 0; i < patterns.size(); ++i) labels.set(i, text(patterns[i]));
  out.setSlotsMax(slots_max);
  write_resources(resources_max, out.initResources(static_cast<uint32_t>(resources_max.size())));
  if (!pool.empty()) out.setPool(text(pool));
}

core::NodeClaims claims_back(wire::NodeClaims::Reader in) {
  core::NodeClaims claims{.labels = {},
                          .slots_max = in.getSlotsMax(),
                          .resources_max = {},
                          .pool = text_back(in.getPool())};
  for (auto pattern : in.getLabels()) claims.labels.push_back(text_back(pattern));
  for (auto one : in.getResources())
    claims.resources_max[text_back(one.getName())] = one.getCount();
  return claims;
}

std::string encode_node(const core::NodeInfo& node) {
  // Fails to compile when a node gets a member that is neither written below nor kept in memory
  // only.
  [[maybe_unused]] const auto& [id, name, work_dir_id, boot_id, secret, slots, cpu_millis,
                                memory_bytes, resources, node_labels, address, ip, strangers,
                                created_ms, left_ms, spec, gone, deleted, health, draining, trouble,
                                heartbeat_ms, changed_ms, loss_held, limits, agent_version,
                                keeper_version, check, starts_failing, until_ms] = node;
  [[maybe_unused]] const auto& [unschedulable, taints, own_labels, annotations, managers, reasons] =
      spec;
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::NodeRow>();
  out.setVersion(wire::NODE_VERSION);
  out.setId(node.id);
  out.setName(text(node.name));
  out.setWorkDirId(text(node.work_dir_id));
  out.setBootId(text(node.boot_id));
  out.setSecret(text(node.secret));
  out.setSlots(node.slots);
  out.setCpuMillis(node.cpu_millis);
  out.setMemoryBytes(node.memory_bytes);
  write_labels(node.labels, out.initLabels(static_cast<uint32_t>(node.labels.size())));
  write_labels(own_labels, out.initOwnLabels(static_cast<uint32_t>(own_labels.size())));
  write_labels(annotations, out.initAnnotations(static_cast<uint32_t>(annotations.size())));
  write_resources(resources, out.initResources(static_cast<uint32_t>(resources.size())));
  uint32_t i = 0;
  auto taints_out = out.initTaints(static_cast<uint32_t>(taints.size()));
  for (const auto& taint : taints) {
    taints_out[i].setKey(text(taint.key));
    taints_out[i].setValue(text(taint.value));
    taints_out[i++].setEffect(text(taint.effect));
  }
  i = 0;
  auto strangers_out = out.initStrangers(static_cast<uint32_t>(strangers.size()));
  for (const PodId& pod : strangers) {
    strangers_out[i].setJob(pod.job);
    strangers_out[i].setIndex(pod.index);
    strangers_out[i++].setAttempt(pod.attempt);
  }
  out.setAddress(text(node.address));
  out.setIp(text(node.ip));
  out.setCreatedMs(node.created_ms);
  out.setLeftMs(left_ms);
  out.setUnschedulable(unschedulable);
  out.setManagers(text(managers));
  out.setGone(node.gone);
  out.setDeleted(deleted);
  i = 0;
  auto reasons_out = out.initReasons(static_cast<uint32_t>(reasons.size()));
  for (const auto& [what, by, at_ms, why] : reasons) {
    auto to = reasons_out[i++];
    to.setWhat(text(what));
    to.setBy(text(by));
    to.setAtMs(at_ms);
    to.setText(text(why));
  }
  return packed(message);
}

Result<core::NodeInfo> decode_node(std::string_view bytes) {
  return unpacked<wire::NodeRow, core::NodeInfo>(bytes, "a node", wire::NODE_VERSION, [](auto in) {
    core::NodeInfo node;
    node.id = in.getId();
    node.name = text_back(in.getName());
    node.work_dir_id = text_back(in.getWorkDirId());
    node.boot_id = text_back(in.getBootId());
    node.secret = text_back(in.getSecret());
    node.slots = in.getSlots();
    node.cpu_millis = in.getCpuMillis();
    node.memory_bytes = in.getMemoryBytes();
    node.labels = labels_back(in.getLabels());
    node.spec.labels = labels_back(in.getOwnLabels());
    node.spec.annotations = labels_back(in.getAnnotations());
    for (auto one : in.getResources()) node.resources[text_back(one.getName())] = one.getCount();
    for (auto one : in.getTaints())
      node.spec.taints.push_back(
          {text_back(one.getKey()), text_back(one.getValue()), text_back(one.getEffect())});
    for (auto one : in.getStrangers())
      node.strangers.push_back({one.getJob(), one.getIndex(), one.getAttempt()});
    node.address = text_back(in.getAddress());
    node.ip = text_back(in.getIp());
    node.created_ms = in.getCreatedMs();
    node.left_ms = in.getLeftMs();
    node.spec.unschedulable = in.getUnschedulable();
    node.spec.managers = text_back(in.getManagers());
    node.gone = in.getGone();
    node.deleted = in.getDeleted();
    for (auto one : in.getReasons())
      node.spec.reasons.push_back({text_back(one.getWhat()), text_back(one.getBy()), one.getAtMs(),
                                   text_back(one.getText())});
    return node;
  });
}

std::string encode_kept(const core::Kept& kept) {
  const auto& [kind, id, ns, name, uid, json, written_ms, version, owner] = kept;
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::KeptRow>();
  out.setVersion(wire::KEPT_VERSION);
  out.setKind(static_cast<uint8_t>(kind));
  out.setId(id);
  out.setNamespace(text(ns));
  out.setName(text(name));
  out.setUid(text(uid));
  out.setJson(text(json));
  out.setWrittenMs(written_ms);
  out.setCommit(version);
  if (owner) {
    out.setOwned(true);
    out.setOwnerUid(*owner);
  }
  return packed(message);
}

Result<core::Kept> decode_kept(std::string_view bytes) {
  return unpacked<wire::KeptRow, core::Kept>(
      bytes, "a kept object", wire::KEPT_VERSION, [](auto in) -> core::Kept {
        KJ_REQUIRE(in.getKind() < std::size(core::kKeptKinds), "unknown kind");
        return {.kind = static_cast<core::KeptKind>(in.getKind()),
                .id = in.getId(),
                .ns = text_back(in.getNamespace()),
                .name = text_back(in.getName()),
                .uid = text_back(in.getUid()),
                .json = text_back(in.getJson()),
                .written_ms = in.getWrittenMs(),
                .version = in.getCommit(),
                .owner = in.getOwned() ? std::optional(in.getOwnerUid()) : std::nullopt};
      });
}

std::string encode_token(const core::Token& token) {
  const auto& [id, kind, subject, uid, hash, by, made_ms, until_ms, used_keys, uses_max, claims] =
      token;
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::TokenRow>();
  out.setVersion(wire::TOKEN_VERSION);
  out.setId(text(id));
  out.setOfUser(kind == core::TokenKind::user);
  out.setOfCoordinator(kind == core::TokenKind::coordinator);
  out.setSubject(text(subject));
  out.setUid(uid);
  out.setHash(text(hash));
  out.setBy(text(by));
  out.setMadeMs(made_ms);
  out.setUntilMs(until_ms);
  const bool of_pool = kind == core::TokenKind::pool;
  if (of_pool) {
    out.setUsesMax(uses_max);
    auto keys = out.initUsedKeys(static_cast<uint32_t>(used_keys.size()));
    for (uint32_t i = 0; i < used_keys.size(); ++i) keys.set(i, text(used_keys[i]));
  } else if (!used_keys.empty()) {
    out.setUsedKey(text(used_keys.front()));
  }
  if (of_pool || kind == core::TokenKind::node) write_claims(claims, out.initClaims());
  return packed(message);
}

Result<core::Token> decode_token(std::string_view bytes) {
  return unpacked<wire::TokenRow, core::Token>(
      bytes, "a token", wire::TOKEN_VERSION, [](auto in) -> core::Token {
        std::vector<std::string> used_keys;
        if (in.getUsedKey().size() > 0) used_keys.push_back(text_back(in.getUsedKey()));
        for (auto key : in.getUsedKeys()) used_keys.push_back(text_back(key));
        return {.id = text_back(in.getId()),
                .kind = in.getOfUser()          ? core::TokenKind::user
                        : in.getOfCoordinator() ? core::TokenKind::coordinator
                        : in.getUsesMax() > 0   ? core::TokenKind::pool
                                                : core::TokenKind::node,
                .subject = text_back(in.getSubject()),
                .uid = in.getUid(),
                .hash = text_back(in.getHash()),
                .by = text_back(in.getBy()),
                .made_ms = in.getMadeMs(),
                .until_ms = in.getUntilMs(),
                .used_keys = std::move(used_keys),
                .uses_max = std::max(in.getUsesMax(), 1u),
                .claims = in.hasClaims() ? claims_back(in.getClaims()) : core::NodeClaims{}};
      });
}

std::string encode_claims(const core::NodeClaims& claims) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::ClaimsRow>();
  out.setVersion(wire::CLAIMS_VERSION);
  write_claims(claims, out.initClaims());
  return packed(message);
}

Result<core::NodeClaims> decode_claims(std::string_view bytes) {
  return unpacked<wire::ClaimsRow, core::NodeClaims>(
      bytes, "a node's claims", wire::CLAIMS_VERSION,
      [](auto in) { return claims_back(in.getClaims()); });
}

}  // namespace muster::storage
