// muster-bench-latency: how long one pod waits.
//
// - Turnaround: from a process's exec to the next exec on the same slot, with prefetch. The program
//   only notes the time and exits, so this is its end, the keeper's work, fork and exec. For
//   comparison, the same in a bare loop of posix_spawn and wait4.
// - Submit to exec: from the POST of a job of one index on an idle cluster to its program's exec.
// - muster run -n 1 as a whole command.
#include "base/check.hpp"
#include "tests/bench/cluster.hpp"
#include "tests/bench/http.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace muster::bench {
namespace {

constexpr auto kIdle = std::chrono::milliseconds(20);

struct Options {
  uint32_t pods = 4'000;
  uint32_t jobs = 300;
};

double boot_seconds() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The times that muster-bench-stamp has written, in seconds, sorted. Removes the file.
std::vector<double> take_stamps(const std::string& path) {
  std::vector<double> stamps;
  std::ifstream in(path, std::ios::binary);
  for (int64_t ns; in.read(reinterpret_cast<char*>(&ns), sizeof ns);)
    stamps.push_back(static_cast<double>(ns) * 1e-9);
  std::filesystem::remove(path);
  std::sort(stamps.begin(), stamps.end());
  return stamps;
}

// Times from each exec to the next one on its slot, which is `slots` execs later.
std::vector<double> turnarounds_ms(const std::vector<double>& stamps, size_t slots) {
  std::vector<double> ms;
  for (size_t i = slots; i < stamps.size(); ++i)
    ms.push_back((stamps[i] - stamps[i - slots]) * 1e3);
  return ms;
}

void raw_loop(const std::vector<std::string>& command, uint32_t processes) {
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  for (uint32_t i = 0; i < processes; ++i) spawn_and_wait(words.data());
}

void print(const std::string& name, const std::vector<double>& ms) {
  std::printf("%-34s %9.2f %9.2f %9.2f\n", name.c_str(), median(ms), percentile(ms, 99),
              *std::max_element(ms.begin(), ms.end()));
  std::fflush(stdout);
}

void turnaround(const Options& options, const std::string& bin_dir, uint32_t slots) {
  const std::string stamp = bin_dir + "/bench/muster-bench-stamp";
  Cluster cluster(bin_dir, {"--slots", std::to_string(slots)});
  const std::string file = cluster.dir() + "/stamps";
  cluster.run({options.pods, kParallelism, {stamp, file}});
  const auto ours = turnarounds_ms(take_stamps(file), slots);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < slots; ++i)
    threads.emplace_back([&] { raw_loop({stamp, file}, options.pods / slots); });
  for (auto& thread : threads) thread.join();
  const auto raw = turnarounds_ms(take_stamps(file), slots);
  const std::string name = std::to_string(slots) + (slots == 1 ? " slot" : " slots");
  print("turnaround, " + name, ours);
  print("  bare loop, " + name.substr(0, 1) + (slots == 1 ? " thread" : " threads"), raw);
}

void submit(const Options& options, const std::string& bin_dir) {
  Cluster cluster(bin_dir, {"--slots", "2"});
  HttpClient client(cluster.api_port());
  const std::string file = cluster.dir() + "/stamps";
  std::vector<double> ms;
  for (uint32_t i = 0; i < options.jobs; ++i) {
    const std::string name = "one-" + std::to_string(i);
    const std::string body =
        manifest(name, {.command = {bin_dir + "/bench/muster-bench-stamp", file}});
    const double sent = boot_seconds();
    const std::string created = client.request("POST", kJobs, body);
    MUSTER_CHECK(created.starts_with("HTTP/1.1 201"), created);
    while (client.request("GET", kJobs + ("/" + name)).find("\"type\":\"Complete\"") ==
           std::string::npos)
      std::this_thread::sleep_for(kIdle);
    std::this_thread::sleep_for(kIdle);
    const auto stamps = take_stamps(file);
    MUSTER_CHECK(stamps.size() == 1, stamps.size());
    ms.push_back((stamps.front() - sent) * 1e3);
  }
  print("submit to exec, idle", ms);
}

void whole_command(const std::string& bin_dir) {
  std::vector<double> ms;
  for (int i = 0; i < 20; ++i)
    ms.push_back(1e3 * command_seconds(bin_dir + "/muster run -n 1 --output none -- /bin/true"));
  print("muster run -n 1", ms);
}

int usage(int code) {
  std::fprintf(code == 0 ? stdout : stderr,
               "muster-bench-latency [--pods N] [--jobs N]\n"
               "Milliseconds that a pod waits for its slot, a job of one index for its exec, and a "
               "user for muster run -n 1.\n"
               "  --pods N    pods whose turnaround is measured (default 4000)\n"
               "  --jobs N    jobs of one index, one after the other (default 300)\n");
  return code;
}

int main(int argc, char** argv) {
  Options options;
  const auto code = read_numbers(argc, argv, [&options](const std::string& flag, long n) {
    if (flag == "--pods")
      options.pods = static_cast<uint32_t>(n);
    else if (flag == "--jobs")
      options.jobs = static_cast<uint32_t>(n);
    else
      return false;
    return true;
  });
  if (code) return usage(*code);
  const std::string bin_dir = bin_dir_of_this();
  std::printf("%-34s %9s %9s %9s\n", "ms", "p50", "p99", "worst");
  turnaround(options, bin_dir, 1);
  turnaround(options, bin_dir, 2);
  submit(options, bin_dir);
  whole_command(bin_dir);
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::main(argc, argv);
}
