// muster-bench-scale: how cost grows, on hollow nodes, so that only muster's own work is measured.
//
// - sizes: a job of 10^3 to 10^6 indexes; CPU time per pod must stay flat.
// - waves: 10^5 pods in flight at once, which then all succeed or all fail, with and without
//   backoffLimitPerIndex; memory per pod in flight.
// - jobs: 10^4 jobs of one index; then small jobs, one after another, alone and beside a giant one.
// - nodes: 1,000 agents, idle and with 100 slots each.
// - large, only on request: 10,000 agents with 100 slots each, and 10^6 pods in flight.
#include "base/check.hpp"
#include "tests/bench/cluster.hpp"
#include "tests/bench/http.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace muster::bench {
namespace {

using std::string_literals::operator""s;

constexpr uint32_t kWave = 100'000;
constexpr int kWaveSeconds = 5;  // how long its pods run
constexpr uint32_t kManyJobs = 10'000;
constexpr uint32_t kSmallJobs = 300;     // each alone and beside the giant
constexpr uint32_t kGiant = 10'000'000;  // indexes; outlasts the small jobs
constexpr uint32_t kNodes = 1'000, kSlotsPerNode = 100;
constexpr double kIdleSeconds = 20;

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void sizes(const std::string& bin_dir) {
  std::printf("%-44s %9s %11s %11s %9s\n", "one job, parallelism 1000", "ends/s", "coord. µs",
              "agent µs", "disk B");
  double least = 0, most = 0;
  for (uint32_t n : {1'000u, 10'000u, 100'000u, 1'000'000u}) {
    Cluster cluster(bin_dir, {"--hollow", "--slots", "1000"});
    cluster.run({1'000, kParallelism});  // the first job of a cluster pays for its startup
    // Small jobs are repeated, so that there is enough to measure.
    const uint32_t times = std::max(1u, 100'000 / n);
    JobRun all;
    for (uint32_t i = 0; i < times; ++i) {
      const JobRun run = cluster.run({n, kParallelism});
      all.seconds += run.seconds;
      all.coordinator_cpu_s += run.coordinator_cpu_s;
      all.agent_cpu_s += run.agent_cpu_s;
      all.disk_bytes += run.disk_bytes;
    }
    const double pods = static_cast<double>(n) * times;
    const double us = (all.coordinator_cpu_s + all.agent_cpu_s) * 1e6 / pods;
    std::printf("%-44s %9.0f %11.1f %11.1f %9.0f\n", (std::to_string(n) + " indexes").c_str(),
                pods / all.seconds, all.coordinator_cpu_s * 1e6 / pods,
                all.agent_cpu_s * 1e6 / pods, all.disk_bytes / pods);
    if (n == 1'000'000) {
      // The previous runs have filled the journal's buffers.
      const double mb = cluster.coordinator_mb();
      cluster.run({n, kParallelism});
      std::printf("%-44s %9.1f\n", "  one more: coordinator's memory, B an index",
                  (cluster.coordinator_mb() - mb) * 1e6 / n);
    }
    std::fflush(stdout);
    least = least == 0 ? us : std::min(least, us);
    most = std::max(most, us);
  }
  std::printf("%-44s %9.2f\n", "dearest / cheapest, CPU per pod", most / least);
}

// All indexes start before the first ends, so that no backoff delays a start.
void waves(const std::string& bin_dir) {
  std::printf("\n%-44s %9s %11s %11s %11s\n", std::to_string(kWave).append(" pods at once").c_str(),
              "ends/s", "coord. µs", "agent µs", "B in flight");
  const std::string budget = ",\"backoffLimit\":2000000000";
  const std::string per_index = ",\"backoffLimitPerIndex\":0";
  struct Wave {
    const char* name;
    const char* exit_code;
    std::string spec;
  };
  for (const Wave& wave :
       {Wave{"all succeed", "0", budget}, Wave{"all succeed, backoffLimitPerIndex", "0", per_index},
        Wave{"all fail once", "1", budget},
        Wave{"all fail once, backoffLimitPerIndex", "1", per_index}}) {
    Cluster cluster(bin_dir,
                    {"--hollow", "--slots", std::to_string(kWave), "--hollow-duration",
                     std::to_string(kWaveSeconds) + "s", "--hollow-exit-code", wave.exit_code});
    const double mb = cluster.coordinator_mb();
    const std::string path = cluster.create({kWave, kWave, {"/bin/true"}, wave.spec});
    const std::string all = std::to_string(kWave);
    cluster.finish(path, [&all](const std::string& shown) {
      return shown.find("\"active\":" + all) != std::string::npos;
    });
    const double in_flight = cluster.coordinator_mb() - mb;
    const bool fails = wave.exit_code == "1"s;
    const JobRun run = cluster.finish(path, [&](const std::string& shown) {
      return fails ? shown.find("\"failed\":" + all) != std::string::npos
                   : shown.find("\"type\":\"Complete\"") != std::string::npos;
    });
    std::printf("%-44s %9.0f %11.1f %11.1f %11.0f\n", wave.name,
                kWave / (run.seconds - kWaveSeconds), run.coordinator_cpu_s * 1e6 / kWave,
                run.agent_cpu_s * 1e6 / kWave, in_flight * 1e6 / kWave);
    std::fflush(stdout);
  }
}

void many_jobs(Cluster& cluster, int clients) {
  const double cpu = cluster.coordinator_cpu_s(), begin = seconds_now();
  cluster.run_many("many-" + std::to_string(clients) + "-", kManyJobs, clients);
  const double seconds = seconds_now() - begin;
  std::printf("%-44s %9.0f %11.1f\n",
              ("  created by " + std::to_string(clients) + " clients").c_str(), kManyJobs / seconds,
              (cluster.coordinator_cpu_s() - cpu) * 1e6 / kManyJobs);
  std::fflush(stdout);
}

// Milliseconds from the POST of each job of one index until it is Complete.
std::vector<double> small_jobs(Cluster& cluster, const std::string& prefix) {
  HttpClient client(cluster.api_port());
  std::vector<double> ms;
  for (uint32_t i = 0; i < kSmallJobs; ++i) {
    const std::string name = prefix + std::to_string(i);
    const double begin = seconds_now();
    const std::string created = client.request("POST", kJobs, manifest(name, {}));
    MUSTER_CHECK(created.starts_with("HTTP/1.1 201"), created);
    while (client.request("GET", kJobs + ("/" + name)).find("\"type\":\"Complete\"") ==
           std::string::npos)
      sleep_s(0.001);
    ms.push_back((seconds_now() - begin) * 1e3);
  }
  return ms;
}

void jobs(const std::string& bin_dir) {
  std::printf("\n");
  Cluster cluster(bin_dir, {"--hollow", "--slots", "1000"});
  std::printf("%-44s %9s %11s\n", "10000 jobs of one index", "jobs/s", "coord. µs");
  many_jobs(cluster, 8);
  many_jobs(cluster, 32);
  const std::vector<double> alone = small_jobs(cluster, "alone-");
  const std::string giant = cluster.create({kGiant, kParallelism});
  const std::vector<double> beside = small_jobs(cluster, "beside-");
  cluster.request("DELETE", giant, "");
  std::printf("%-44s %9.2f %11.2f\n", "one small job after another, ms, median, p99", median(alone),
              percentile(alone, 99));
  std::printf("%-44s %9.2f %11.2f %10.2f×\n", "  the same beside a giant", median(beside),
              percentile(beside, 99), median(beside) / median(alone));
  std::fflush(stdout);
}

void nodes(const std::string& bin_dir) {
  Cluster cluster(bin_dir, {"--slots", std::to_string(kSlotsPerNode)}, {.nodes = kNodes});
  sleep_s(2);  // let the registrations settle
  double coordinator = cluster.coordinator_cpu_s(), agents = cluster.agent_cpu_s();
  sleep_s(kIdleSeconds);
  std::printf("\n%-44s %8.2f%% %10.2f%%\n", "1000 idle agents, % of a core: coord., agents",
              (cluster.coordinator_cpu_s() - coordinator) * 100 / kIdleSeconds,
              (cluster.agent_cpu_s() - agents) * 100 / kIdleSeconds);
  std::fflush(stdout);
  constexpr uint32_t kPods = 5 * kNodes * kSlotsPerNode;
  const JobRun run = cluster.run({kPods, kNodes * kSlotsPerNode});
  std::printf("%-44s %9.0f %11.1f %11.1f %9.0f\n", "1000 nodes x 100 slots, 500000 pods",
              kPods / run.seconds, run.coordinator_cpu_s * 1e6 / kPods,
              run.agent_cpu_s * 1e6 / kPods, run.disk_bytes / kPods);
}

void large(const std::string& bin_dir) {
  constexpr uint32_t kLargeNodes = 10'000, kPods = kLargeNodes * kSlotsPerNode;
  constexpr int kSeconds = 60;  // how long each pod runs
  const double begin = seconds_now();
  Cluster cluster(
      bin_dir,
      {"--slots", std::to_string(kSlotsPerNode), "--duration-ms", std::to_string(kSeconds * 1'000)},
      {.nodes = kLargeNodes});
  std::printf("%-44s %9.1f\n", "10000 agents, s until all are ready", seconds_now() - begin);
  sleep_s(2);
  double coordinator = cluster.coordinator_cpu_s();
  sleep_s(kIdleSeconds);
  std::printf("%-44s %8.2f%%\n", "idle, % of a core",
              (cluster.coordinator_cpu_s() - coordinator) * 100 / kIdleSeconds);
  std::fflush(stdout);
  const double mb = cluster.coordinator_mb(), created = seconds_now();
  coordinator = cluster.coordinator_cpu_s();
  std::vector<std::string> paths;
  for (uint32_t left = kPods; left > 0; left -= kWave)
    paths.push_back(cluster.create({kWave, kWave}));
  auto await_all = [&](const std::string& part) {
    for (const std::string& path : paths)
      cluster.finish(path, [&part](const std::string& shown) {
        return shown.find(part) != std::string::npos;
      });
  };
  await_all("\"ready\":" + std::to_string(kWave));
  std::printf("%-44s %9.0f %11.1f\n", "10^6 pods in flight: starts/s, coord. µs",
              kPods / (seconds_now() - created),
              (cluster.coordinator_cpu_s() - coordinator) * 1e6 / kPods);
  std::printf("%-44s %9.0f\n", "  coordinator's memory, B a pod",
              (cluster.coordinator_mb() - mb) * 1e6 / kPods);
  std::fflush(stdout);
  await_all("\"type\":\"Complete\"");
  std::printf("%-44s %9.1f %11.1f\n", "  s from the first request to Complete, coord. µs",
              seconds_now() - created, (cluster.coordinator_cpu_s() - coordinator) * 1e6 / kPods);
}

int usage(int code) {
  std::fprintf(code == 0 ? stdout : stderr,
               "muster-bench-scale [--only sizes|waves|jobs|nodes|large]\n"
               "How the cost of a pod grows with the size of jobs, their number and the nodes "
               "(hollow). large, 10^4 nodes with 10^6 pods, runs only if it is named.\n");
  return code;
}

int main(int argc, char** argv) {
  std::string only;
  if (argc == 2 && argv[1] == "--help"s) return usage(0);
  if (argc == 3 && argv[1] == "--only"s) only = argv[2];
  if (argc != 1 && only.empty()) return usage(2);
  const std::string bin_dir = bin_dir_of_this();
  struct Part {
    const char* name;
    void (*run)(const std::string&);
    bool only_named = false;
  };
  bool any = false;
  for (const Part& part : {Part{"sizes", sizes}, Part{"waves", waves}, Part{"jobs", jobs},
                           Part{"nodes", nodes}, Part{"large", large, true}}) {
    if (only.empty() ? part.only_named : only != part.name) continue;
    any = true;
    part.run(bin_dir);
  }
  return any ? 0 : usage(2);
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::main(argc, argv);
}
