// muster-bench: pods per second, as a ratio to the machine's raw spawn rate.
//
// Absolute rates are not comparable between machines, or minutes. The raw spawn rate is therefore
// measured right before and after each run, and the mean of the two is the divisor. Each figure is
// the median of its repetitions, and each repetition gets a fresh coordinator and agent.
#include "base/check.hpp"
#include "bench/cluster.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

namespace muster::bench {
namespace {

constexpr double kRawSeconds = 1.0;  // per measurement of the raw spawn rate
constexpr int kRawThreads = 2;
constexpr const char* kTrue = "/bin/true";
constexpr uint32_t kParallelism = 1'000;  // a typical request; the slots are the limit

struct Options {
  uint32_t pods = 6'000;           // per run with real processes
  uint32_t hollow_pods = 100'000;  // per hollow run
  int repeat = 5;
  std::string only;
};

struct Figure {
  double per_s = 0;
  double raw_per_s = 0;
  double coordinator_us = 0;  // CPU time per pod
  double agent_us = 0;
  double keeper_us = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Figure median(const std::vector<Figure>& figures) {
  auto of = [&figures](double Figure::*member) {
    std::vector<double> values;
    for (const Figure& figure : figures) values.push_back(figure.*member);
    return median(values);
  };
  return {of(&Figure::per_s), of(&Figure::raw_per_s), of(&Figure::coordinator_us),
          of(&Figure::agent_us), of(&Figure::keeper_us)};
}

Figure measure(const std::string& bin_dir, const std::vector<std::string>& flags, uint32_t pods,
               uint32_t parallelism, bool raw, const std::string& program = kTrue) {
  Cluster cluster(bin_dir, flags);
  double before = raw ? raw_spawns_per_s(kRawThreads, kRawSeconds, program) : 0;
  JobRun run = cluster.run(pods, parallelism, program);
  double after = raw ? raw_spawns_per_s(kRawThreads, kRawSeconds, program) : 0;
  return {pods / run.seconds, (before + after) / 2, run.coordinator_cpu_s * 1e6 / pods,
          run.agent_cpu_s * 1e6 / pods, run.keeper_cpu_s * 1e6 / pods};
}

// A whole command, from its start to its exit.
Figure measure_command(const std::string& command, uint32_t pods,
                       const std::string& program = kTrue) {
  const double before = raw_spawns_per_s(kRawThreads, kRawSeconds, program);
  const double seconds = command_seconds(command);
  const double after = raw_spawns_per_s(kRawThreads, kRawSeconds, program);
  return {.per_s = pods / seconds, .raw_per_s = (before + after) / 2};
}

bool installed(const char* program) {
  return std::system(("command -v " + std::string(program) + " >/dev/null").c_str()) == 0;
}

// The median of the per-repetition ratios: each raw rate belongs to the run it was measured around.
void print(const std::string& name, const std::vector<Figure>& figures) {
  Figure figure = median(figures);
  std::vector<double> ratios;
  for (const Figure& one : figures)
    if (one.raw_per_s > 0) ratios.push_back(one.per_s / one.raw_per_s);
  std::string ratio = "-", raw = "-";
  char text[32];
  if (!ratios.empty()) {
    std::snprintf(text, sizeof text, "%.2f", median(ratios));
    ratio = text;
    std::snprintf(text, sizeof text, "%.0f", figure.raw_per_s);
    raw = text;
  }
  std::printf("%-34s %10.0f %10s %7s", name.c_str(), figure.per_s, raw.c_str(), ratio.c_str());
  if (figure.coordinator_us > 0)
    std::printf(" %11.1f %8.1f %8.1f\n", figure.coordinator_us, figure.agent_us, figure.keeper_us);
  else
    std::printf(" %11s %8s %8s\n", "-", "-", "-");
  std::fflush(stdout);
}

int usage(int code) {
  std::fprintf(
      code == 0 ? stdout : stderr,
      "muster-bench [--pods N] [--hollow-pods N] [--repeat N] [--only NAME]\n"
      "Pods per second of the muster beside this program, everything durable (on $TMPDIR).\n"
      "  --pods N          pods of a run with /bin/true (default 6000)\n"
      "  --hollow-pods N   pods of a run without processes (default 100000)\n"
      "  --repeat N        repetitions, of which the median counts (default 5)\n"
      "  --only NAME       2, 64, static, exact, run, hollow or peers (default: all but peers)\n"
      "    2, 64           a job with parallelism 1000 on 2 or 64 slots\n"
      "    static          the same with a static program of three instructions\n"
      "    exact           jobs whose parallelism is the number of slots, so nothing is "
      "prefetched\n"
      "    run             muster run -n N -j 2 and -j 64 as whole commands\n"
      "    peers           xargs, make and GNU parallel (if installed) as whole commands\n"
      "Example: TMPDIR=/var/tmp build/release/bench/muster-bench --only 64 --repeat 5\n");
  return code;
}

int run(const Options& options, const std::string& bin_dir) {
  std::printf("%-34s %10s %10s %7s %12s %9s %9s\n", "", "pods/s", "raw/s", "ratio", "µs: coord.",
              "agent", "keeper");
  auto repeated = [&options](const std::function<Figure()>& once) {
    std::vector<Figure> figures;
    for (int i = 0; i < options.repeat; ++i) figures.push_back(once());
    return figures;
  };
  for (uint32_t slots : {2u, 64u}) {
    std::string name = std::to_string(slots);
    if (!options.only.empty() && options.only != name) continue;
    print("/bin/true, " + name + " slots", repeated([&options, &bin_dir, &name, slots] {
            return measure(bin_dir, {"--slots", name}, options.pods, kParallelism, true);
          }));
  }
  const std::string nothing = bin_dir + "/bench/muster-bench-nothing";
  for (uint32_t slots : {2u, 64u}) {
    if (!options.only.empty() && options.only != "static") continue;
    const std::string name = std::to_string(slots);
    print("static program, " + name + " slots", repeated([&, slots] {
            return measure(bin_dir, {"--slots", name}, options.pods, kParallelism, true, nothing);
          }));
  }
  for (uint32_t slots : {2u, 64u}) {
    if (!options.only.empty() && options.only != "exact") continue;
    const std::string name = std::to_string(slots);
    print("/bin/true, parallelism " + name, repeated([&options, &bin_dir, &name, slots] {
            return measure(bin_dir, {"--slots", name}, options.pods, slots, true);
          }));
  }
  auto command = [&options, &repeated](const std::string& name, const std::string& text,
                                       uint32_t pods) {
    print(name, repeated([&] { return measure_command(text, pods); }));
  };
  const std::string n = std::to_string(options.pods);
  for (const char* j : {"2", "64"}) {
    if (!options.only.empty() && options.only != "run") continue;
    command(std::string("muster run -j ") + j,
            bin_dir + "/muster run -n " + n + " -j " + j + " --output none -- /bin/true",
            options.pods);
  }
  if (options.only.empty() || options.only == "run") {
    std::vector<double> ms;
    for (int i = 0; i < 4 * options.repeat; ++i)
      ms.push_back(1e3 * command_seconds(bin_dir + "/muster run -n 1 --output none -- /bin/true"));
    std::printf("%-34s %7.0f ms\n", "muster run -n 1", median(ms));
  }
  if (options.only == "peers") {
    for (const char* j : {"2", "64"}) {
      command(std::string("xargs -P ") + j, "seq " + n + " | xargs -n 1 -P " + j + " /bin/true",
              options.pods);
      command(std::string("make -j ") + j,
              "printf 'T := $(shell seq " + n +
                  ")\\nall: $(T)\\n$(T): ; @/bin/true\\n' | make -s -j " + j + " -f - all",
              options.pods);
      // A tenth of the pods: it takes several milliseconds each.
      if (installed("parallel"))
        command(
            std::string("GNU parallel -j ") + j,
            "seq " + std::to_string(options.pods / 10 + 1) + " | parallel -j " + j + " /bin/true",
            options.pods / 10 + 1);
    }
  }
  if (options.only.empty() || options.only == "hollow")
    print("hollow, parallelism 1000", repeated([&options, &bin_dir] {
            return measure(bin_dir, {"--slots", "1000", "--hollow"}, options.hollow_pods,
                           kParallelism, false);
          }));
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  using namespace muster::bench;
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--help") return usage(0);
    if (i + 1 == argc) return usage(2);
    std::string value = argv[++i];
    long number = std::strtol(value.c_str(), nullptr, 10);
    if (flag != "--only" && (number < 1 || number > 10'000'000)) return usage(2);
    if (flag == "--pods")
      options.pods = static_cast<uint32_t>(number);
    else if (flag == "--hollow-pods")
      options.hollow_pods = static_cast<uint32_t>(number);
    else if (flag == "--repeat")
      options.repeat = static_cast<int>(number);
    else if (flag == "--only" &&
             (value == "2" || value == "64" || value == "static" || value == "exact" ||
              value == "run" || value == "hollow" || value == "peers"))
      options.only = value;
    else
      return usage(2);
  }
  // This program is in BUILD/bench, the others are in BUILD.
  auto bin_dir = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  return run(options, bin_dir.string());
}
