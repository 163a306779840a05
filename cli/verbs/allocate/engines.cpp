#include "cli/verbs/allocate/engines.hpp"

namespace muster::cli::allocate {

std::unique_ptr<Engine> engine_of(std::string_view name) {
  if (name == "slurm") return slurm();
  if (name == "flux") return flux();
  return pbs();
}

}  // namespace muster::cli::allocate
