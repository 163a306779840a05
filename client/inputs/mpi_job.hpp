// MPI job: the job that `muster mpirun` makes from a command. Index 0 starts the MPI launcher, the
// other indexes wait for it, and the job ends when the launcher does.
#pragma once

#include "base/result.hpp"
#include "client/inputs/wishes.hpp"
#include "client/terminal/json.hpp"

#include <string>
#include <string_view>

namespace muster::cli {

inline constexpr uint32_t kCpusPerRankMax = 4'096;

// "openmpi", "mpich" or "auto".
core::MpiKind mpi_kind(std::string_view word);

enum class MpiLauncher { unknown, openmpi, hydra };

// The launcher that prints this version.
MpiLauncher launcher_of(std::string_view version);

// The launcher to start, by its name or path on this machine, and its kind, which determines its
// flags.
struct FoundLauncher {
  std::string program;
  MpiLauncher kind = MpiLauncher::unknown;
};
FoundLauncher find_launcher(core::MpiKind kind);

// "openmpi,slots=4"
std::string mpi_annotation(const MpiWishes& wishes);

// A host requests the CPUs of its slots, unless --cpus says how many or --oversubscribe is given.
// invalid: --cpus-per-rank contradicts one of these.
Status settle_cpus(MpiWishes& wishes, ResourceWishes& resources);
// How many threads each rank should have; 0: not given.
int64_t threads_of_rank(const MpiWishes& wishes, const ResourceWishes& resources);

// Whether this launcher has what is wished. invalid: names the flag and the launcher that has it.
Status check_launcher(const MpiWishes& wishes, const FoundLauncher& launcher);

// `manifest`: a command_manifest() of the program, with one index per host.
Json mpi_manifest(Json manifest, const MpiWishes& wishes, const FoundLauncher& launcher);

}  // namespace muster::cli
