// Supervision: the actors whose death ends the process.
//
// Every actor but an index actor is vital: if a job were folded again while its own appends are in
// flight, two histories would be written under the same keys. So only a restart rebuilds state.
#pragma once

#include "base/check.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/exit_reason.hpp>

namespace muster::actors {

// Ends the process when this actor ends for any reason but its own quit() or a shutdown.
template <class Handle>
Handle vital(Handle actor) {
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor([](const caf::error& reason) {
    bool wanted = !reason || reason == caf::exit_reason::user_shutdown;
    MUSTER_CHECK(wanted, caf::to_string(reason));
  });
  return actor;
}

}  // namespace muster::actors
