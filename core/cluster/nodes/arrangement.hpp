// Arrangement: which nodes a job takes if it chose to be packed or spread (muster.dev/placement).
// Pure.
//
// Packed, a job takes the nodes that already have pods of it, then those with the most room, and
// for the rest the node that is just large enough: no other choice needs fewer nodes, and large
// nodes stay free. Spread, each pod goes to the node with the fewest of the job's pods, and among
// these to the one with the most room. Ties go to the place that comes first.
#pragma once

#include "core/spec/fields/annotations.hpp"

#include <cstdint>
#include <vector>

namespace muster::core {

// A node that the job's pods may go to.
struct Place {
  uint32_t room = 0;  // how many more pods fit there
  uint32_t held = 0;  // how many pods are there already
};

// How many of `most` pods each place takes. Places as many as fit.
std::vector<uint32_t> arrange(PlacementChoice choice, const std::vector<Place>& places,
                              uint64_t most);

}  // namespace muster::core
