// What one pod end costs the coordinator, by job size: decide, apply and encode, without disk or
// processes.
//
// A job of N indexes runs with parallelism 1000. Every third index fails, with no retries, so both
// index sets are as fragmented as they can be. Ends arrive 50 to a report. The middle third of the
// run is timed, when the sets are long. The cost of an end must not grow with the job: the last
// line prints the ratio of the slowest size to the fastest.
#include "core/job/rules/decide.hpp"
#include "core/spec/rules/defaults.hpp"
#include "storage/codec/codec.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

namespace muster {
namespace {

constexpr int32_t kParallelism = 1000;
constexpr size_t kList = 50;  // ends per report

struct Cost {
  double ns = 0;         // per end, including creating and binding its replacement
  double bytes = 0;      // journaled per pod
  size_t intervals = 0;  // in completedIndexes, after the timed part
};

core::JobObjectPtr object(int32_t n) {
  auto object = std::make_shared<core::JobObject>();
  object->meta.name = "cost";
  object->meta.uid = "00000000-0000-4000-8000-000000000001";
  object->spec.completion_mode = "Indexed";
  object->spec.completions = n;
  object->spec.parallelism = std::min(kParallelism, n);
  object->spec.backoff_limit_per_index = 0;
  object->spec.pod.containers.resize(1);
  object->spec.pod.restart_policy = "Never";
  core::apply_defaults(object->meta, object->spec);
  return object;
}

Cost run(int32_t n) {
  core::JobObjectPtr job_object = object(n);
  core::Job job(1, job_object);
  Millis now = 1'767'225'600'000;
  job.apply(core::JobAdmitted{now, job_object});
  std::deque<PodKey> running;
  uint64_t bytes = 0, pods = 0;
  auto sync = [&](std::vector<core::Event> events) {
    core::Decision decision = core::decide(job, events, ++now, {});
    if (!decision.records.empty()) bytes += storage::encode_records(decision.records).size();
  };
  auto fill = [&] {
    sync({core::TimePassed{}});
    while (!job.pending().empty()) {
      std::vector<PodKey> waiting(job.pending().begin(), job.pending().end());
      sync({core::SlotsGranted{{{1, static_cast<uint32_t>(waiting.size())}}, {{1, 1}}}});
      running.insert(running.end(), waiting.begin(), waiting.end());
      sync({core::TimePassed{}});
    }
  };
  fill();
  // The first third warms up; the second is timed, up to 200,000 ends.
  const uint64_t from = static_cast<uint64_t>(n) / 3;
  const uint64_t until = from + std::min<uint64_t>(std::max(n / 3, 1), 200'000);
  double ns = 0;
  uint64_t timed = 0, bytes_before = 0;
  while (!running.empty() && pods < until) {
    core::PodsReported report;
    report.node = 1;
    for (size_t i = 0; i < kList && !running.empty(); ++i) {
      core::PodsReported::Ended end;
      end.pod = running.front();
      running.pop_front();
      end.exit_code = end.pod.index % 3 == 0 ? 1 : 0;
      end.start = {1000, {}};
      report.ends.push_back(end);
    }
    if (pods < from) bytes_before = bytes;
    const size_t ends = report.ends.size();
    auto begin = std::chrono::steady_clock::now();
    sync({std::move(report)});
    fill();
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    if (pods >= from) {
      ns += took.count();
      timed += ends;
    }
    pods += ends;
  }
  return {ns / static_cast<double>(timed),
          static_cast<double>(bytes - bytes_before) / static_cast<double>(timed),
          job.state().completed.intervals().size()};
}

}  // namespace
}  // namespace muster

int main() {
  std::printf("%10s %14s %14s %12s\n", "indexes", "ns per end", "bytes per pod", "intervals");
  double least = 0, most = 0;
  for (int32_t n : {1'000, 10'000, 100'000, 1'000'000}) {
    muster::Cost best = muster::run(n);
    for (int i = 0; i < 2; ++i) {
      muster::Cost again = muster::run(n);
      if (again.ns < best.ns) best = again;
    }
    std::printf("%10d %14.0f %14.1f %12zu\n", n, best.ns, best.bytes, best.intervals);
    least = least == 0 ? best.ns : std::min(least, best.ns);
    most = std::max(most, best.ns);
  }
  std::printf("slowest / quickest: %.2f (flat: below 2)\n", most / least);
  return 0;
}
