// Actors under CAF's test scheduler: nothing runs and no time passes until the test says so.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/actor_system_config.hpp>

namespace muster::actors {

struct VirtualTime : caf::actor_system_config {
  VirtualTime() {
    add_message_types<caf::id_block::muster>();
    set("scheduler.policy", caf::atom("testing"));
  }
};

}  // namespace muster::actors
