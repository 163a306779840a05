// Records and nodes as bytes. Lists of pods that follow each other are written as runs.
#include "storage/codec.hpp"

#include "base/check.hpp"
#include "storage/codec_util.hpp"

#include <algorithm>

namespace muster::storage {
namespace {

using namespace codec;

// Splits `items` into runs: each is its first item and how many follow it by index and agree in the
// rest.
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
    admitted.setCompletions(r.object->spec.completions.value_or(-1));
  }
  void operator()(const core::JobSpecChanged& r) {
    auto changed = out.initJobSpecChanged();
    changed.setGeneration(r.generation);
    changed.setParallelism(r.parallelism);
    changed.setCompletions(r.completions);
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
      to.setHeldCounted(wire_enum<wire::Counted>(run.held_counted));
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
      auto to = list[i];
      to.setIndex(start.pod.index);
      to.setAttempt(start.pod.attempt);
      to.setPid(start.pid);
      to.setRestarts(start.restarts);
      to.setStarted(instant(start.started_ms, r.at_ms));
    }
  }
  void operator()(const core::PodsEnded& r) {
    auto ended = out.initPodsEnded();
    ended.setBackoffFailures(r.backoff_failures);
    ended.setBackoffLast(instant(r.backoff_last_ms, r.at_ms));
    auto list = ended.initEnds(static_cast<uint32_t>(r.ends.size()));
    for (uint32_t i = 0; i < r.ends.size(); ++i) {
      const auto& one = r.ends[i];
      auto to = list[i];
      to.setIndex(one.pod.index);
      to.setAttempt(one.pod.attempt);
      to.setExitCode(one.end.exit_code);
      to.setSignal(one.end.signal);
      to.setPid(one.pid);
      to.setRestarts(one.restarts);
      to.setEnded(instant(one.end.ended_ms, r.at_ms));
      to.setStarted(instant(one.started_ms, r.at_ms));
      to.setCause(wire_enum<wire::EndCause>(one.end.cause));
      to.setCounted(wire_enum<wire::Counted>(one.counted));
      to.setFailsIndex(one.fails_index);
      if (!one.end.message.empty()) to.setMessage(text(one.end.message));
    }
  }
  void operator()(const core::PodsStopping& r) {
    auto runs =
        runs_of(r.pods, [](const auto& a, const auto& b) { return a.counted == b.counted; });
    auto list = out.initPodsStopping(static_cast<uint32_t>(runs.size()));
    for (uint32_t i = 0; i < runs.size(); ++i) {
      auto to = list[i];
      to.setFirst(runs[i].first->pod.index);
      to.setCount(runs[i].second);
      to.setAttempt(runs[i].first->pod.attempt);
      to.setCounted(wire_enum<wire::Counted>(runs[i].first->counted));
    }
  }
  void operator()(const core::FinishDecided& r) {
    auto decided = out.initFinishDecided();
    decided.setSuccess(r.success);
    decided.setReason(text(r.reason));
    decided.setMessage(text(r.message));
  }
  void operator()(const core::JobFinished&) { out.setJobFinished(); }
  void operator()(const core::JobDeleted& r) { out.initJobDeleted().setBackground(r.background); }
  void operator()(const core::JobForgotten&) { out.setJobForgotten(); }
};

core::JobAdmitted admitted_back(wire::Record::Reader in) {
  auto admitted = in.getJobAdmitted();
  auto object = std::make_shared<core::JobObject>();
  object->meta.generation = admitted.getGeneration();
  object->spec.parallelism = admitted.getParallelism();
  if (admitted.getCompletions() >= 0) object->spec.completions = admitted.getCompletions();
  return {in.getAtMs(), std::move(object)};
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
                      .held_counted = counted_back(run.getHeldCounted())});
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
                        .pid = start.getPid(),
                        .restarts = start.getRestarts(),
                        .started_ms = instant_back(start.getStarted(), r.at_ms)});
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
    r.ends.push_back({.pod = {one.getIndex(), one.getAttempt()},
                      .end = {.cause = cause_back(one.getCause()),
                              .exit_code = one.getExitCode(),
                              .signal = one.getSignal(),
                              .ended_ms = instant_back(one.getEnded(), r.at_ms),
                              .message = text_back(one.getMessage())},
                      .pid = one.getPid(),
                      .restarts = one.getRestarts(),
                      .started_ms = instant_back(one.getStarted(), r.at_ms),
                      .counted = counted_back(one.getCounted()),
                      .fails_index = one.getFailsIndex()});
  }
  return r;
}

