// Waiting: what pods without a node wait for, and what they require of one, for metrics and for
// /apis/muster.dev/v1/demand.
#pragma once

#include "api/view/model/view.hpp"
#include "api/view/model/viewer.hpp"
#include "base/text/json.hpp"

#include <string_view>

namespace muster::api {

// What the pods of the job that have no node wait for: slots (nothing free fits), queue_limit,
// user_limit, queue_nodes (no node of its queue fits), queue (it may not use its queue as it is),
// hold, scheduling_gate.
std::string_view waits_for(const View& view, const core::Job& job);

// One object for each job that has pods without a node, and for each of their sizes if some have
// grown (muster.dev/retry-memory, retry-time): how many there are, what they wait for and what each
// requires. Only of jobs that the viewer owns; of all if it is an operator.
OrderedJson demand_items(const View& view, const Viewer& viewer);

}  // namespace muster::api
