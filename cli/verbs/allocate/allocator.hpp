// Allocator: the process behind `muster allocate`. Looks at the coordinator and the batch system,
// lets Pool decide, and carries that out, until it gets SIGINT or SIGTERM.
//
// It needs nothing of an earlier run but the budget's books: allocations are found again by their
// name in the batch system. What it knows is kept for others to see (client/news/pool_report.hpp).
// What it cannot see it does not act on: while the coordinator or the batch system does not answer,
// nothing is asked for and nothing is given back.
#pragma once

#include "cli/verbs/allocate/engine.hpp"
#include "client/settings/target.hpp"

#include <string>
#include <vector>

namespace muster::cli {

struct AllocateOptions {
  Target target;
  std::string engine;  // slurm, flux or pbs
  allocate::PoolSettings pool;
  allocate::Request request;
  std::string queue;                           // whose demand counts; empty: of all queues
  std::vector<std::string> labels, resources;  // of the agents: "k=v", "NAME=COUNT"
  Millis every_ms = 10'000;                    // between two looks
  bool dry_run = false;
  bool cancel_on_exit = false;
};

// Exit codes: 0 stopped by a signal, or a dry run; else those of other verbs.
int execute(const AllocateOptions& options);

}  // namespace muster::cli
