// Hand: the part of a drill that runs on a node, `muster drill hand VERB NODE-UID …`, as a child of
// the drill or through the operator's --on-node command.
//
// It finds the agent whose work-dir has this id, and its keeper, among the processes on this
// machine, and touches nothing else. For a fault, it prints a line of JSON once the fault has
// happened, waits for a line on stdin, reverts the fault and prints another line. If stdin ends
// first (the drill was interrupted or killed, or the connection broke), it also reverts the fault.
//
// Whatever must be undone even if the hand is killed is first written to a private file, which
// `mend` reads. A watcher process undoes it sooner if it can.
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
//   leave      {"left": true}: the agent has exited; its pods keep running
//   a fault    {"hit": "…"}, and at the end {"confirmed": BOOL, "proof": "…"}
//   any        {"error": "…"}, and exit code 1
int run_hand(const std::vector<std::string>& words);

}  // namespace muster::cli::drill
