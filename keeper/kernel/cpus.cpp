#include "keeper/kernel/cpus.hpp"

#include "base/process/in_child.hpp"
#include "base/process/usable_cpus.hpp"

#include <cerrno>
#include <climits>
#include <dirent.h>
#include <fstream>
#include <sched.h>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kBitsPerWord = sizeof(unsigned long) * CHAR_BIT;

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

core::node::CpuList list_in(const std::string& path) {
  return core::node::parse_cpu_list(line_of(path)).value_or(core::node::CpuList());
}

// The NUMA node of each CPU; empty: the machine has none.
std::map<uint32_t, uint32_t> numa_nodes(const std::string& dir) {
  std::map<uint32_t, uint32_t> nodes;
  DIR* list = opendir(dir.c_str());
  if (list == nullptr) return nodes;
  while (const dirent* entry = readdir(list)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with("node")) continue;
    const auto number = core::node::parse_cpu_list(name.substr(4));
    if (!number || number->size() != 1) continue;
    for (const uint32_t cpu : list_in(dir + "/" + std::string(name) + "/cpulist"))
      nodes[cpu] = number->front();
  }
  closedir(list);
  return nodes;
}

}  // namespace

core::node::CpuList Cpus::take(uint64_t entry, uint32_t count) {
  if (count == 0) return {};
  const std::lock_guard lock(mutex_);
  if (!all_) all_ = own_cpus();
  core::node::CpuList cpus = core::node::allocate_cpus(*all_, taken_, count);
  if (cpus.empty()) return cpus;
  taken_.insert(cpus.begin(), cpus.end());
  by_entry_[entry] = cpus;
  return cpus;
}

void Cpus::give_back(uint64_t entry) {
  const std::lock_guard lock(mutex_);
  const auto found = by_entry_.find(entry);
  if (found == by_entry_.end()) return;
  for (const uint32_t cpu : found->second) taken_.erase(cpu);
  by_entry_.erase(found);
}

std::vector<core::node::Cpu> own_cpus(const std::string& system) {
  const auto nodes = numa_nodes(system + "/node");
  std::vector<core::node::Cpu> cpus;
  for (const uint32_t number : usable_cpus()) {
    const std::string topology = system + "/cpu/cpu" + std::to_string(number) + "/topology/";
    const core::node::CpuList threads = list_in(topology + "thread_siblings_list");
    const core::node::CpuList package = list_in(topology + "physical_package_id");
    const auto node = nodes.find(number);
    cpus.push_back({number, threads.empty() ? number : threads.front(),
                    package.empty() ? 0 : package.front(), node == nodes.end() ? 0 : node->second});
  }
  return cpus;
}

CpuMask::CpuMask(const core::node::CpuList& cpus) {
  if (cpus.empty()) return;
  words_.resize(cpus.back() / kBitsPerWord + 1);
  for (const uint32_t cpu : cpus) words_[cpu / kBitsPerWord] |= 1ul << (cpu % kBitsPerWord);
}

MUSTER_IN_CHILD bool CpuMask::bind() const {
  return words_.empty() ||
         syscall(SYS_sched_setaffinity, 0, words_.size() * sizeof words_[0], words_.data()) == 0;
}

}  // namespace muster::keeper
