// Who cordoned or tainted a node, when and why (NodeSpec::reasons).
#pragma once

#include "core/cluster/nodes/node_info.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::core {

// What somebody says about a change of a node's spec; absent: nothing.
struct GivenReasons {
  std::optional<std::string> cordon;
  std::optional<std::string> taint;  // of the taints that the change adds or, if none, of all
};

// "dedicated:NoSchedule"
std::string taint_name(const Taint& taint);

// The reasons of `now`, which replaces `before`: what stays keeps its reason, unless there is a new
// one.
std::vector<NodeReason> reasons_after(const NodeSpec& before, const NodeSpec& now,
                                      const GivenReasons& given, const std::string& by,
                                      Millis at_ms);

// An event of the node.
struct NodeNews {
  std::string reason, message;
  bool operator==(const NodeNews&) const = default;
};
// What changes with `now`, of which the reasons are set; at most kNodeNewsMax.
inline constexpr size_t kNodeNewsMax = 10;
std::vector<NodeNews> news_of(const NodeSpec& before, const NodeSpec& now, const std::string& by);

// The reason of the cordon or of this taint; nullptr: not known.
const NodeReason* reason_of(const NodeSpec& spec, const std::string& what);
inline constexpr char kCordon[] = "cordon";

// "olga: replace DIMM", or the name alone.
std::string who_and_why(const NodeReason& reason);

}  // namespace muster::core