core::PodsStopping stopping_back(wire::Record::Reader in) {
  core::PodsStopping r{.at_ms = in.getAtMs()};
  uint64_t pods = 0;
  reserve_for(r.pods, in.getPodsStopping());
  for (auto run : in.getPodsStopping()) {
    auto counted = counted_back(run.getCounted());
    unroll(run, pods, [&r, counted](PodKey pod) { r.pods.push_back({pod, counted}); });
  }
  return r;
}

core::Record record_back(wire::Record::Reader in) {
  Millis at_ms = in.getAtMs();
  switch (in.which()) {
    case wire::Record::JOB_ADMITTED:
      return admitted_back(in);
    case wire::Record::JOB_SPEC_CHANGED: {
      auto changed = in.getJobSpecChanged();
      return core::JobSpecChanged{at_ms, changed.getGeneration(), changed.getParallelism(),
                                  changed.getCompletions(), nullptr};
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
      return core::FinishDecided{at_ms, decided.getSuccess(), text_back(decided.getReason()),
                                 text_back(decided.getMessage())};
    }
    case wire::Record::JOB_FINISHED:
      return core::JobFinished{at_ms};
    case wire::Record::JOB_DELETED:
      return core::JobDeleted{at_ms, in.getJobDeleted().getBackground()};
    case wire::Record::JOB_FORGOTTEN:
      return core::JobForgotten{at_ms};
  }
  KJ_FAIL_REQUIRE("unknown kind of record", static_cast<uint16_t>(in.which()));
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

std::string encode_node(const core::NodeInfo& node) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::NodeRow>();
  out.setVersion(wire::NODE_VERSION);
  out.setId(node.id);
  out.setName(text(node.name));
  out.setWorkDirId(text(node.work_dir_id));
  out.setBootId(text(node.boot_id));
  out.setSlots(node.slots);
  out.setCpuMillis(node.cpu_millis);
  out.setMemoryBytes(node.memory_bytes);
  auto labels = out.initLabels(static_cast<uint32_t>(node.labels.size()));
  uint32_t i = 0;
  for (const auto& [key, value] : node.labels) {
    labels[i].setKey(text(key));
    labels[i].setValue(text(value));
    ++i;
  }
  out.setAddress(text(node.address));
  out.setCreatedMs(node.created_ms);
  out.setUnschedulable(node.unschedulable);
  out.setGone(node.gone);
  return packed(message);
}

Result<core::NodeInfo> decode_node(std::string_view bytes) {
  return unpacked<wire::NodeRow, core::NodeInfo>(bytes, "a node", wire::NODE_VERSION, [](auto in) {
    core::NodeInfo node;
    node.id = in.getId();
    node.name = text_back(in.getName());
    node.work_dir_id = text_back(in.getWorkDirId());
    node.boot_id = text_back(in.getBootId());
    node.slots = in.getSlots();
    node.cpu_millis = in.getCpuMillis();
    node.memory_bytes = in.getMemoryBytes();
    for (auto label : in.getLabels())
      node.labels[text_back(label.getKey())] = text_back(label.getValue());
    node.address = text_back(in.getAddress());
    node.created_ms = in.getCreatedMs();
    node.unschedulable = in.getUnschedulable();
    node.gone = in.getGone();
    return node;
  });
}

}  // namespace muster::storage
