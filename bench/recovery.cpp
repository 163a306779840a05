// muster-bench-recovery: start and list times with many finished jobs.
//
// Jobs of one index run on a hollow agent until all are Complete. Then the coordinator is restarted
// and all jobs are listed, at once and in pages of 500, as kubectl does. Each figure is the median
// of its repetitions.
#include "base/check.hpp"
#include "bench/cluster.hpp"
#include "bench/http.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace muster::bench {
namespace {

constexpr int kPage = 500;

struct Options {
  uint32_t jobs = 20'000;
  int repeat = 3;
};

// Seconds to list all jobs.
double list(Cluster& cluster, const std::string& limit) {
  const double begin = seconds_now();
  for (std::string next;;) {
    const std::string answer = cluster.get(kJobs + limit + next);
    MUSTER_CHECK(answer.starts_with("HTTP/1.1 200"), answer.substr(0, 300));
    const std::string key = "\"continue\":\"";
    const auto at = answer.rfind(key);
    if (at == std::string::npos) return seconds_now() - begin;
    const auto from = at + key.size();
    next = "&continue=" + answer.substr(from, answer.find('"', from) - from);
  }
}

int usage(int code) {
  std::fprintf(
      code == 0 ? stdout : stderr,
      "muster-bench-recovery [--jobs N] [--repeat N]\n"
      "Seconds until a coordinator with finished jobs of one index is ready, and of lists.\n"
      "  --jobs N      finished jobs (default 20000)\n"
      "  --repeat N    starts, median (default 3)\n");
  return code;
}

int main(int argc, char** argv) {
  Options options;
  const auto code = read_numbers(argc, argv, [&options](const std::string& flag, long n) {
    if (flag == "--jobs")
      options.jobs = static_cast<uint32_t>(n);
    else if (flag == "--repeat")
      options.repeat = static_cast<int>(n);
    else
      return false;
    return true;
  });
  if (code) return usage(*code);
  Cluster cluster(bin_dir_of_this(), {"--hollow", "--slots", "1000"});
  cluster.run_many("job-", options.jobs);
  cluster.leave();
  std::vector<double> start, whole, paged;
  for (int i = 0; i < options.repeat; ++i) {
    start.push_back(cluster.restart());
    whole.push_back(list(cluster, ""));
    paged.push_back(list(cluster, "?limit=" + std::to_string(kPage)));
  }
  std::printf("%10s %10s %10s %14s\n", "jobs", "start s", "list s", "in pages s");
  std::printf("%10u %10.2f %10.2f %14.2f\n", options.jobs, median(start), median(whole),
              median(paged));
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::main(argc, argv);
}
