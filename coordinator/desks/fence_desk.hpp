// FenceDesk: barriers (PMI fences) for the ranks of MPI jobs without a launcher.
//
// Stores nothing: each rank keeps everything it has put and the number of its last fence, and its
// agent reports them again after a restart of the coordinator.
//
// Belongs to the RPC thread.
#pragma once

#include "core/job/fold/hosts.hpp"

#include <kj/async.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::coordinator {

class FenceDesk {
 public:
  using KeyValues = std::map<std::string, std::string>;

  // The ranks are the pods of `hosts`, if each index has one. If the ranks have changed, calls keep
  // waiting, for the new ones.
  void set(JobId job, const core::HostListPtr& hosts);
  // Returns the group once all ranks have reached this fence or a later one.
  kj::Promise<uint64_t> come(PodId pod, uint32_t number, KeyValues puts);
  // What the ranks of the group have put; null if the ranks have changed since.
  std::shared_ptr<const KeyValues> gather(JobId job, uint64_t group);

 private:
  struct Rank {
    uint32_t number = 0;
    KeyValues puts;
  };
  struct Waiting {
    uint32_t number = 0;
    PodKey pod;
    kj::Own<kj::PromiseFulfiller<uint64_t>> go;
  };
  struct Meeting {
    core::HostListPtr hosts;
    uint64_t group = 0;
    std::map<PodKey, Rank> ranks;
    std::vector<Waiting> waiting;
    std::shared_ptr<const KeyValues> all{};  // null: not built yet
  };
  static void release(Meeting& meeting);

  std::map<JobId, Meeting> meetings_;
  uint64_t last_group_ = 0;
};

}  // namespace muster::coordinator
