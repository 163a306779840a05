// CPUs that a process has for itself: which ones, by the node's topology.
//
// A process is bound if its container requests whole CPUs and the agent is told to
// (--cpu-binding); the keeper gives CPUs out (keeper/kernel/cpus.hpp).
//
// Pure. CPUs have the kernel's numbers.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::core::node {

using CpuList = std::vector<uint32_t>;  // ascending, without duplicates

// Says in a process's environment which CPUs it is bound to; not set: it is not bound.
constexpr const char* kCpusVariable = "MUSTER_CPUS";
constexpr size_t kCpuListTextMax = 4096;    // bytes of a list that others sent
constexpr uint32_t kCpuNumberMax = 65'535;  // beyond what any kernel supports

struct Cpu {
  uint32_t number = 0;
  uint32_t core = 0;     // the same for hardware threads of one core, on the whole machine
  uint32_t package = 0;  // socket
  uint32_t numa = 0;     // NUMA node
  auto operator<=>(const Cpu&) const = default;
};

// `count` CPUs that are not taken: in one package if one has enough, in one NUMA node likewise,
// and in each of those the fullest that has. There, whole free cores first, then single hardware
// threads, of cores that nobody has as long as there are any. Empty: not that many are free.
// Deterministic: ties go to the lowest number.
CpuList allocate_cpus(const std::vector<Cpu>& all, const std::set<uint32_t>& taken, size_t count);

// As the kernel writes lists: "0-3,8".
std::string cpu_list_text(const CpuList& cpus);
// Nullopt: it is not such a list, is not ascending, is too long or has too large a number.
std::optional<CpuList> parse_cpu_list(std::string_view text);

}  // namespace muster::core::node
