// IndexActor, on virtual time: it repeats a kill until the pod has ended.
#include "actors/index_actor.hpp"

#include "actors/journal_actor.hpp"
#include "storage/journal/memory_journal.hpp"
#include "tests/unit/actors/test_gate.hpp"
#include "tests/unit/actors/virtual_time.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct SentOrders final : AgentLink {
  void launch(NodeId, uint64_t, std::vector<PodId>, core::JobObjectPtr) override {}
  void kill(NodeId, PodId pod, Millis grace_ms) override {
    seen.push_back("kill " + to_string(pod) + " grace " + std::to_string(grace_ms));
  }
  void ask(NodeId, JobId, uint64_t) override {}
  void drop(NodeId) override {}
  std::vector<std::string> seen;
};

class IndexActorTest : public ::testing::Test {
 protected:
  IndexActorTest()
      : journal_(spawn_journal(system_, disk_,
                               {.show = [](const core::Committed&) {},
                                .failed = [](const std::string& why) { FAIL() << why; }})) {}
  ~IndexActorTest() override {
    caf::anon_send_exit(index_, caf::exit_reason::user_shutdown);
    caf::anon_send(journal_, stop_atom_v);
    run();
  }
  void run() { scheduler_.run(); }

  // A Durable, which only a gate can make.
  Durable durable() {
    std::optional<Durable> made;
    gate_.emplace(journal_, SealedLink(orders_), [this] {
      return [this](uint64_t number, uint64_t commit) { gate_->gate.open(number, commit); };
    });
    gate_->gate.after({}, [&made](const Durable& durable) { made = durable; });
    run();
    EXPECT_TRUE(made.has_value());
    return *made;
  }
  void start_index() {
    index_ = system_.spawn<IndexActor>(JobId{7}, [this] { return now_ms_; });
  }

  VirtualTime config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_ =
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  storage::MemoryJournal disk_;
  SentOrders orders_;
  journal_actor journal_;
  index_actor index_;
  std::optional<TestGate> gate_;
  Millis now_ms_ = 1'000;
};

TEST_F(IndexActorTest, RepeatsKillWithRemainingGraceUntilPodEnds) {
  start_index();
  caf::anon_send(index_, FollowKill{{3, 0}, 2, 31'000, durable()});
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("kill j7/3#0 grace 30000"));
  now_ms_ = 40'000;
  scheduler_.advance_time(std::chrono::seconds(10));
  run();
  EXPECT_THAT(orders_.seen, ElementsAre("kill j7/3#0 grace 30000", "kill j7/3#0 grace 0"))
      << "the remaining grace, never negative";
  caf::anon_send(index_, FollowEnd{{3, 0}});
  run();
  scheduler_.advance_time(std::chrono::seconds(10));
  run();
  EXPECT_EQ(orders_.seen.size(), 2u) << "nothing is asked for a pod that is over";
}

TEST_F(IndexActorTest, KillsTwoAttemptsAtTheSameTime) {
  start_index();
  caf::anon_send(index_, FollowKill{{3, 0}, 2, 1'000, durable()});
  caf::anon_send(index_, FollowKill{{3, 1}, 4, 1'000, durable()});
  run();
  auto asked_again = [this] {
    orders_.seen.clear();
    scheduler_.advance_time(std::chrono::seconds(10));
    run();
    return orders_.seen;
  };
  EXPECT_THAT(asked_again(), ElementsAre("kill j7/3#0 grace 0", "kill j7/3#1 grace 0"));
  caf::anon_send(index_, FollowEnd{{3, 0}});
  run();
  EXPECT_THAT(asked_again(), ElementsAre("kill j7/3#1 grace 0"));
}

}  // namespace
}  // namespace muster::actors
