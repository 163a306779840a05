// Object JSON: Nodes, and Events of jobs, as clients see them.
//
// Rendered on demand from the View. Fields are omitted exactly where Kubernetes omits them
// (job-semantics 2.1). For jobs and pods, see job_text.hpp and pod_json.hpp.
#pragma once

#include "base/text/json.hpp"
#include "core/cluster/nodes/node_info.hpp"
#include "core/job/fold/job.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

// Whether its agent announced its shutdown and is gone; survives a restart of the coordinator.
bool has_left(const core::NodeInfo& node);

// What its agent reports that keeps pods from a node whose agent is connected: the trouble of the
// agent, a failed health check or starts that fail, in this order; empty: nothing.
core::NodeTrouble reported_trouble(const core::NodeInfo& node);

// A node's Ready condition: whether it may get pods, unless an operator prevents it, and why not.
struct ReadyCondition {
  const char* status;  // True, False, Unknown
  std::string reason;
  std::string message;
};
ReadyCondition ready_condition(const core::NodeInfo& node);

// The annotation of a Node that shows who cordoned and tainted it, when and why; only the server
// writes it. With a change, clients say why in one of the other two, which are not stored.
inline constexpr char kReasonsKey[] = "muster.dev/reasons";
inline constexpr char kUntilKey[] = "muster.dev/until";  // when its agent ends, if that is known
inline constexpr char kCordonReasonKey[] = "muster.dev/cordon-reason";
inline constexpr char kTaintReasonKey[] = "muster.dev/taint-reason";
OrderedJson node_json(const core::NodeInfo& node, uint64_t version);
// Whether it is a taint by which a Node shows that it is cordoned or lost; it is not stored.
bool is_shown_taint(const core::Taint& taint);
OrderedJson event_json(const core::Job& job, const core::JobEvent& event, uint64_t version);

// A label of a node, including those that every node has.
std::optional<std::string_view> node_label(const core::NodeInfo& node, std::string_view key);

}  // namespace muster::api
