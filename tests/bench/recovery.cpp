// muster-bench-recovery: from the SIGKILL of a coordinator until another one is ready, with many
// finished jobs, with a large job in flight, and with many nodes.
//
// Agents are hollow. With the finished jobs, all jobs are also listed, at once and in pages of 500,
// as kubectl does. Each figure is the median of its repetitions.
#include "base/check.hpp"
#include "tests/bench/cluster.hpp"
#include "tests/bench/http.hpp"

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
  uint32_t jobs = 100'000;
  uint32_t indexes = 100'000;
  uint32_t in_flight = 10'000;
  uint32_t nodes = 1'000;
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
      "muster-bench-recovery [--jobs N] [--indexes N] [--in-flight N] [--nodes N] "
      "[--repeat N]\n"
      "Seconds from the SIGKILL of a coordinator until another one is ready.\n"
      "  --jobs N       finished jobs of one index, which are then listed (default 100000)\n"
      "  --indexes N    of a job that runs (default 100000)\n"
      "  --in-flight N  its parallelism (default 10000)\n"
      "  --nodes N      nodes, each with an agent (default 1000)\n"
      "  --repeat N     starts, median (default 3)\n");
  return code;
}

void print_row(const std::string& what, double ready_s) {
  std::printf("%-44s %8.2f\n", what.c_str(), ready_s);
  std::fflush(stdout);
}

void with_finished_jobs(const Options& options) {
  Cluster cluster(bin_dir_of_this(), {"--hollow", "--slots", "1000"});
  cluster.run_many("job-", options.jobs);
  std::vector<double> ready, whole, paged;
  for (int i = 0; i < options.repeat; ++i) {
    ready.push_back(cluster.restart());
    whole.push_back(list(cluster, ""));
    paged.push_back(list(cluster, "?limit=" + std::to_string(kPage)));
  }
  print_row(std::to_string(options.jobs) + " finished jobs", median(ready));
  print_row("  to list them at once", median(whole));
  print_row("  in pages of " + std::to_string(kPage), median(paged));
}

// The number that follows `key` in the response; 0: there is none.
uint32_t number_after(const std::string& text, const std::string& key) {
  const auto at = text.find(key);
  return at == std::string::npos
             ? 0
             : static_cast<uint32_t>(std::strtoul(text.c_str() + at + key.size(), nullptr, 10));
}

// Waves of pods that take a second; each restart happens in the middle of one.
void with_pods_in_flight(const Options& options) {
  Cluster cluster(bin_dir_of_this(), {"--hollow", "--hollow-duration", "1s", "--slots",
                                      std::to_string(options.in_flight)});
  BenchJob job;
  job.completions = options.indexes;
  job.parallelism = options.in_flight;
  const std::string path = cluster.create(job);
  std::vector<double> ready;
  for (int i = 0; i < options.repeat; ++i) {
    const uint32_t ended = options.indexes / 2 + static_cast<uint32_t>(i) * options.in_flight;
    while (number_after(cluster.get(path), "\"succeeded\":") < ended)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ready.push_back(cluster.restart());
  }
  print_row(std::to_string(options.indexes) + " indexes, " + std::to_string(options.in_flight) +
                " in flight",
            median(ready));
}

void with_nodes(const Options& options) {
  ClusterSetting setting;
  setting.nodes = options.nodes;
  Cluster cluster(bin_dir_of_this(), {"--slots", "1"}, setting);
  std::vector<double> ready;
  for (int i = 0; i < options.repeat; ++i) ready.push_back(cluster.restart());
  print_row(std::to_string(options.nodes) + " nodes", median(ready));
}

int main(int argc, char** argv) {
  Options options;
  const auto code = read_numbers(argc, argv, [&options](const std::string& flag, long n) {
    const auto number = static_cast<uint32_t>(n);
    if (flag == "--jobs")
      options.jobs = number;
    else if (flag == "--indexes")
      options.indexes = number;
    else if (flag == "--in-flight")
      options.in_flight = number;
    else if (flag == "--nodes")
      options.nodes = number;
    else if (flag == "--repeat")
      options.repeat = static_cast<int>(n);
    else
      return false;
    return true;
  });
  if (code) return usage(*code);
  std::printf("%-44s %8s\n", "SIGKILL to ready", "s");
  with_pods_in_flight(options);
  with_nodes(options);
  with_finished_jobs(options);
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::main(argc, argv);
}
