// Reservation: where a job that needs much at once can start first. Pure.
//
// A gang, or a pod with large requests, would wait for ever if small pods took every slot that
// becomes free. plan() looks at what is free and at when the pods of others are likely to end, and
// chooses the places where all that the job needs is there first. Placement keeps them for it. The
// plan is made anew as pods end; it moves only to places that are clearly sooner, since what has
// been kept until then would be lost.
#pragma once

#include "core/cluster/slots/waiting.hpp"

#include <optional>
#include <vector>

namespace muster::core {

// Pods of one job on a node that are likely to have ended by then.
struct Ending {
  Millis at_ms = 0;
  uint32_t pods = 0;
  const Demand* demand = nullptr;
  bool known = true;  // otherwise nothing is known of the job, and the time says little
};

struct Outlook {
  FreeNode node;  // what is free now
  std::vector<Ending> endings;
};

// When places are likely to be free.
struct Due {
  Millis start_ms = 0;
  bool known = true;  // it follows from ends that are known
};

struct Plan {
  Reservation places;
  Due due;
};

// For a gang, all its waiting pods; otherwise one. nullopt: it would not fit even if all those pods
// had ended. `now`: on the clock of Ending::at_ms.
std::optional<Plan> plan(const std::vector<Outlook>& nodes, const WaitingJob& job, Millis now);

// When these places are likely to be free; nullopt: the nodes cannot offer them.
std::optional<Due> start_of(const Reservation& places, const std::vector<Outlook>& nodes,
                            const WaitingJob& job, Millis now);

}  // namespace muster::core
