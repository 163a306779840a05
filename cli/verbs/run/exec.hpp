// Options of muster exec.
#pragma once

#include "cli/verbs/verb.hpp"

namespace muster::cli {

struct ExecOptions {
  Target target;
  std::string pod;  // either this or `job`
  std::string job;
  std::optional<int64_t> index;   // unset: the only running pod of the job
  std::optional<int64_t> task{};  // in place of `index`, by the numbers of --array
  std::string container{};        // empty: the first
  std::vector<std::string> command;
  bool input = false;     // pass our standard input on
  bool terminal = false;  // and a terminal; only with `input`
};

int execute(const ExecOptions& options);

// The flags that choose a pod of a job.
FlagRow index_row(std::optional<int64_t>& index);
FlagRow task_row(std::optional<int64_t>& task);
// Only jobs have indexes and tasks. `example`: how to use them with this verb.
std::optional<Usage> check_chosen(const ExecOptions& options, const std::string& example);

}  // namespace muster::cli
