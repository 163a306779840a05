// Nodes and demand, as the API shows them, and the books of a budget.
#include "cli/verbs/allocate/cluster.hpp"

#include "client/terminal/json.hpp"

#include <gtest/gtest.h>

namespace muster::cli::allocate {
namespace {

TEST(AllocateClusterTest, NodesAndTheirPods) {
  const Json nodes = read_json(R"({"items":[
    {"metadata":{"name":"p-1","labels":{"disk":"ssd"}},"spec":{"unschedulable":true},
     "status":{"allocatable":{"cpu":"500m","memory":"2Gi","pods":"3","nvidia.com/gpu":"2"},
               "conditions":[{"type":"Ready","status":"True"}]}},
    {"metadata":{"name":"p-2"},"status":{"conditions":[{"type":"Ready","status":"False"}]}}]})");
  const Json uses = read_json(
      R"({"items":[{"name":"other","running":7},{"name":"p-1","running":1,"waiting":2}]})");
  const auto all = nodes_of(nodes, uses);
  ASSERT_EQ(all.size(), 2u);
  const PoolNode& one = all.at("p-1");
  EXPECT_TRUE(one.ready);
  EXPECT_TRUE(one.cordoned);
  EXPECT_EQ(one.pods, 3u);
  EXPECT_EQ(one.shape.slots, 3u);
  EXPECT_EQ(one.shape.cpu_millis, 500);
  EXPECT_EQ(one.shape.memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(one.shape.named, (std::map<std::string, int64_t>{{"nvidia.com/gpu", 2}}));
  EXPECT_EQ(one.shape.labels, (std::map<std::string, std::string>{{"disk", "ssd"}}));
  EXPECT_FALSE(all.at("p-2").ready);
}

TEST(AllocateClusterTest, DemandOfAQueue) {
  const Json list = read_json(R"({"items":[
    {"namespace":"default","job":"a","queue":"gpu","pods":9,"waitsFor":"slots",
     "requests":{"cpu":"2","memory":"1Gi","nvidia.com/gpu":"1"},"nodeSelector":{"disk":"ssd"},
     "timeLimitSeconds":60,"gang":true},
    {"namespace":"default","job":"b","queue":"default","pods":1,"waitsFor":"hold","requests":{},
     "nodeName":"n"}]})");
  EXPECT_EQ(demand_of(list, "").size(), 2u);
  EXPECT_TRUE(demand_of(list, "")[1].of_one_node);
  const auto gpu = demand_of(list, "gpu");
  ASSERT_EQ(gpu.size(), 1u);
  EXPECT_EQ(gpu[0].job, "default/a");
  EXPECT_EQ(gpu[0].pods, 9u);
  EXPECT_EQ(gpu[0].cpu_millis, 2000);
  EXPECT_EQ(gpu[0].memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(gpu[0].named, (std::map<std::string, int64_t>{{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(gpu[0].time_limit_s, 60);
  EXPECT_TRUE(gpu[0].gang);
}

}  // namespace
}  // namespace muster::cli::allocate
