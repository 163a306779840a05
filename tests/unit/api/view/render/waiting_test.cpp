// What pods without a node wait for and require.
#include "api/view/render/waiting.hpp"

#include "tests/unit/api/view/view_fixture.hpp"

#include <gtest/gtest.h>

namespace muster::api::testing {
namespace {

std::string demand_text(const View& view, const Viewer& viewer = {}) {
  return dumped(demand_items(view, viewer));
}

TEST(WaitingTest, DemandIsOfPodsWithoutANode) {
  View view;
  Feeder feed(view);
  EXPECT_EQ(demand_text(view), "[]");
  feed.admit(1, make_job("a", uid_of(1), 4));
  EXPECT_EQ(demand_text(view), "[]") << "no pods yet";
  feed.create(1, 0, 4);
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  feed.bind(1, {0, 0});
  EXPECT_EQ(demand_text(view),
            R"([{"namespace":"default","job":"a","queue":"default","pods":3,"waitsFor":"slots",)"
            R"("requests":{}}])");
  core::cluster::ShowShares shares;
  shares.queue_waits[1] = {.queue = "default", .why = core::Slots::QueueWait::Why::limit};
  view.set_shares(shares);
  EXPECT_NE(demand_text(view).find("queue_limit"), std::string::npos);
  feed.records(1, {core::JobHeld{.at_ms = kStart, .by = "olga"}});
  EXPECT_NE(demand_text(view).find("hold"), std::string::npos);
  EXPECT_EQ(demand_text(view, {.uid = 1001}), "[]") << "another user's";
}

}  // namespace
}  // namespace muster::api::testing
