// Site: the cluster under test, and the faults that are the same in every cluster.
#pragma once

#include "cli/client/http.hpp"
#include "cli/drill/judge.hpp"
#include "cli/drill/process.hpp"
#include "cli/drill/reach.hpp"
#include "cli/drill/scratch.hpp"
#include "cli/settings/options.hpp"

#include <functional>
#include <string>
#include <vector>

namespace muster::cli::drill {

// The cluster under test.
struct Site {
  Scratch* scratch = nullptr;    // null: a running cluster; what follows up to `target` is for it
  std::string pid_file;          // of the coordinator; empty: it is not hit
  const Reach* reach = nullptr;  // to its nodes
  std::vector<DrillNode> nodes;  // that may be hit
  Millis node_grace_ms = 0;      // of the coordinator
  Millis restart_within_ms = 0;  // until a supervisor has restarted what was killed
  std::string backup_dir;        // begins the paths of backups
  std::function<Status(const std::string& binary)> note_switch;  // before daemons run this binary
  std::string binary;                                            // the other muster, for an upgrade
  std::string probe_prefix;  // of the names of jobs that faults create
  Target target;
  ApiClient* client = nullptr;  // to the target, for this thread
};

// Sleeps, and returns false when the user has interrupted the drill.
using Pause = std::function<bool(Millis span_ms)>;

constexpr Millis kGoneMax = 10'000;    // until a killed process is gone
constexpr Millis kStoppedMax = 2'000;  // until a stopped one shows it
constexpr Millis kLook = 10;

// Both are different processes.
bool differ(const Process& a, const Process& b);
std::string change(const Process& before, const Process& after);
// Stops the process for hold_ms.
void freeze(const Process& process, Millis hold_ms, const Pause& pause, Injected& out);
// Lets no file of the coordinator grow until a write has been refused, and hold_ms longer. Whether
// it has ended of that.
bool fill_disk_of(const Process& coordinator, Millis hold_ms, const Site& site, const Pause& pause,
                  uint32_t& probes, Injected& out);

}  // namespace muster::cli::drill
