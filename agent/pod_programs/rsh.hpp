// muster-rsh and muster-mpi-entry: the programs in the run directory of an MPI job's pods
// (run_dirs.hpp). Both are links to this executable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

// Called like ssh, by mpirun: muster-rsh [OPTION]... HOST WORD... runs the words with `sh -c` in
// the pod of this job that HOST names, waits for it, and returns its exit code; 255 with a line on
// stderr if that is not possible. Without words, it runs `sh`, which reads its script from stdin.
// The command reads what we read on stdin, unless -n is given.
//
// Hydra sends every rank the environment of its launcher, with variables that are valid only in
// that pod, so it is told to send none (HYDRA_ENV). Its proxies get from us what is not of a pod.
//
// Waits up to MUSTER_RSH_TIMEOUT seconds (default 300) for the pod to run, and just as long for a
// lost connection to come back; the command keeps running meanwhile.
int run_rsh(const std::vector<std::string>& arguments);

// The host and the command line of ssh's arguments.
struct RshLine {
  std::string host, command;  // no command: a shell
  bool no_input = false;      // -n
};
// nullopt: there is no host, or an option is unknown. Options may also follow the host.
std::optional<RshLine> parse_rsh(const std::vector<std::string>& arguments);

// The script that sets the variables of `environ` that are not of a pod, for another pod: not those
// that `own` names, and not those of the shell or of a launcher. `run_dir`: of this pod; its
// programs on the PATH are replaced by those of the other one.
std::string environment_script(const char* const* environ, std::string_view own,
                               const std::string& run_dir);

// scp of the option ssh-shim: says what to do instead, and returns 255.
int refuse_scp();

// muster-mpi-entry [--] COMMAND...: in index 0, becomes the command; in all others, waits for
// SIGTERM and ignores other signals.
int run_mpi_entry(const std::vector<std::string>& arguments);

}  // namespace muster::agent
