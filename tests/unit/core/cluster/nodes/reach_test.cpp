// Which nodes of an MPI job try each other, and what is said of those that do not reach another.
#include "core/cluster/nodes/reach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Positions = std::vector<size_t>;

TEST(ReachTest, FewNodesTryAllOthers) {
  EXPECT_THAT(tried_by(0, 1), IsEmpty());
  EXPECT_EQ(tried_by(0, 2), (Positions{1}));
  EXPECT_EQ(tried_by(1, 2), (Positions{0}));
  EXPECT_EQ(tried_by(2, 4), (Positions{0, 1, 3}));
  EXPECT_EQ(tried_by(5, kReachAllMax).size(), kReachAllMax - 1);
}

TEST(ReachTest, OfManyNodesAllTryTheLeaderAndTheirNeighbours) {
  const size_t many = kReachAllMax + 1;
  EXPECT_EQ(tried_by(0, many).size(), many - 1);
  EXPECT_EQ(tried_by(1, many), (Positions{0, 2}));
  EXPECT_EQ(tried_by(5, many), (Positions{0, 4, 6}));
  EXPECT_EQ(tried_by(many - 1, many), (Positions{0, many - 2}));
}

TEST(ReachTest, JobsThatChooseTheirNetworkAreLeftAlone) {
  const auto uses = [](const std::string& mpi, const std::string& variable) {
    JobObject job;
    if (!mpi.empty()) job.meta.annotations["muster.dev/mpi"] = mpi;
    job.spec.pod.containers.resize(1);
    job.spec.pod.containers[0].env.push_back({variable, "1", "", {}, {}, {}});
    return uses_node_addresses(job);
  };
  EXPECT_TRUE(uses("openmpi", "OMPI_MCA_btl"));
  EXPECT_TRUE(uses("mpich,direct", "UCX_TLS"));
  EXPECT_FALSE(uses("", "A"));
  EXPECT_FALSE(uses("auto,iface=ib0", "A"));
  for (const char* name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude",
                           "OMPI_MCA_btl_tcp_port_min_v4", "UCX_NET_DEVICES", "MPICH_PORT_RANGE"})
    EXPECT_FALSE(uses("auto", name)) << name;
}

TEST(ReachTest, APairStaysAsItWasUntilItIsTriedAgain) {
  Reach reach;
  reach.heard(1, {{2, ""}, {3, "timed out"}});
  reach.heard(2, {{1, ""}, {3, "no route to host"}});
  EXPECT_EQ(reach.failed().size(), 2u);
  reach.heard(1, {{2, ""}});
  EXPECT_EQ(reach.failed().at({1, 3}), "timed out");
  reach.heard(1, {{3, "no route to host"}});
  EXPECT_EQ(reach.failed().at({1, 3}), "no route to host");
  reach.heard(1, {{3, ""}});
  ASSERT_EQ(reach.failed().size(), 1u);
  EXPECT_EQ(reach.failed().begin()->first, (Reach::Pair{2, 3}));
}

TEST(ReachTest, PairsWithOtherNodesAreForgotten) {
  Reach reach;
  reach.heard(1, {{2, "timed out"}, {3, "timed out"}});
  reach.heard(3, {{2, "timed out"}});
  reach.keep({1, 2, 4});
  ASSERT_EQ(reach.failed().size(), 1u);
  EXPECT_EQ(reach.failed().begin()->first, (Reach::Pair{1, 2}));
}

TEST(ReachTest, LinesNameBothNodesAndWhatToDo) {
  const Unreached::End a{"a", "10.0.0.1"}, b{"b", "10.0.0.2"}, c{"c", ""};
  EXPECT_THAT(reach_lines({}), IsEmpty());
  const std::string what_to_do =
      "MPI ranks connect to each other directly: open all ports between these nodes, or choose "
      "another network (--node-ip of their agents, or iface=NAME in muster.dev/mpi)";
  EXPECT_THAT(reach_lines({{a, b, "timed out"}, {b, a, "no route to host"}, {c, a, "refused"}}),
              ElementsAre("nodes a (10.0.0.1) and b (10.0.0.2) do not reach each other: timed out",
                          "node c does not reach a (10.0.0.1): refused", what_to_do));
  EXPECT_EQ(reach_text({{a, b, "timed out"}}),
            "node a (10.0.0.1) does not reach b (10.0.0.2): timed out; " + what_to_do);
}

TEST(ReachTest, LinesAreBounded) {
  std::vector<Unreached> pairs;
  for (size_t i = 0; i < kReachLinesMax + 2; ++i)
    pairs.push_back({{"a", ""}, {"b" + std::to_string(i), ""}, "timed out"});
  const auto lines = reach_lines(pairs);
  ASSERT_EQ(lines.size(), kReachLinesMax + 2);
  EXPECT_EQ(lines[kReachLinesMax], "and 2 more such pairs of nodes");
}

}  // namespace
}  // namespace muster::core
