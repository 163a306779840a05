// Spawn: starts the processes of a scratch cluster, which die with us (PR_SET_PDEATHSIG).
#pragma once

#include "base/result.hpp"
#include "drill/process/process.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli::drill {

// Polled while something waits; true: give up.
using Interrupted = std::function<bool()>;

// One of its daemons.
struct Daemon {
  std::optional<Process> process;  // absent: not running
  std::string log;                 // path of its output
};

// Starts a program; its output is appended to `log`. Its environment is ours without muster's
// settings, which are meant for the user's cluster, plus these variables ("NAME=VALUE"). `dir`: of
// the scratch cluster. unavailable: it ended at once.
Result<Process> spawn(const std::string& executable, const std::vector<std::string>& words,
                      const std::string& log, const std::string& dir,
                      const std::vector<std::string>& variables = {});

// Whether the daemon has ended by itself since it was started; then it is no longer running.
bool reap(Daemon& daemon);
// Signals a daemon and waits until it has ended. unavailable: it has not ended.
Status end_daemon(Daemon& daemon, int signal);

// The end of a file.
std::string tail_of(const std::string& path, size_t bytes);

}  // namespace muster::cli::drill
