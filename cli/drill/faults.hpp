// Faults: injects the faults of a schedule, one at a time, and confirms that each has happened.
//
// A fault counts as confirmed only by what the kernel, the daemon's log or its API shows: a pid and
// start time that changed, state T in /proc, bytes that were held. Never by the mere absence of an
// error.
#pragma once

#include "cli/client/http.hpp"
#include "cli/drill/judge.hpp"
#include "cli/drill/observer.hpp"
#include "cli/drill/reach.hpp"
#include "cli/drill/scenario.hpp"
#include "cli/drill/scratch.hpp"

#include <functional>
#include <memory>
#include <optional>
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
  std::string backup_dir;        // where the coordinator can write, and --restore can read
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

class Running;

class Injector {
 public:
  Injector(Site site, Pause pause);
  ~Injector();

  // Injects it, waits until it is over and the daemons that it hit run again.
  Injected inject(const Step& step, Observer& observer);
  // Of the last restore.
  const std::optional<Gap>& gap() const;

 private:
  void hit_scratch(const Step& step, Observer& observer, Injected& out);
  void kill_coordinator(const Step& step, Injected& out);
  void kill_agent(const Step& step, Injected& out);
  void kill_keeper(const Step& step, Injected& out);
  void lose_node(const Step& step, Injected& out);
  void cut_off(const Step& step, Injected& out);
  void fill_disk(const Step& step, Injected& out);
  void jump_clock(const Step& step, Injected& out);
  void upgrade(const Step& step, Injected& out);
  bool restart_with(const std::string& executable, Injected& out);
  void restore(const Step& step, Observer& observer, Injected& out);
  std::optional<Millis> clock_offset();

  const Site site_;
  const Pause pause_;
  std::unique_ptr<Running> running_;  // null: a scratch cluster
  std::optional<Gap> gap_;
  uint32_t probes_ = 0;
};

}  // namespace muster::cli::drill
