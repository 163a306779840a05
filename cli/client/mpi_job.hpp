// The job that `muster mpirun` makes of a command: index 0 starts the launcher of an MPI, the other
// indexes wait for it, and the job is over when the launcher is.
#pragma once

#include "cli/output/json.hpp"
#include "cli/settings/options.hpp"

#include <string>
#include <string_view>

namespace muster::cli {

enum class MpiLauncher { unknown, openmpi, hydra };

// Which launcher prints this when asked for its version.
MpiLauncher launcher_of(std::string_view version);

// The launcher to start, by its name or path on this machine, and what its flags are.
struct FoundLauncher {
  std::string program;
  MpiLauncher kind = MpiLauncher::unknown;
};
FoundLauncher find_launcher(core::MpiKind kind);

// "openmpi,slots=4"
std::string mpi_annotation(const MpiWishes& wishes);

// `manifest`: a command_manifest() of the program, with one index for each host.
Json mpi_manifest(Json manifest, const MpiWishes& wishes, const FoundLauncher& launcher);

}  // namespace muster::cli
