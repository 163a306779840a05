// TestGate: a gate without an actor.
#pragma once

#include "actors/gate.hpp"

#include <utility>

namespace muster::actors {

struct TestGate {
  TestGate(journal_actor journal, SealedLink link, Gate::Notifier notifier)
      : gate(std::move(journal), link, std::move(notifier)) {}
  Gate gate;
};

}  // namespace muster::actors
