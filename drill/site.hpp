// Site: the cluster under test, and the faults that work the same in every cluster.
#pragma once

#include "client/connect/http.hpp"
#include "drill/drill_options.hpp"
#include "drill/process/process.hpp"
#include "drill/process/reach.hpp"
#include "drill/process/scratch.hpp"
#include "drill/proof/judge.hpp"

#include <functional>
#include <string>
#include <vector>

namespace muster::cli::drill {

// The cluster under test.
struct Site {
  Scratch* scratch = nullptr;    // null: a running cluster
  std::string pid_file;          // of the coordinator; empty: not hit
  const Reach* reach = nullptr;  // reaches its nodes
  std::vector<DrillNode> nodes;  // may be hit
  Millis node_grace_ms = 0;      // of the coordinator
  Millis restart_within_ms = 0;  // time limit for a supervisor to restart what was killed
  std::string backup_dir;        // prefix of the paths of backups
  std::function<Status(const std::string& binary)> note_switch;  // before daemons run this binary
  std::string binary;                                            // the other muster, for an upgrade
  std::string probe_prefix;  // for the names of jobs that faults create
  Target target;
  bool each_address = false;  // its addresses are those of several coordinators, watched one by one
  ApiClient* client = nullptr;  // to the target, on this thread
};

// Sleeps; returns false once the user has interrupted the drill.
using Pause = std::function<bool(Millis span_ms)>;

constexpr Millis kGoneMax = 10'000;    // until a killed process is gone
constexpr Millis kStoppedMax = 2'000;  // until a stopped process is in state T
constexpr Millis kLook = 10;

// Whether a and b are different processes.
bool differ(const Process& a, const Process& b);
std::string change(const Process& before, const Process& after);
// Stops the process for hold_ms.
void freeze(const Process& process, Millis hold_ms, const Pause& pause, Injected& out);
// Lets no file of the coordinator grow until a write has failed, and for hold_ms longer. Returns
// whether the coordinator exited because of it.
bool fill_disk_of(const Process& coordinator, Millis hold_ms, const Site& site, const Pause& pause,
                  uint32_t& probes, Injected& out);

}  // namespace muster::cli::drill
