// A View that tests fill, with jobs to put in it.
#pragma once

#include "api/kube/objects/manifest.hpp"
#include "api/view/model/view.hpp"
#include "tests/unit/api/admit.hpp"

#include <memory>
#include <string>
#include <vector>

namespace muster::api::testing {

constexpr Millis kStart = 1'700'000'000'000;  // 2023-11-14T22:13:20Z

inline core::JobObjectPtr make_job(const std::string& name, const std::string& uid,
                                   int completions = 3, const std::string& more = "",
                                   const std::string& ns = "default",
                                   const std::string& of_container = "") {
  const std::string n = std::to_string(completions);
  auto parsed = parse_job(
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":")" + name +
          R"("},"spec":{"completionMode":"Indexed","completions":)" + n + R"(,"parallelism":)" + n +
          more +
          R"(,"template":{"metadata":{"labels":{"team":"blue"}},"spec":{"restartPolicy":"Never",)"
          R"("containers":[{"name":"main","image":"none","command":["true"])" +
          of_container + "}]}}}}",
      FieldValidation::strict);
  MUSTER_CHECK(parsed.ok(), parsed.error().message);
  auto job = admit_job(std::move(*parsed), {ns, uid, kStart, "bcdfg"});
  MUSTER_CHECK(job.ok(), job.error().message);
  return *job;
}

inline std::string uid_of(int n) {
  const std::string digits = std::to_string(n);
  return "00000000-0000-4000-8000-" + std::string(12 - digits.size(), '0') + digits;
}

inline core::NodeInfo make_node(NodeId id, const std::string& name, core::NodeInfo::Health health) {
  core::NodeInfo node;
  node.id = id;
  node.name = name;
  node.work_dir_id = uid_of(static_cast<int>(1000 + id));
  node.boot_id = "boot-" + std::to_string(id);
  node.slots = 4;
  node.cpu_millis = 4000;
  node.memory_bytes = 8u << 20;
  node.labels = {{"zone", "a"}};
  node.created_ms = kStart;
  node.health = health;
  return node;
}

// Commits to the View, one commit per call. Each returns the View's version then.
class Feeder {
 public:
  explicit Feeder(View& view) : view_(view) {}

  uint64_t records(JobId job, std::vector<core::Record> records) {
    core::Committed committed;
    committed.commit = ++commit_;
    auto batch = std::make_shared<core::JobRecords>();
    batch->job = job;
    batch->records = std::move(records);
    committed.jobs.push_back(batch);
    view_.commit(committed);
    return view_.version();
  }
  uint64_t node(core::NodeInfo node) {
    core::Committed committed;
    committed.commit = ++commit_;
    committed.nodes.push_back(std::move(node));
    view_.commit(committed);
    return view_.version();
  }
  // Writes as the journal does: the version is the number of the commit.
  uint64_t kept(const core::KeptPtr& seen, const core::KeptPtr& next) {
    core::Committed committed;
    committed.commit = ++commit_;
    auto now = std::make_shared<core::Kept>(next ? *next : *seen);
    if (next) now->id = seen ? seen->id : ++last_kept_;
    if (next) now->version = committed.commit;
    committed.kept.push_back({std::move(now), next == nullptr});
    view_.commit(committed);
    return view_.version();
  }
  uint64_t admit(JobId id, core::JobObjectPtr object) {
    return records(id, {core::JobAdmitted{kStart, std::move(object)}});
  }
  uint64_t create(JobId id, uint32_t first, uint32_t count, uint32_t attempt = 0) {
    return records(
        id, {core::PodsCreated{kStart, {{.first = first, .count = count, .attempt = attempt}}}});
  }
  uint64_t bind(JobId id, PodKey pod, NodeId node = 1) {
    return records(id, {core::PodsBound{kStart + 1000, {{pod, node}}}});
  }
  uint64_t start(JobId id, PodKey pod, int32_t pid = 4711) {
    return records(id, {core::PodsStarted{kStart + 2000, {{pod, pid, 0, kStart + 2000}}}});
  }
  static core::PodsEnded::One end_of(PodKey pod, int32_t exit_code,
                                     core::Counted counted = core::Counted::succeeded) {
    core::PodsEnded::One one;
    one.pod = pod;
    one.end.exit_code = exit_code;
    one.end.ended_at = kStart + 3000;
    one.counted = counted;
    return one;
  }
  uint64_t end(JobId id, PodKey pod, int32_t exit_code,
               core::Counted counted = core::Counted::succeeded) {
    return records(id, {core::PodsEnded{kStart + 3000, {end_of(pod, exit_code, counted)}, 0, 0}});
  }

 private:
  View& view_;
  uint64_t commit_ = 0;
  uint64_t last_kept_ = 0;
};

}  // namespace muster::api::testing
