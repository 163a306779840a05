// The annotation muster.dev/mpi: a job whose index 0 launches an MPI program on all its indexes.
//
//   muster.dev/mpi: openmpi|mpich|auto[,slots=N][,iface=NAME][,ssh-shim][,direct]
//
// slots: ranks that a launcher may start in each pod (1 to kMpiSlotsMax, default 1). iface: the
// network interface that launchers and ranks use. ssh-shim: puts muster-rsh on the pods' PATH as
// ssh and rsh, for scripts that call them. direct: no launcher; each index is a rank, and the
// agents serve PMI-1 (mpich only).
#pragma once

#include "base/result.hpp"
#include "core/spec/fields/job_spec.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

constexpr std::string_view kMpiKey = "muster.dev/mpi";
constexpr uint32_t kMpiSlotsMax = 4096;

enum class MpiKind : uint8_t { any, openmpi, mpich };  // any: auto

struct MpiOptions {
  MpiKind kind = MpiKind::any;
  uint32_t slots = 1;
  std::string iface;  // empty: the node's choice
  bool ssh_shim = false;
  bool direct = false;
  bool operator==(const MpiOptions&) const = default;
};

// 1 to 15 letters, digits, dots, underscores and hyphens.
bool is_interface_name(std::string_view name);
// `invalid`: what is wrong with it and what would be right.
Result<MpiOptions> parse_mpi(std::string_view text);
// A job's options; nullopt if the annotation is absent or malformed.
std::optional<MpiOptions> mpi_of(const StringMap& annotations);

}  // namespace muster::core
