// Storm: one history of many jobs of every kind on one cluster, under every fault that World knows.
//
// First comes a phase in which everything may fail, then a calm one in which all accepted jobs must
// end. The judge compares what the witness saw with what is on the disk afterwards: each end is
// counted once and correctly, nothing accepted is lost, no status rule is broken, no pod, slot or
// actor is left over, backoff is kept, and a small job starts alongside a large one.
#pragma once

#include "tests/sim/world.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::sim {

struct Storm {
  uint64_t seed = 1;
  int jobs = 0;  // 0: chosen by the seed, 2 to 9
  Plant plant = Plant::none;
  std::vector<std::string> without;  // faults to leave out, from kFaults
};

// Whether the history is of a site with users, queues and operators (Plan::site).
bool is_site(uint64_t seed);

// Kinds of faults, as `without` names them.
extern const std::vector<std::string> kFaults;

struct Outcome {
  std::vector<std::string> broken;  // rules and how each was broken; empty: all held
  World::Count count;
  uint64_t jobs = 0, pods = 0;
};

Outcome play(const Storm& storm);

// The same storm with as few jobs and kinds of faults as still break a rule.
Storm shrink(Storm storm);

}  // namespace muster::sim
