// Where the pods of an MPI job are (core/spec/fields/mpi.hpp), for the agents and muster-rsh.
#pragma once

#include "core/index_set.hpp"
#include "core/job/fold/job.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace muster::core {

struct HostList {
  struct Host {
    PodKey pod;
    NodeId node = kNoNode;
    bool running = false;
    bool operator==(const Host&) const = default;
  };
  JobObjectPtr object;
  uint32_t count = 0;       // pods that normally run at a time
  std::vector<Host> hosts;  // bound and active pods, by index; the newest of each
  IndexSet over;            // indexes that have succeeded or failed for good
  bool operator==(const HostList&) const = default;
};
using HostListPtr = std::shared_ptr<const HostList>;

HostList hosts_of(const Job& job);

}  // namespace muster::core
