// How many nodes pods fill.
#include "cli/verbs/allocate/demand.hpp"

#include <gtest/gtest.h>

namespace muster::cli::allocate {
namespace {

constexpr Millis kHourMs = 3'600'000;
const Shape kShape{.slots = 4,
                   .cpu_millis = 4000,
                   .memory_bytes = 1000,
                   .named = {{"gpu", 2}},
                   .labels = {{"disk", "ssd"}}};

TEST(DemandTest, PodsOnANode) {
  struct Case {
    Demand demand;
    uint64_t pods;
  };
  const Case cases[] = {
      {{}, 4},
      {{.cpu_millis = 1500}, 2},
      {{.cpu_millis = 4001}, 0},
      {{.memory_bytes = 400}, 2},
      {{.named = {{"gpu", 1}}}, 2},
      {{.named = {{"fpga", 1}}}, 0},
      {{.node_selector = {{"disk", "ssd"}}}, 4},
      {{.node_selector = {{"disk", "hdd"}}}, 0},
      {{.of_one_node = true}, 0},
      {{.time_limit_s = 3599}, 4},
      {{.time_limit_s = 3600}, 0},
  };
  for (const Case& one : cases)
    EXPECT_EQ(pods_on(one.demand, kShape, kHourMs), one.pods) << &one - cases;
}

TEST(DemandTest, NodesThatPodsFill) {
  const auto need = [](std::vector<Demand> all, std::optional<Shape> shape = kShape) {
    for (Demand& one : all)
      if (one.waits_for.empty()) one.waits_for = "slots";
    const Need need = need_of(all, shape, kHourMs);
    return std::pair(need.pods, need.nodes);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(need({}), Pair(0, 0));
  EXPECT_EQ(need({{.pods = 1}}), Pair(1, 1));
  EXPECT_EQ(need({{.pods = 4}}), Pair(4, 1));
  EXPECT_EQ(need({{.pods = 5}}), Pair(5, 2));
  EXPECT_EQ(need({{.pods = 3, .cpu_millis = 2500}}), Pair(3, 3)) << "two do not fit on a node";
  EXPECT_EQ(need({{.pods = 2}, {.pods = 1, .cpu_millis = 2000}}), Pair(3, 1)) << "halves";
  EXPECT_EQ(need({{.waits_for = "queue_limit", .pods = 9}}), Pair(0, 0));
  EXPECT_EQ(need({{.waits_for = "hold", .pods = 9}}), Pair(0, 0));
  EXPECT_EQ(need({{.waits_for = "queue_nodes", .pods = 9}}), Pair(9, 3));
  EXPECT_EQ(need({{.pods = 9, .named = {{"fpga", 1}}}}), Pair(0, 0));
  EXPECT_EQ(need({{.pods = 9}}, std::nullopt), Pair(9, 1)) << "of an unknown shape, one";
}

}  // namespace
}  // namespace muster::cli::allocate
