// muster-bench: pods per second, as a ratio to the machine's raw spawn rate.
//
// Absolute rates are not comparable between machines, or even from one minute to the next. The raw
// spawn rate is therefore measured right before and after each run, and the mean of the two is the
// divisor. Each figure is the median of its repetitions, and each repetition gets a fresh
// coordinator and agent.
#include "base/check.hpp"
#include "tests/bench/cluster.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace muster::bench {
namespace {

using std::string_literals::operator""s;

constexpr double kRawSeconds = 1.0;  // per measurement of the raw spawn rate
constexpr int kRawThreads = 2;
constexpr const char* kTrue = "/bin/true";

struct Options {
  uint32_t pods = 6'000;           // per run with real processes
  uint32_t hollow_pods = 100'000;  // per hollow run
  int repeat = 5;
  uint32_t sync_ms = 0;  // added to each sync
  std::string only;
};

struct Figure {
  double per_s = 0;
  double raw_per_s = 0;       // 0: not measured
  double coordinator_us = 0;  // CPU time per pod
  double agent_us = 0;
  double keeper_us = 0;
  double disk_bytes = 0;  // written per pod
};

Figure middle(const std::vector<Figure>& figures) {
  auto of = [&figures](double Figure::*member) {
    std::vector<double> values;
    for (const Figure& figure : figures) values.push_back(figure.*member);
    return median(values);
  };
  return {of(&Figure::per_s),    of(&Figure::raw_per_s), of(&Figure::coordinator_us),
          of(&Figure::agent_us), of(&Figure::keeper_us), of(&Figure::disk_bytes)};
}

// Runs a job on its own cluster; also measures the raw spawn rate of its program, unless hollow.
Figure measure(const Options& options, const std::string& bin_dir,
               const std::vector<std::string>& flags, const BenchJob& job, bool hollow = false) {
  Cluster cluster(bin_dir, flags, {.environment = slow_sync(bin_dir, options.sync_ms)});
  const std::string& program = job.command.front();
  const double before = hollow ? 0 : raw_spawns_per_s(kRawThreads, kRawSeconds, program);
  const JobRun run = cluster.run(job);
  const double after = hollow ? 0 : raw_spawns_per_s(kRawThreads, kRawSeconds, program);
  const double pods = job.completions;
  return {pods / run.seconds,
          (before + after) / 2,
          run.coordinator_cpu_s * 1e6 / pods,
          run.agent_cpu_s * 1e6 / pods,
          run.keeper_cpu_s * 1e6 / pods,
          run.disk_bytes / pods};
}

// Measures a whole command, from its start to its exit.
Figure measure_command(const std::string& command, uint32_t pods) {
  const double before = raw_spawns_per_s(kRawThreads, kRawSeconds, kTrue);
  const double seconds = command_seconds(command);
  const double after = raw_spawns_per_s(kRawThreads, kRawSeconds, kTrue);
  return {.per_s = pods / seconds, .raw_per_s = (before + after) / 2};
}

bool installed(const char* program) {
  return std::system(("command -v " + std::string(program) + " >/dev/null").c_str()) == 0;
}

// The median of the per-repetition ratios: each raw rate belongs to the run it was measured around.
void print(const std::string& name, const std::vector<Figure>& figures) {
  const Figure figure = middle(figures);
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
  std::printf("%-34s %9.0f %9s %6s", name.c_str(), figure.per_s, raw.c_str(), ratio.c_str());
  if (figure.coordinator_us > 0)
    std::printf(" %10.1f %7.1f %7.1f %9.0f\n", figure.coordinator_us, figure.agent_us,
                figure.keeper_us, figure.disk_bytes);
  else
    std::printf(" %10s %7s %7s %9s\n", "-", "-", "-", "-");
  std::fflush(stdout);
}

// One line of the table.
struct Row {
  const char* group;  // what --only names
  std::string name;
  std::function<Figure()> once;
};

std::vector<Row> rows(const Options& options, const std::string& bin_dir) {
  std::vector<Row> rows;
  const std::string nothing = bin_dir + "/bench/muster-bench-nothing";
  const std::string n = std::to_string(options.pods);
  std::string slowed;  // before a shell command
  for (const std::string& variable : slow_sync(bin_dir, options.sync_ms)) slowed += variable + ' ';
  auto on_slots = [&](const char* group, const std::string& name, const std::string& slots,
                      const BenchJob& job) {
    rows.push_back({group, name, [&options, &bin_dir, slots, job] {
                      return measure(options, bin_dir, {"--slots", slots}, job);
                    }});
  };
  auto command = [&rows](const char* group, const std::string& name, const std::string& text,
                         uint32_t pods) {
    rows.push_back({group, name, [text, pods] { return measure_command(text, pods); }});
  };
  for (const char* slots : {"2", "64"})
    on_slots(slots, "/bin/true, "s + slots + " slots", slots, {options.pods, kParallelism});
  for (const char* slots : {"2", "64"})
    on_slots("static", "static program, "s + slots + " slots", slots,
             {options.pods, kParallelism, {nothing}});
  for (const char* slots : {"2", "64"})
    on_slots("exact", "/bin/true, parallelism "s + slots, slots,
             {options.pods, static_cast<uint32_t>(std::stoi(slots))});
  for (const char* j : {"2", "64"})
    command("run", "muster run -j "s + j,
            slowed + bin_dir + "/muster run -n " + n + " -j " + j + " --output none -- /bin/true",
            options.pods);
  rows.push_back({"hollow", "hollow, parallelism 1000", [&options, &bin_dir] {
                    return measure(options, bin_dir, {"--slots", "1000", "--hollow"},
                                   {options.hollow_pods, kParallelism}, true);
                  }});
  for (const char* j : {"2", "64"}) {
    command("peers", "xargs -P "s + j, "seq " + n + " | xargs -n 1 -P " + j + " /bin/true",
            options.pods);
    command("peers", "make -j "s + j,
            "printf 'T := $(shell seq " + n +
                ")\\nall: $(T)\\n$(T): ; @/bin/true\\n' | make -s -j " + j + " -f - all",
            options.pods);
    // A tenth of the pods: each takes several milliseconds.
    const uint32_t few = options.pods / 10 + 1;
    if (installed("parallel"))
      command("peers", "GNU parallel -j "s + j,
              "seq " + std::to_string(few) + " | parallel -j " + j + " /bin/true", few);
    // One task more than asked for, since arrays are numbered from 0.
    if (installed("sbatch"))
      command("peers", "Slurm array, %"s + j,
              "sbatch --wait --output /dev/null --array 0-" + std::to_string(few) + "%" + j +
                  " --wrap /bin/true",
              few + 1);
  }
  return rows;
}

int usage(int code) {
  std::fprintf(
      code == 0 ? stdout : stderr,
      "muster-bench [--pods N] [--hollow-pods N] [--repeat N] [--sync-ms N] [--only NAME]\n"
      "Pods per second of the muster beside this program, everything durable (on $TMPDIR).\n"
      "  --pods N          pods of a run with /bin/true (default 6000)\n"
      "  --hollow-pods N   pods of a run without processes (default 100000)\n"
      "  --repeat N        repetitions, of which the median counts (default 5)\n"
      "  --sync-ms N       make each sync of muster take N ms longer (default 0)\n"
      "  --only NAME       2, 64, static, exact, run, hollow or peers (default: all but peers)\n"
      "    2, 64           a job with parallelism 1000 on 2 or 64 slots\n"
      "    static          the same with a static program of three instructions\n"
      "    exact           jobs whose parallelism is the number of slots, so nothing is "
      "prefetched\n"
      "    run             muster run -n N -j 2 and -j 64 as whole commands\n"
      "    peers           xargs, make, and if installed GNU parallel and Slurm, as whole "
      "commands\n"
      "Example: TMPDIR=/var/tmp build/release/bench/muster-bench --only 64 --repeat 5\n");
  return code;
}

// False: no row has this name.
bool run(const Options& options, const std::string& bin_dir) {
  bool any = false;
  for (const Row& row : rows(options, bin_dir)) {
    if (options.only.empty() ? row.group == "peers"s : options.only != row.group) continue;
    if (!std::exchange(any, true))
      std::printf("%-34s %9s %9s %6s %11s %7s %7s %9s\n", "", "pods/s", "raw/s", "ratio",
                  "µs: coord.", "agent", "keeper", "disk B");
    std::vector<Figure> figures;
    for (int i = 0; i < options.repeat; ++i) figures.push_back(row.once());
    print(row.name, figures);
  }
  return any;
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
    else if (flag == "--sync-ms")
      options.sync_ms = static_cast<uint32_t>(number);
    else if (flag == "--only")
      options.only = value;
    else
      return usage(2);
  }
  return run(options, bin_dir_of_this()) ? 0 : usage(2);
}
