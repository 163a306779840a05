// Events of nodes that stop getting pods, and get them again.
#include "api/routes/kept/node_events.hpp"

#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

class NodeEventsTest : public ServerTest {
 protected:
  // What each event says, after another look.
  std::vector<std::string> look() {
    if (!events_) events_.emplace(io.provider->getTimer(), view, backend, [this] { return now_; });
    events_->look();
    std::vector<std::string> found;
    view.each_kept(core::KeptKind::event, "default", [&](const Shown& one) {
      const Json event = Json::parse(one.kept->kept->json);
      EXPECT_EQ(event["involvedObject"]["kind"], "Node");
      EXPECT_EQ(event["involvedObject"]["name"], "n1");
      found.push_back(event["type"].get<std::string>() + " " + event["reason"].get<std::string>() +
                      ": " + event["message"].get<std::string>());
    });
    return found;
  }
  void show(const std::string& starts_failing, const std::string& check) {
    core::NodeInfo node = make_node(1, "n1", core::NodeInfo::Health::ready);
    node.starts_failing = starts_failing;
    node.check = {true, check};
    view.health(core::health_of(node));
  }

  Millis now_ = kStart;
  std::optional<NodeEvents> events_;
};

TEST_F(NodeEventsTest, P15AreWrittenOnceAtEachChange) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  EXPECT_TRUE(look().empty());
  show("no home", "");
  EXPECT_EQ(look(), (std::vector<std::string>{"Warning StartsFailing: no home"}));
  EXPECT_EQ(look().size(), 1u);
  now_ += 1'000;
  show("no home", "no /scratch");
  ASSERT_EQ(look().size(), 2u);
  EXPECT_EQ(look().back(), "Warning HealthCheckFailed: no /scratch");
  now_ += 1'000;
  show("", "");
  const auto all = look();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2], "Normal StartsSucceeding: the node gets pods again");
  EXPECT_EQ(all[3], "Normal HealthCheckPassed: the health check passes");
  EXPECT_EQ(look().size(), 4u);
}

TEST_F(NodeEventsTest, P15AreBounded) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  EXPECT_TRUE(look().empty());
  for (size_t i = 0; i < 2 * NodeEvents::kNewInAnHour; ++i) {
    show(i % 2 == 0 ? "no home" : "", "");
    events_->look();
  }
  EXPECT_EQ(look().size(), NodeEvents::kNewInAnHour);
}

}  // namespace
}  // namespace muster::api
