// decide(): the rules of nodes' lives and of who gets their slots.
//
// Pure: time is an argument. It changes only the cluster: nodes by records, slots directly.
//
// An agent that registers is refused, or continues its incarnation, or begins the next one
// (registration.cpp). A node lives by its lease (life.cpp): silent for --node-grace, it is lost,
// unless no node at all responds; then its loss is held until one does. A node that starts nothing
// gets no pods but probes (starts.cpp). Slots go to jobs in rounds (placing.cpp).
//
// Invariants: a node gets grants only between NodeConnected and the loss of its session or lease;
// an incarnation that is gone never gets one again; a name belongs to one work-dir and the holder
// of its secret, until that agent has been silent for a full --node-grace; only an agent that
// proves that it has served this cluster can stop the coordinator, and an agent of another machine
// needs a seal made by a coordinator of this cluster.
#pragma once

#include "core/cluster/fold/cluster.hpp"
#include "core/cluster/fold/decision.hpp"
#include "core/cluster/fold/event.hpp"

namespace muster::core::cluster {

// Applies the records that it returns.
Decision decide(Cluster& cluster, const Event& event, const Now& now);

}  // namespace muster::core::cluster
