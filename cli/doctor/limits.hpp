// Limits: what a process may use (setrlimit(2)), which its children inherit, and how many processes
// its cgroup may hold.
#pragma once

#include "cli/doctor/finding.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace muster::cli::doctor {

constexpr uint64_t kUnlimited = UINT64_MAX;

struct LimitFacts {
  std::string whose;  // "the keeper (pid 4711)", "this shell"
  bool known = false;
  std::string why{};  // why not
  uint64_t open_files = kUnlimited, hard_open_files = kUnlimited;
  uint64_t processes = kUnlimited, cpu_seconds = kUnlimited, file_bytes = kUnlimited,
           address_bytes = kUnlimited, locked_bytes = kUnlimited;
};

// Reads the text of /proc/PID/limits; `known` is false if it lacks a line.
LimitFacts read_limits(const std::string& text, std::string whose);

// Of a daemon that serves many connections, or of a client.
void judge_open_files(const LimitFacts& facts, uint64_t enough, const std::string& for_what,
                      const std::string& unit, Findings& out);
// Of a node, whose pods inherit them. `slots`: pods at a time. `has_rdma`: MPI programs there lock
// memory.
void judge_pod_limits(const LimitFacts& facts, uint32_t slots, bool has_rdma, Findings& out);
// `most`: the lowest pids.max of the pods' cgroups; nullopt: not known.
void judge_pids(std::optional<uint64_t> most, const std::string& cgroup, uint32_t slots,
                Findings& out);

}  // namespace muster::cli::doctor
