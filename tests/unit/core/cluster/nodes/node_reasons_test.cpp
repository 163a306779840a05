// Who cordoned and tainted a node, when and why.
#include "core/cluster/nodes/node_reasons.hpp"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

using Reasons = std::vector<NodeReason>;

NodeSpec spec(bool cordoned, std::vector<Taint> taints, Reasons reasons = {}) {
  NodeSpec spec;
  spec.unschedulable = cordoned;
  spec.taints = std::move(taints);
  spec.reasons = std::move(reasons);
  return spec;
}

const Taint kCourse{"course", "hpc1", "NoSchedule"};
const Taint kOther{"disk", "", "NoExecute"};
const NodeReason kOlgas{"cordon", "olga", 5, "replace DIMM"};

TEST(NodeReasons, AChangeIsStampedWithWhoWhenAndWhy) {
  EXPECT_EQ(reasons_after({}, spec(true, {}), {"replace DIMM", "unused"}, "olga", 5),
            Reasons{kOlgas});
  EXPECT_EQ(reasons_after({}, spec(true, {kCourse}), {}, "olga", 5),
            (Reasons{{"cordon", "olga", 5, ""}, {"course:NoSchedule", "olga", 5, ""}}));
  EXPECT_EQ(reasons_after(spec(true, {}, {kOlgas}), {}, {"why"}, "otto", 9), Reasons{})
      << "what is gone has no reason";
}

TEST(NodeReasons, WhatStaysKeepsItsReasonUnlessThereIsANewOne) {
  const NodeSpec before = spec(true, {kCourse}, {kOlgas});
  EXPECT_EQ(reasons_after(before, before, {}, "otto", 9), Reasons{kOlgas});
  EXPECT_EQ(reasons_after(before, before, {"replace DIMM"}, "otto", 9), Reasons{kOlgas});
  EXPECT_EQ(reasons_after(before, before, {"and the fan"}, "otto", 9),
            (Reasons{{"cordon", "otto", 9, "and the fan"}}));
  EXPECT_EQ(reasons_after(before, before, {std::nullopt, "a course"}, "otto", 9),
            (Reasons{kOlgas, {"course:NoSchedule", "otto", 9, "a course"}}));
  EXPECT_EQ(reasons_after(before, spec(true, {kCourse, kOther}), {std::nullopt, "full"}, "otto", 9),
            (Reasons{kOlgas, {"disk:NoExecute", "otto", 9, "full"}}))
      << "a reason is of the taints that are added";
}

TEST(NodeReasons, EventsSayWhatHasChanged) {
  const NodeSpec before = spec(false, {kOther});
  const NodeSpec after =
      spec(true, {kCourse}, {kOlgas, {"course:NoSchedule", "olga", 5, "the HPC course"}});
  EXPECT_EQ(news_of(before, after, "olga"),
            (std::vector<NodeNews>{
                {"NodeNotSchedulable", "olga cordoned the node: replace DIMM"},
                {"TaintAdded", "olga added the taint course=hpc1:NoSchedule: the HPC course"},
                {"TaintRemoved", "olga removed the taint disk:NoExecute"}}));
  EXPECT_EQ(news_of(after, spec(false, {kCourse}), "otto"),
            (std::vector<NodeNews>{{"NodeSchedulable", "otto uncordoned the node"}}));
  EXPECT_EQ(news_of(after, after, "otto"), std::vector<NodeNews>{});
}

}  // namespace
}  // namespace muster::core
