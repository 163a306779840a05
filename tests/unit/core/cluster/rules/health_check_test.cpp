// When a node's health check counts as changed; what follows is in
// tests/golden/nodes/health_check.txt.
#include "core/cluster/rules/decide.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace muster::core::cluster {
namespace {

TEST(NodeHealthCheck, OtherWordsOfAFailureAreNoChangeOfState) {
  NodeInfo row;
  row.id = 1;
  row.name = "a";
  row.slots = 2;
  Cluster cluster(Settings{"ours", "key", EpochLine({{1, 1, 1}})}, {row});
  Now now{1'000, 1'000, 1, 8};
  const auto beat = [&](const std::string& failure) {
    now.wall_ms += 1'000;
    decide(cluster, Heartbeat{1, 7, {}, std::nullopt, {true, failure}}, now);
    return cluster.node(1)->info;
  };
  decide(cluster, LinkUp{1, 7}, now);
  const Millis failed_at = beat("disk at 90 %").changed_ms;
  EXPECT_EQ(failed_at, now.wall_ms);
  const NodeInfo reworded = beat("disk at 91 %");
  EXPECT_EQ(reworded.check.failure, "disk at 91 %");
  EXPECT_EQ(reworded.changed_ms, failed_at);
  EXPECT_EQ(beat("").changed_ms, now.wall_ms);
  EXPECT_EQ(beat("disk at 90 %").changed_ms, now.wall_ms);
}

}  // namespace
}  // namespace muster::core::cluster
