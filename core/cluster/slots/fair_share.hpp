// Fair share: how much of what is free each of those who wait may have. Pure.
//
// Amounts are in slots of the cluster. A pod that takes a tenth of all memory counts as a tenth of
// all slots, whatever else it takes (its dominant share). Queues come first, then the users in
// each, then the jobs of each user: those who have least get most, until all who still want
// something have equally much for their weight. A job of 10^5 pods therefore does not starve a job
// of one, and a user with a hundred jobs gets no more than a user with one.
//
// The weight of a user falls with what the user has had of the cluster recently (recent_use.hpp).
#pragma once

#include "core/cluster/slots/waiting.hpp"

#include <cstdint>
#include <vector>

namespace muster::core {

struct Sharer {
  double held = 0;
  double wanted = 0;
  double weight = 1;  // above 0
};

// Divides `amount` so that (held + share) / weight of all who get something is equal and not above
// that of any who could take more. Nobody gets more than wanted; all of it goes, if it is wanted.
std::vector<double> level(const std::vector<Sharer>& sharers, double amount);

// How many of its pods a job may start.
struct Share {
  WaitingJob* job = nullptr;
  uint32_t pods = 0;
};
// Divides `free` slots among those jobs of the line that the pass serves. Jobs that get nothing are
// left out; the ones that would get the next slot come first. `fresh`: the pass serves all jobs of
// the line, so what users want need not be added up.
std::vector<Share> shares_of(const Line& line, const Pass& pass, uint64_t free, bool fresh);

}  // namespace muster::core
