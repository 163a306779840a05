// DrillOptions: what `muster drill` was asked for.
#pragma once

#include "client/settings/target.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

// drill list, drill [run] SCENARIO..., drill history
struct DrillOptions {
  enum class What { list, run, history };
  What what = What::list;
  Target target;
  std::vector<std::string> scenarios;  // run in this order
  uint32_t times = 1;
  std::optional<uint64_t> seed;  // unset: a random one
  uint32_t canary = 60;          // indexes
  uint32_t nodes = 3;            // of the scratch cluster
  uint32_t coordinators = 0;     // likewise; 0: as many as the scenario needs
  Millis for_ms = 0;             // 0: once
  bool local = false;            // a scratch cluster, else the target
  bool baseline = true;          // run the canary without faults first
  bool yes = false;              // do not ask
  std::string binary, pid_file, witness_dir;
  struct Hooks {  // the operator's commands in a running cluster; process/reach.hpp explains them
    std::string on_node, start, switch_to, restore;
  } hooks;
  Millis node_grace_ms = 40'000;       // of that cluster
  Millis restart_within_ms = 120'000;  // until a supervisor has restarted what was killed
  std::string replay;                  // a JSON report; empty: none
  std::string report_dir = ".";
  Output output = Output::table;
};

}  // namespace muster::cli
