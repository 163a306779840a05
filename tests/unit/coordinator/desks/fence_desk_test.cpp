#include "coordinator/desks/fence_desk.hpp"

#include <gtest/gtest.h>
#include <kj/async.h>

namespace muster::coordinator {
namespace {

constexpr JobId kJob = 7;

core::HostListPtr ranks_are(const std::vector<PodKey>& pods, uint32_t count) {
  core::HostList list;
  list.object = std::make_shared<core::JobObject>();
  list.count = count;
  for (const PodKey pod : pods) list.hosts.push_back({pod, 1, true});
  return std::make_shared<const core::HostList>(std::move(list));
}

class FenceDeskTest : public testing::Test {
 public:
  ~FenceDeskTest() noexcept override {}

 protected:
  // Holds the group once the fence has opened for this rank.
  struct Call {
    explicit Call(kj::Promise<uint64_t> group)
        : done(group.then([this](uint64_t got) { opened = got; })
                   .eagerlyEvaluate([](kj::Exception&&) {})) {}
    std::optional<uint64_t> opened;
    kj::Promise<void> done;
  };
  std::unique_ptr<Call> come(PodKey pod, uint32_t number, FenceDesk::KeyValues puts = {}) {
    auto call = std::make_unique<Call>(desk.come({kJob, pod.index, pod.attempt}, number, puts));
    turn();
    return call;
  }
  void turn() {
    kj::evalLast([] {}).wait(scope);
  }

  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  FenceDesk desk;
};

TEST_F(FenceDeskTest, OpensOnceAllRanksHaveArrived) {
  desk.set(kJob, ranks_are({{0, 0}, {1, 0}, {2, 0}}, 3));
  auto zero = come({0, 0}, 1, {{"a", "0"}}), one = come({1, 0}, 1, {{"b", "1"}});
  EXPECT_FALSE(zero->opened || one->opened);
  auto two = come({2, 0}, 1);
  ASSERT_TRUE(zero->opened && one->opened && two->opened);
  EXPECT_EQ(*desk.gather(kJob, *zero->opened), (FenceDesk::KeyValues{{"a", "0"}, {"b", "1"}}));
  EXPECT_EQ(desk.gather(kJob, *zero->opened + 1), nullptr);
  EXPECT_EQ(desk.gather(kJob + 1, *zero->opened), nullptr);
}

TEST_F(FenceDeskTest, WaitsForRanksThatHaveNoNodeYet) {
  desk.set(kJob, ranks_are({{0, 0}}, 2));
  auto zero = come({0, 0}, 1);
  EXPECT_FALSE(zero->opened);
  desk.set(kJob, ranks_are({{0, 0}, {1, 0}}, 2));
  turn();
  EXPECT_FALSE(zero->opened);
  auto one = come({1, 0}, 1);
  EXPECT_TRUE(zero->opened && one->opened);
}

// After a restart: rank 1 was further and repeats its last fence; rank 0 is in the one before.
TEST_F(FenceDeskTest, ALaterFenceCountsForAnEarlierOne) {
  desk.set(kJob, ranks_are({{0, 0}, {1, 0}}, 2));
  auto one = come({1, 0}, 2, {{"b", "1"}});
  auto zero = come({0, 0}, 1, {{"a", "0"}});
  EXPECT_TRUE(zero->opened);
  EXPECT_FALSE(one->opened);
  EXPECT_EQ(desk.gather(kJob, *zero->opened)->size(), 2u);
  auto again = come({0, 0}, 1);
  EXPECT_TRUE(again->opened);
  auto next = come({0, 0}, 2);
  EXPECT_TRUE(next->opened && one->opened);
}

TEST_F(FenceDeskTest, NewAttemptStartsNewGroup) {
  desk.set(kJob, ranks_are({{0, 0}, {1, 0}}, 2));
  auto zero = come({0, 0}, 1), one = come({1, 0}, 1, {{"old", "1"}});
  const uint64_t before = *zero->opened;
  desk.set(kJob, ranks_are({{0, 1}, {1, 1}}, 2));
  EXPECT_EQ(desk.gather(kJob, before), nullptr);
  auto fresh = come({0, 1}, 1);
  EXPECT_FALSE(fresh->opened);
  auto other = come({1, 1}, 1);
  ASSERT_TRUE(fresh->opened);
  EXPECT_NE(*fresh->opened, before);
  EXPECT_TRUE(desk.gather(kJob, *fresh->opened)->empty());
}

// A rank has left the fence and exited before another could ask for what it had put.
TEST_F(FenceDeskTest, RankThatHasEndedIsNotWaitedFor) {
  desk.set(kJob, ranks_are({{0, 0}, {1, 0}}, 2));
  auto zero = come({0, 0}, 1), one = come({1, 0}, 1, {{"b", "1"}});
  auto left = std::make_shared<core::HostList>(*ranks_are({{0, 0}}, 2));
  left->over.insert(1);
  desk.set(kJob, left);
  ASSERT_NE(desk.gather(kJob, *zero->opened), nullptr);
  EXPECT_EQ(desk.gather(kJob, *zero->opened)->at("b"), "1");
  auto again = come({0, 0}, 1);
  EXPECT_TRUE(again->opened);
}

TEST_F(FenceDeskTest, FailsTheCallsOfAJobThatIsOver) {
  desk.set(kJob, ranks_are({{0, 0}, {1, 0}}, 2));
  bool failed = false;
  auto call = desk.come({kJob, 0, 0}, 1, {})
                  .then([](uint64_t) {}, [&failed](kj::Exception&&) { failed = true; });
  auto waiting = call.eagerlyEvaluate(nullptr);
  desk.set(kJob, ranks_are({}, 0));
  turn();
  EXPECT_TRUE(failed);
}

}  // namespace
}  // namespace muster::coordinator
