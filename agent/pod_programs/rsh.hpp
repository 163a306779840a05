// muster-rsh and muster-mpi-entry: the programs in the run directory of an MPI job's pods
// (run_dirs.hpp). Both are links to this executable.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

// Called like ssh, by mpirun: muster-rsh [OPTION]... HOST WORD... runs the words with `sh -c` in
// the pod of this job that HOST names, waits for it, and returns its exit code; 255 with a line on
// stderr if that is not possible.
//
// Waits up to MUSTER_RSH_TIMEOUT seconds (default 300) for the pod to run, and just as long for a
// lost connection to come back; the command keeps running meanwhile.
int run_rsh(const std::vector<std::string>& arguments);

// The host and the command line of ssh's arguments.
struct RshLine {
  std::string host, command;
};
// nullopt: there is no host or no command, or an option is unknown.
std::optional<RshLine> parse_rsh(const std::vector<std::string>& arguments);

// muster-mpi-entry [--] COMMAND...: in index 0, becomes the command, without the variables that are
// valid only there, since launchers pass them on to every rank; in all others, waits for SIGTERM.
int run_mpi_entry(const std::vector<std::string>& arguments);

}  // namespace muster::agent
