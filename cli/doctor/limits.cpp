#include "cli/doctor/limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

namespace muster::cli::doctor {
namespace {

constexpr uint64_t kFilesOfPods = 4'096;    // hard; MPI programs and databases want more than 1,024
constexpr uint64_t kProcessesOfSlot = 100;  // threads count, too

uint64_t limit_of(const std::string& word) {
  return word == "unlimited" ? kUnlimited : std::strtoull(word.c_str(), nullptr, 10);
}

std::string text_of(uint64_t limit) {
  return limit == kUnlimited ? "unlimited" : std::to_string(limit);
}

std::string set_in_unit(const char* setting) {
  return std::string("set ") + setting +
         " in the unit that starts it, or ulimit in the script that does";
}

// Whether the line is of this limit; then its two values.
bool is_limit(const std::string& line, std::string_view name, uint64_t& soft, uint64_t& hard) {
  if (!line.starts_with(name)) return false;
  std::istringstream words(line.substr(name.size()));
  std::string first, second;
  if (!(words >> first >> second)) return false;
  soft = limit_of(first);
  hard = limit_of(second);
  return true;
}

}  // namespace

LimitFacts read_limits(const std::string& text, std::string whose) {
  LimitFacts facts{.whose = std::move(whose)};
  int found = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    uint64_t hard = 0;
    found += is_limit(line, "Max open files", facts.open_files, facts.hard_open_files);
    found += is_limit(line, "Max processes", facts.processes, hard);
    found += is_limit(line, "Max cpu time", facts.cpu_seconds, hard);
    found += is_limit(line, "Max file size", facts.file_bytes, hard);
    found += is_limit(line, "Max address space", facts.address_bytes, hard);
    found += is_limit(line, "Max locked memory", facts.locked_bytes, hard);
  }
  facts.known = found == 6;
  if (!facts.known) facts.why = "its limits cannot be read";
  return facts;
}

void judge_open_files(const LimitFacts& facts, uint64_t enough, const std::string& for_what,
                      const std::string& unit, Findings& out) {
  if (!facts.known) {
    out.unknown("open files", facts.whose + ": " + facts.why, "run this as root");
    return;
  }
  const std::string found =
      facts.whose + " may open " + text_of(facts.hard_open_files) + " files (hard limit)";
  if (facts.hard_open_files < enough)
    out.warn("open files", found + ", " + for_what, unit);
  else
    out.ok("open files", found);
}

void judge_pod_limits(const LimitFacts& facts, uint32_t slots, bool has_rdma, Findings& out) {
  if (!facts.known) {
    out.unknown("limits", facts.whose + ": " + facts.why, "run this as root");
    return;
  }
  judge_open_files(facts, kFilesOfPods,
                   "which the outputs and cgroups of its pods share and pods inherit",
                   set_in_unit("LimitNOFILE=524288"), out);
  if (const uint64_t least = std::max<uint64_t>(slots, 1) * kProcessesOfSlot;
      facts.processes < least)
    out.warn("processes",
             facts.whose + " may have " + text_of(facts.processes) +
                 " processes and threads, and so may each user's pods (RLIMIT_NPROC); " +
                 std::to_string(slots) + " slots want " + std::to_string(least),
             set_in_unit("LimitNPROC=infinity"))
        .breaks_pods = true;
  else
    out.ok("processes", facts.whose + " may have " + text_of(facts.processes));
  bool any = false;
  for (const auto& [limit, what, setting, unit] :
       {std::tuple(facts.cpu_seconds, "CPU time (RLIMIT_CPU)", "LimitCPU=infinity", " s"),
        std::tuple(facts.file_bytes, "size of files (RLIMIT_FSIZE)", "LimitFSIZE=infinity",
                   " bytes"),
        std::tuple(facts.address_bytes, "address space (RLIMIT_AS)", "LimitAS=infinity",
                   " bytes")}) {
    if (limit == kUnlimited) continue;
    any = true;
    out.warn("limits",
             facts.whose + " is limited in its " + what + " to " + text_of(limit) + unit +
                 ", and every pod inherits that",
             set_in_unit(setting))
        .breaks_pods = true;
  }
  if (!any) out.ok("limits", facts.whose + " passes no limit of CPU time, files or memory to pods");
  if (has_rdma && facts.locked_bytes != kUnlimited)
    out.warn("locked memory",
             facts.whose + " may lock " + size_text(facts.locked_bytes) +
                 " of memory: MPI programs cannot use this node's fast network",
             set_in_unit("LimitMEMLOCK=infinity"))
        .breaks_pods = true;
}

void judge_pids(std::optional<uint64_t> most, const std::string& cgroup, uint32_t slots,
                Findings& out) {
  if (!most) return;
  const uint64_t least = std::max<uint64_t>(slots, 1) * kProcessesOfSlot;
  const std::string found =
      "all pods together may have " + text_of(*most) +
      (*most == kUnlimited ? "" : " processes and threads, as pids.max of " + cgroup + " says");
  if (*most < least)
    out.warn("tasks", found + "; " + std::to_string(slots) + " slots want " + std::to_string(least),
             "set TasksMax=infinity in the keeper's unit, or the agent's if it starts the keeper")
        .breaks_pods = true;
  else
    out.ok("tasks", found);
}

}  // namespace muster::cli::doctor
