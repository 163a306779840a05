// Hand: the part of a drill that runs on a node, `muster drill hand VERB NODE-UID …`, as a child of
// the drill or through the operator's --on-node command.
//
// It finds the agent whose work-dir has this id, and its keeper, among the processes of this
// machine, and touches nothing else. A fault prints a line of JSON when it has happened, then waits
// for a line on its stdin, takes the fault back and prints another. If its stdin ends first (the
// drill was interrupted or killed, or the connection broke), it takes the fault back, too.
//
// What must be undone even if the hand is killed is noted in a private file first, which `mend`
// reads; a watcher process does it earlier if it can.
#pragma once

#include <string>
#include <vector>

namespace muster::cli::drill {

// look, mend, logs UID JOB-UID, digest, leave, agent-kill, agent-freeze, keeper-kill, node-loss,
// partition. Its output, lines of JSON objects:
//   look       {"agent": PROCESS, "keeper": PROCESS, "workDir": D, "boot": ID, "pods": N,
//               "unit": U, "noCut": WHY, "left": BOOL}; members that do not apply are absent.
//              PROCESS is {"pid", "ticks", "uid", "executable"}.
//   mend       {"mended": "…"}; empty: there was nothing to undo
//   logs       {"logs": {POD: TEXT, …}}
//   digest     {"sha256": "…"} of the agent's executable
//   leave      {"left": true}: the agent has ended, its pods run on
//   a fault    {"hit": "…"}, and at the end {"confirmed": BOOL, "proof": "…"}
//   any        {"error": "…"}, and exit code 1
int run_hand(const std::vector<std::string>& words);

}  // namespace muster::cli::drill
