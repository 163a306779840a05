// Writes seeds for the fuzz target codec: each record alone, all of them in one row, a snapshot and
// a node. Usage: fuzz_codec_seeds FOLDER.
#include "base/check.hpp"
#include "storage/codec/codec.hpp"

#include <fstream>
#include <memory>
#include <string>

namespace {

using namespace muster;

constexpr Millis kNow = 1'700'000'000'000;

core::IndexSet some(uint32_t first, uint32_t last) {
  core::IndexSet set;
  set.insert_range(first, last);
  return set;
}

std::vector<core::Record> records() {
  auto object = std::make_shared<core::JobObject>();
  object->spec.parallelism = 3;
  object->spec.completions = 9;
  core::PodsStarted started{.at_ms = kNow};
  started.starts.push_back({{0, 0}, 4711, 0, kNow});
  core::PodsEnded ended{.at_ms = kNow, .backoff_failures = 1, .backoff_last_ms = kNow};
  core::PodsEnded::One end;
  end.pod = {0, 0};
  end.end.exit_code = 3;
  end.end.ended_at = kNow;
  end.end.message = "boo";
  end.runs.push_back({.container = 1, .end = {.exit_code = 4, .ended_at = kNow}});
  ended.ends.push_back(end);
  core::PodsStopping stopping{.at_ms = kNow, .by_job = true};
  stopping.pods.push_back({{1, 0}, core::Counted::released});
  return {
      core::JobAdmitted{kNow, object},
      core::JobSpecChanged{kNow, 2, 4, 9, nullptr},
      core::JobStarted{kNow},
      core::PodsCreated{kNow, {{.first = 0, .count = 3, .attempt = 0}}},
      core::PodsBound{kNow, {{{0, 0}, 1}, {{1, 0}, 1}}},
      started,
      ended,
      stopping,
      core::PodConditionSet{kNow, {0, 0}, {"Custom", "True", kNow, "Reason", "words"}},
      core::PodMetaSet{kNow, {0, 0}, {{true, "queue", "fast"}, {false, "note", std::nullopt}}},
      core::ConditionsWritten{kNow, R"([{"type":"Quota","status":"True"}])"},
      core::JobSuspended{kNow, true},
      core::FinishDecided{kNow, false, core::ConditionReason::backoff_limit_exceeded, "too often"},
      core::StatusWritten{kNow, "{}"},
      core::JobFinished{kNow},
      core::JobDeleted{kNow, true, false},
      core::PodsRemoved{kNow, {{1, 0}}},
      core::IndexLimitsSet{kNow, false},
      core::GangBroken{kNow, {{1, 0}, true, true, "index 1 (attempt 0) failed"}},
      core::DependencyAdvanced{kNow, 7, {some(0, 4), some(6, 6)}},
      core::IndexesFailed{kNow, some(6, 6)},
      core::JobHeld{kNow, "olga", true, "the license server is down"},
      core::JobReleased{kNow, "olga"},
      core::OverridesSet{kNow, {100, "gpu", 3600}, "olga"},
      core::JobCancelled{kNow, "olga"},
      core::IndexesCancelled{kNow, "olga", some(2, 3)},
      core::JobForgotten{kNow}};
}

core::JobState state() {
  core::JobState s;
  s.generation = 2;
  s.parallelism = 3;
  s.completions = 9;
  s.admitted_ms = s.last_record_ms = kNow;
  s.started_at = kNow;
  s.completed.insert_range(1, 4);
  s.failed_indexes.insert(7);
  s.succeeded = 4;
  s.failed = 1;
  core::Pod pod{.key = {8, 1}, .created_ms = kNow, .node = 1, .bound_ms = kNow};
  s.open[pod.key] = pod;
  pod.key = {7, 0};
  pod.ended = true;
  s.finished.push_back(pod);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  MUSTER_CHECK(argc == 2, "which folder?");
  int number = 0;
  auto write = [&](char which, const std::string& row) {
    std::ofstream(std::string(argv[1]) + "/" + std::to_string(number++)) << which << row;
  };
  const auto all = records();
  for (const core::Record& record : all) write('\0', storage::encode_records({record}));
  write('\0', storage::encode_records(all));
  write('\1', storage::encode_state(state(), 12));
  core::NodeInfo node;
  node.id = 1;
  node.name = "n1";
  node.slots = 4;
  node.resources["nvidia.com/gpu"] = 2;
  node.spec.taints.push_back({"key", "value", "NoSchedule"});
  node.spec.labels["disk"] = "ssd";
  write('\2', storage::encode_node(node));
  return 0;
}
