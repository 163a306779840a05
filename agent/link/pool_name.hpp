// The name of a node that joins with a pool's token (core/trust.hpp). Pure.
#pragma once

#include <functional>
#include <string>

namespace muster::agent {

// POOL-JOB-RANK in a job of Slurm, Flux or PBS, POOL-HOST-RANK below mpirun, else POOL-HOST, as a
// name may be: lower-case letters, digits and hyphens. `variable`: of the environment; null: not
// set.
std::string pool_node_name(const std::string& pool, const std::string& host,
                           const std::function<const char*(const char* name)>& variable);

}  // namespace muster::agent
