// Events of MPI jobs whose nodes do not reach each other.
#include "api/routes/kept/reach_events.hpp"

#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

class ReachEventsTest : public ServerTest {
 protected:
  ReachEventsTest() {
    auto object = std::make_shared<core::JobObject>(*make_job("ring", uid_of(1)));
    object->meta.annotations["muster.dev/owner-uid"] = "1001";
    feed.admit(1, object);
  }
  ~ReachEventsTest() noexcept override = default;
  // What each event says, after another look.
  std::vector<std::string> look() {
    if (!events_) events_.emplace(io.provider->getTimer(), view, backend, [this] { return now_; });
    events_->look();
    std::vector<std::string> found;
    view.each_kept(core::KeptKind::event, "default", [&](const Shown& one) {
      const core::Kept& kept = *one.kept->kept;
      const Json event = Json::parse(kept.json);
      EXPECT_EQ(event["involvedObject"]["kind"], "Job");
      EXPECT_EQ(event["involvedObject"]["name"], "ring");
      EXPECT_EQ(event["involvedObject"]["uid"], uid_of(1));
      EXPECT_EQ(kept.owner,
                core::owner_uid(view.jobs().in_memory(1)->job.object().meta.annotations));
      found.push_back(event["type"].get<std::string>() + " " + event["reason"].get<std::string>() +
                      ": " + event["message"].get<std::string>());
    });
    now_ += 1'000;
    return found;
  }
  const std::vector<core::Unreached> pairs_ = {{{"a", "10.0.0.1"}, {"b", "10.0.0.2"}, "timed out"}};
  Millis now_ = kStart;
  std::optional<ReachEvents> events_;
};

TEST_F(ReachEventsTest, AreWrittenOnceAtEachChange) {
  EXPECT_TRUE(look().empty());
  view.set_unreached(1, pairs_);
  ASSERT_EQ(look().size(), 1u);
  EXPECT_EQ(look(),
            (std::vector<std::string>{"Warning NodesUnreachable: " + core::reach_text(pairs_)}));
  view.set_unreached(1, std::vector<core::Unreached>{});
  ASSERT_EQ(look().size(), 2u);
  EXPECT_EQ(look().back(), "Normal NodesReachable: the nodes of the job reach each other again");
}

TEST_F(ReachEventsTest, NothingIsSaidOfNodesThatHaveNotTried) {
  view.set_unreached(1, std::vector<core::Unreached>{});
  EXPECT_TRUE(look().empty());
  view.set_unreached(1, pairs_);
  EXPECT_EQ(look().size(), 1u);
  view.set_unreached(1, std::nullopt);
  EXPECT_EQ(look().size(), 1u);
  view.set_unreached(1, pairs_);
  EXPECT_EQ(look().size(), 2u) << "found anew";
  view.set_unreached(1, std::nullopt);
  view.set_unreached(2, pairs_);  // of a job that is gone
  EXPECT_EQ(look().size(), 2u);
}

TEST_F(ReachEventsTest, AreBounded) {
  for (size_t i = 0; i < 2 * ReachEvents::kNewInAnHour; ++i) {
    view.set_unreached(1, i % 2 == 0 ? pairs_ : std::vector<core::Unreached>{});
    look();
  }
  EXPECT_EQ(look().size(), ReachEvents::kNewInAnHour);
}

}  // namespace
}  // namespace muster::api
