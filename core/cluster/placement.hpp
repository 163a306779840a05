// Placement: free slots x waiting pods -> grants. Pure.
//
// Fair among jobs: in each round every waiting job gets an equal share of what is free, so a job of
// 10^5 pods does not starve a job of one; who could not use its share leaves it to the others.
// Nodes are filled in order of their free slots, the emptiest first, so that work spreads.
#pragma once

#include "core/ids.hpp"
#include "core/spec/job_spec.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace muster::core {

struct FreeNode {
  NodeId node = kNoNode;
  uint32_t free = 0;
  const StringMap* labels = nullptr;
};

struct WaitingJob {
  JobId job = 0;
  uint32_t wanted = 0;
  const StringMap* node_selector = nullptr;  // each pair must be among the node's labels
};

// For each job that gets any: how many slots on which node. Waiting jobs are served in the order
// given, which the caller rotates so that a remainder does not always fall to the same one.
std::map<JobId, std::map<NodeId, uint32_t>> place(std::vector<FreeNode> nodes,
                                                  std::vector<WaitingJob> jobs);

}  // namespace muster::core
