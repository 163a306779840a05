// muster-bench-day: a day of a site with many users, in simulated time: muster's placement beside
// plain FIFO and beside EASY backfill that knows how long each pod will run. Prints a table; the
// same seed gives the same one.
#include "tests/bench/day/summary.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::day {
namespace {

constexpr Millis kLeastMs = 10'000;  // as published comparisons bound the slowdown

struct Row {
  std::string what;
  std::vector<std::string> cells;
};

std::string text(const char* format, double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// "45 s", "12 min", "3.5 h"
std::string duration(double ms) {
  if (ms < 99'500) return text("%.0f s", ms / 1e3);
  return ms < 5'970'000 ? text("%.0f min", ms / 6e4) : text("%.1f h", ms / 3.6e6);
}

std::string durations(const Spread& spread) {
  return duration(spread.median) + ", " + duration(spread.p95) + ", " + duration(spread.most);
}

std::string mean_and_p95(const Spread& spread) {
  return text(spread.mean < 9.95 ? "%.1f" : "%.0f", spread.mean) + ", " +
         text(spread.p95 < 9.95 ? "%.1f" : "%.0f", spread.p95);
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::array:
      return "arrays of short pods";
    case Kind::single:
      return "one slot";
    case Kind::whole_node:
      return "whole nodes";
    case Kind::small_gang:
      return "small gangs";
    case Kind::large_gang:
      return "large gangs";
  }
  return "";
}

void print(const std::vector<std::string>& names, const std::vector<Row>& rows) {
  std::printf("\n| |");
  for (const std::string& name : names) std::printf(" %s |", name.c_str());
  std::printf("\n| --- |");
  for (size_t i = 0; i < names.size(); ++i) std::printf(" --- |");
  for (const Row& row : rows) {
    std::printf("\n| %s |", row.what.c_str());
    for (const std::string& cell : row.cells) std::printf(" %s |", cell.c_str());
  }
  std::printf("\n");
}

Millis longest(const Job& job) {
  return *std::max_element(job.runs_ms.begin(), job.runs_ms.end());
}

// A day, as each scheduler makes it.
struct Day {
  explicit Day(const Site& site, const Profile& profile)
      : jobs(workload(site, profile)),
        heavy(heavy_users(jobs, profile.users)),
        light(light_users(jobs, profile.users)) {
    std::vector<Job> exact = jobs;
    for (Job& job : exact) job.limit_ms = longest(job);
    for (const auto& scheduler :
         {fifo(site, jobs), easy(site, jobs), muster_slots(site, jobs), muster_slots(site, exact)})
      outcomes.push_back(run_day(site, profile, jobs, *scheduler));
  }
  std::vector<Job> jobs;
  std::set<uint32_t> heavy, light;
  std::vector<Outcome> outcomes;
};

void describe(const Site& site, const Profile& profile, const Day& day) {
  double work = 0, of_light = 0;
  size_t pods = 0;
  std::map<Kind, size_t> kinds;
  for (const Job& job : day.jobs) {
    work += job.work();
    if (day.light.contains(job.user)) of_light += job.work();
    pods += job.runs_ms.size();
    ++kinds[job.kind];
  }
  std::printf("seed %llu: %zu jobs, %zu pods, %.2f of what the site can do in a day",
              static_cast<unsigned long long>(profile.seed), day.jobs.size(), pods,
              work / static_cast<double>(site.all()) / static_cast<double>(profile.span_ms()));
  for (const auto& [kind, count] : kinds) std::printf(", %s: %zu", name_of(kind), count);
  std::printf("; half of it by %zu users, %.1f%% by the %zu lightest\n", day.heavy.size(),
              100 * of_light / work, day.light.size());
  std::fflush(stdout);
}

const std::vector<std::string> kNames = {"FIFO", "EASY", "muster", "muster, with exact limits"};

class Table {
 public:
  explicit Table(const std::vector<Day>& days) : days_(days) {}

  // What each day comes to, on average.
  void average(const std::string& what, const std::function<double(const Outcome&)>& value,
               const std::function<std::string(double)>& text) {
    add(what, [&](size_t scheduler) {
      double sum = 0;
      for (const Day& day : days_) sum += value(day.outcomes[scheduler]);
      return text(sum / static_cast<double>(days_.size()));
    });
  }
  // The values of all jobs of all days.
  void spread(const std::string& what,
              const std::function<std::vector<double>(const Day&, const Outcome&)>& values,
              const std::function<std::string(const Spread&)>& text) {
    add(what, [&](size_t scheduler) {
      std::vector<double> all;
      for (const Day& day : days_) {
        const std::vector<double> some = values(day, day.outcomes[scheduler]);
        all.insert(all.end(), some.begin(), some.end());
      }
      return text(spread_of(std::move(all)));
    });
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void add(const std::string& what, const std::function<std::string(size_t)>& cell) {
    rows_.push_back({what, {}});
    for (size_t i = 0; i < kNames.size(); ++i) rows_.back().cells.push_back(cell(i));
  }

  const std::vector<Day>& days_;
  std::vector<Row> rows_;
};

void compare(const std::vector<Day>& days) {
  Table table(days);
  auto percent = [](double part) { return text("%.1f%%", 100 * part); };
  table.average(
      "utilisation, 24 h", [](const Outcome& one) { return one.utilisation; }, percent);
  table.average(
      "while pods waited", [](const Outcome& one) { return one.busy_waiting; }, percent);
  table.average(
      "the last pod ended after", [](const Outcome& one) { return double(one.done_ms); }, duration);
  for (const Kind kind : kKinds)
    table.spread(
        std::string("wait: ") + name_of(kind),
        [kind](const Day& day, const Outcome& one) { return waits(day.jobs, one, kind); },
        durations);
  table.spread(
      "wait: light users",
      [](const Day& day, const Outcome& one) { return waits(day.jobs, one, day.light); },
      durations);
  table.spread(
      "wait: heavy users",
      [](const Day& day, const Outcome& one) { return waits(day.jobs, one, day.heavy); },
      durations);
  table.spread(
      "slowdown",
      [](const Day& day, const Outcome& one) { return slowdowns(day.jobs, one, kLeastMs); },
      mean_and_p95);
  table.spread(
      "slowdown: light users",
      [](const Day& day, const Outcome& one) {
        return slowdowns(day.jobs, one, kLeastMs, day.light);
      },
      mean_and_p95);
  table.spread(
      "slowdown: heavy users",
      [](const Day& day, const Outcome& one) {
        return slowdowns(day.jobs, one, kLeastMs, day.heavy);
      },
      mean_and_p95);
  table.average(
      "Jain's index", [](const Outcome& one) { return one.fairness; },
      [](double index) { return text("%.2f", index); });
  print(kNames, table.rows());
}

int usage() {
  std::fprintf(stderr,
               "usage: muster-bench-day [--seed N] [--days N] [--load PART] [--nodes N] [--users N]"
               " [--spread 1]\n"
               "  --seed N     of the first day (default 1); each day has the next one\n"
               "  --days N     (default 4)\n"
               "  --load PART  work that arrives, as a part of what the site can do (default 1)\n"
               "  --nodes N    of 32 slots (default 64; at least 16)\n"
               "  --users N    (default 200)\n"
               "  --spread 1   muster places as with --placement spread\n");
  return 2;
}

int run(int argc, char** argv) {
  Site site;
  Profile profile;
  uint64_t count = 4;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    char* end = nullptr;
    const double value = i + 1 < argc ? std::strtod(argv[i + 1], &end) : 0;
    if (!end || *end != '\0' || value <= 0) return usage();
    if (flag == "--seed")
      profile.seed = static_cast<uint64_t>(value);
    else if (flag == "--days")
      count = static_cast<uint64_t>(value);
    else if (flag == "--load")
      profile.load = value;
    else if (flag == "--nodes" && value >= profile.largest_gang)
      site.nodes = static_cast<NodeId>(value);
    else if (flag == "--spread")
      site.spreads = true;
    else if (flag == "--users")
      profile.users = static_cast<uint32_t>(value);
    else
      return usage();
  }
  std::printf("$ ./dev bench day --seed %llu --days %llu --load %g --nodes %u --users %u\n",
              static_cast<unsigned long long>(profile.seed), static_cast<unsigned long long>(count),
              profile.load, site.nodes, profile.users);
  std::vector<Day> days;
  for (; count > 0; --count, ++profile.seed) {
    days.emplace_back(site, profile);
    describe(site, profile, days.back());
  }
  compare(days);
  return 0;
}

}  // namespace
}  // namespace muster::day

int main(int argc, char** argv) {
  return muster::day::run(argc, argv);
}
