// Supervision: the actors whose death ends the process.
//
// Every actor but an index actor is vital: if a job were folded again while its own appends are in
// flight, two histories would be written under the same keys. So only a restart rebuilds state.
#pragma once

#include "base/check.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>

#include <exception>

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

// In the constructor of a vital actor: an exception that leaves a handler ends the process where
// std::terminate() can still tell what it was, rather than by way of an exit reason that cannot.
template <class Actor>
void end_on_exceptions(Actor& self) {
  self.set_exception_handler([](std::exception_ptr& exception) noexcept -> caf::error {
    std::rethrow_exception(exception);
  });
}

}  // namespace muster::actors
