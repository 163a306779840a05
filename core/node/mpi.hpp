// The variables that MPI launchers and rendezvous libraries read, for the pods of an MPI job
// (core/spec/fields/mpi.hpp).
//
// They come before the container's own variables, which win. Each generation of a launcher ignores
// the variables of the others, so a job of kind `auto` gets all of them.
#pragma once

#include "core/ids.hpp"
#include "core/node/pod_template.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace muster::core::node {

// What the agent adds to the template.
struct MpiFacts {
  std::string run_dir;         // of the pod: host files, the token of muster-rsh, bin/
  std::string leader_address;  // an IP address; empty: not known yet
  std::string iface;  // the interface that reaches the other nodes; empty: the launcher's choice
  std::string network{};  // of that interface, as "10.78.0.0/24"; empty: unknown
  bool rdma = false;      // the node has devices that MPI should prefer to that interface

  // Drops values that are not an address or an interface name: where a keeper builds a command for
  // another user, facts come from an agent that is not trusted. The keeper finds out the network
  // and `rdma` itself.
  MpiFacts checked() const;
};

// In a pod's run directory.
inline constexpr const char* kOpenMpiHosts = "hostfile.openmpi";
inline constexpr const char* kHydraHosts = "hostfile.hydra";
inline constexpr const char* kRshToken = "token";
inline constexpr const char* kRsh = "bin/muster-rsh";
inline constexpr const char* kPmi = "bin/muster-pmi";

// The names of all variables that differ between the pods of a job, separated by spaces, including
// those of the container that are expanded, and secrets. Launchers must not pass these on.
inline constexpr const char* kOwnVariables = "MUSTER_OWN_VARIABLES";

// The port for rendezvous on the leader's node (MASTER_PORT), derived from the job's uid, so all
// members know it before any of them runs. From 20000 to 29999, below the kernel's ephemeral ports.
uint16_t leader_port(const std::string& job_uid);

// Whether the job runs without a launcher; kPmi then runs its processes.
bool is_direct(const PodTemplate& job);

void set_mpi_variables(
    const PodTemplate& job, const std::string& index, const MpiFacts& facts,
    const std::function<void(const std::string& name, const std::string& value)>& set);

}  // namespace muster::core::node
