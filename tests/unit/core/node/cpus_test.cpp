// CPUs of their own: which ones a process gets, which processes may have some, and lists as text.
#include "core/node/cpus.hpp"

#include "core/node/pod_template.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace muster::core::node {
namespace {

// Numbered as Linux does on most machines: the second hardware threads come after all cores.
std::vector<Cpu> machine(uint32_t packages, uint32_t nodes, uint32_t cores, uint32_t threads) {
  std::vector<Cpu> all;
  const uint32_t count = packages * nodes * cores;
  for (uint32_t thread = 0; thread < threads; ++thread)
    for (uint32_t core = 0; core < count; ++core)
      all.push_back({thread * count + core, core, core / (nodes * cores), core / cores});
  return all;
}

std::set<uint32_t> set_of(const std::string& text) {
  const CpuList cpus = parse_cpu_list(text).value();
  return {cpus.begin(), cpus.end()};
}

TEST(AllocateCpus, FollowsTheTopology) {
  const auto sockets = machine(2, 1, 4, 2);  // 0-3 and 8-11, 4-7 and 12-15
  const auto nodes = machine(1, 2, 2, 1);    // 0-1, 2-3
  const auto both = machine(2, 2, 2, 1);     // 0-1 and 2-3, 4-5 and 6-7
  const auto plain = machine(1, 1, 2, 1);
  // Two cores with two threads and two with one.
  const std::vector<Cpu> mixed = {{0, 0}, {1, 0}, {2, 2}, {3, 2}, {4, 4}, {5, 5}};
  const struct {
    const char* why;
    const std::vector<Cpu>& all;
    const char* taken;
    size_t count;
    const char* gets;
  } rows[] = {
      {"the first", plain, "", 1, "0"},
      {"the other", plain, "0", 1, "1"},
      {"all", plain, "", 2, "0-1"},
      {"more than there are", plain, "", 3, ""},
      {"more than are free", plain, "1", 2, ""},
      {"none", plain, "", 0, ""},
      {"what is taken and not there does not matter", plain, "7", 2, "0-1"},
      {"no machine", {}, "", 1, ""},
      {"a core that nobody has", sockets, "0", 1, "1"},
      {"both threads of a core", sockets, "", 2, "0,8"},
      {"of a whole core", sockets, "0", 2, "1,9"},
      {"a whole core and one more", sockets, "", 3, "0-1,8"},
      {"rather the other socket than a core in use", sockets, "0-3", 1, "4"},
      {"a thread of a core in use if there is nothing else", sockets, "0-7", 1, "8"},
      {"threads of several cores in use", sockets, "0-7", 3, "8-10"},
      {"the fullest socket that has whole cores", sockets, "0-2", 2, "3,11"},
      {"one socket before two", sockets, "0-2,8-9", 4, "4-5,12-13"},
      {"one socket with shared cores before two", sockets, "0-3,4-7", 4, "8-11"},
      {"a whole socket and one more", sockets, "", 9, "0-4,8-11"},
      {"everything", sockets, "", 16, "0-15"},
      {"one NUMA node before two", nodes, "0", 2, "2-3"},
      {"the fullest NUMA node", nodes, "0", 1, "1"},
      {"two NUMA nodes if it must be", nodes, "0", 3, "1-3"},
      {"likewise", nodes, "0,2", 2, "1,3"},
      {"one socket, whatever its NUMA nodes", both, "0-1", 3, "4-6"},
      {"a core that is no larger than needed", mixed, "", 1, "4"},
      {"rather a small core than a part of one in use", mixed, "0,2", 1, "4"},
      {"the largest cores first", mixed, "", 3, "0-1,4"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(cpu_list_text(allocate_cpus(row.all, set_of(row.taken), row.count)), row.gets)
        << row.why;
}

// Whatever is taken: as many as asked for, none twice, and the same again.
TEST(AllocateCpus, GivesWhatIsFreeOrNothing) {
  std::mt19937 random(7);
  const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random()) % n; };
  for (int round = 0; round < 2000; ++round) {
    const auto all = machine(1 + below(2), 1 + below(3), 1 + below(4), 1 + below(2));
    std::set<uint32_t> taken;
    for (const Cpu& cpu : all)
      if (below(3) == 0) taken.insert(cpu.number);
    const size_t free = all.size() - taken.size(),
                 count = below(static_cast<uint32_t>(all.size()) + 2);
    const CpuList got = allocate_cpus(all, taken, count);
    EXPECT_EQ(got.size(), count <= free ? count : 0);
    EXPECT_TRUE(std::ranges::is_sorted(got));
    for (const uint32_t cpu : got) {
      EXPECT_LT(cpu, all.size());
      EXPECT_TRUE(taken.insert(cpu).second) << cpu;
    }
    for (const uint32_t cpu : got) taken.erase(cpu);
    EXPECT_EQ(allocate_cpus(all, taken, count), got);
  }
}

TEST(CpuListText, IsTheKernels) {
  for (const char* text : {"", "0", "0-1", "0-3,8", "1,3,5", "0-65535"}) {
    const auto cpus = parse_cpu_list(text);
    ASSERT_TRUE(cpus) << text;
    EXPECT_EQ(cpu_list_text(*cpus), text);
  }
  for (const char* text : {"a", "-", "-1", "0-", "0,", ",0", "3-1", "1,1", "3,1", "0-3,2", "1 ",
                           "0-65536", "99999999999", "0x1"})
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  std::string longest = "1";
  for (uint32_t n = 3; longest.size() <= kCpuListTextMax; n += 2)
    longest += "," + std::to_string(n);
  EXPECT_FALSE(parse_cpu_list(longest));
}

TEST(WholeCpus, AreRequestedAndNotExceeded) {
  const struct {
    uint64_t request, limit;
    uint32_t cpus;
  } rows[] = {{0, 0, 0},    {1000, 0, 1}, {4000, 0, 4},       {4000, 4000, 4}, {0, 2000, 0},
              {1500, 0, 0}, {500, 0, 0},  {1000, 4000, 0},    {2000, 1000, 0}, {1500, 1500, 0},
              {0, 500, 0},  {999, 0, 0},  {100'000'000, 0, 0}};
  for (const auto& row : rows)
    EXPECT_EQ(whole_cpus(row.request, row.limit), row.cpus) << row.request << " " << row.limit;
}

}  // namespace
}  // namespace muster::core::node
