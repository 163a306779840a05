// Storm: one history of many jobs of every kind on one cluster, under every fault that World knows.
//
// First a phase in which everything may fail, then a calm one in which all that was accepted must
// end. The judge compares what the witness saw with what the disk says afterwards: each end counted
// once and as it was, nothing accepted lost, no rule of a status broken, no pod, slot or actor left
// over, backoff kept, and a small job started beside a large one.
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
  std::vector<std::string> without;  // faults that do not happen: kFaults
};

// Kinds of faults, as `without` names them.
extern const std::vector<std::string> kFaults;

struct Outcome {
  std::vector<std::string> broken;  // rules, each with what broke it; empty: all held
  World::Count count;
  uint64_t jobs = 0, pods = 0;
};

Outcome play(const Storm& storm);

// The same storm with as few jobs and kinds of faults as still break a rule.
Storm shrink(Storm storm);

}  // namespace muster::sim
