#include "agent/link/pool_name.hpp"

#include <initializer_list>

namespace muster::agent {

namespace {

constexpr size_t kPartMax = 64;

std::string part_of_name(const std::string& text) {
  std::string part;
  for (const char c : text.substr(0, kPartMax)) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool fits = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    part += !fits ? '-' : upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  while (part.ends_with('-')) part.pop_back();
  return part;
}

}  // namespace

std::string pool_node_name(const std::string& pool, const std::string& host,
                           const std::function<const char*(const char* name)>& variable) {
  const auto first = [&variable](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const char* const value = variable(name))
        if (std::string part = part_of_name(value); !part.empty()) return part;
    return std::string();
  };
  std::string job = first({"SLURM_JOB_ID", "FLUX_JOB_ID", "PBS_JOBID"});
  if (job.empty()) job = part_of_name(host);
  // Below mpirun in a job of Slurm, SLURM_PROCID is that of mpirun's own daemon.
  const std::string rank = first({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "FLUX_TASK_RANK",
                                  "SLURM_PROCID", "PBS_NODENUM"});
  return pool + "-" + job + (rank.empty() ? "" : "-" + rank);
}

}  // namespace muster::agent
