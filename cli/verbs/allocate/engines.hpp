// Engines: those that there are. Slurm's is tested with Slurm itself, the others with stand-ins for
// their commands.
#pragma once

#include "cli/verbs/allocate/engine.hpp"

#include <memory>
#include <string_view>

namespace muster::cli::allocate {

// "slurm", "flux" or "pbs".
std::unique_ptr<Engine> engine_of(std::string_view name);

std::unique_ptr<Engine> slurm();
std::unique_ptr<Engine> flux();  // flux-core
std::unique_ptr<Engine> pbs();   // OpenPBS and PBS Professional

}  // namespace muster::cli::allocate
