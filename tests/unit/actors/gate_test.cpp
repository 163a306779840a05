// Nothing leaves before it is on disk: the real actors on a journal that does not answer get
// requests of every kind. No reply, acknowledgement or order may come out before the journal has
// synced.
#include "actors/gate.hpp"

#include "tests/unit/actors/actors_fixture.hpp"
#include "tests/unit/actors/test_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

namespace muster::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

using GateTest = ActorsTest;

// Only an actor's gate can make a Durable, and only an actor can have a gate.
static_assert(!std::is_default_constructible_v<Durable>);
static_assert(!std::is_constructible_v<Durable, AgentLink*, uint64_t>);
static_assert(!std::is_constructible_v<Gate, journal_actor, SealedLink, Gate::Notifier>);
static_assert(!std::is_copy_constructible_v<Gate> && !std::is_move_constructible_v<Gate>);
static_assert(!std::is_invocable_v<Reply<int>, int>);

TEST_F(GateTest, NoOrderOrReplyLeavesBeforeItsRowsAreDurable) {
  register_node("a", "dir-a", 7);
  run();
  caf::anon_send(cluster_, LinkUp{1, 7});
  create("first");
  caf::anon_send(kept_, WriteKept{nullptr, lease("1"), noted<Status>("lease")});
  run();
  ASSERT_THAT(orders_.seen, ElementsAre("launch j1/0#0"));
  ASSERT_EQ(replies_.size(), 3u);
  replies_.clear();
  orders_.seen.clear();

  disk_.silent = true;
  // Each actor has rows in flight, then gets requests that it could answer at once.
  create("second");
  core::PodsReported ended;
  ended.node = 1;
  core::PodsReported::Ended end;
  end.pod = {0, 0};
  end.start = {4711, {}};
  ended.ends.push_back(end);
  caf::anon_send(registry_, Report{1, {{1, ended}}, noted<std::vector<PodId>>("report")});
  cordon("a", "cordon");
  renew("2", "renew");
  run();
  create("second");
  create("first");
  remove("first", "another");
  remove("nobody", "");
  caf::anon_send(registry_, AskJob{"default", "first", "another", 0, core::PodsDeletion{},
                                   noted<Status>("evict")});
  caf::anon_send(registry_, AskJob{"", "", "", 99, core::PodsDeletion{}, noted<Status>("evict")});
  cordon("a", "cordon again");
  cordon("b", "cordon nobody");
  register_node("a", "a stranger", 8);
  register_node("b", "dir-b", 9);
  renew("3", "renew late");
  run();
  caf::anon_send(cluster_, DeleteNode{"a", noted<Status>("forget")});
  remove("first", "");  // the second create gets its name
  for (int i = 0; i < 20; ++i) {
    now_ms_ += 500;
    scheduler_.advance_time(std::chrono::milliseconds(500));
    run();
  }
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(orders_.seen, IsEmpty());
  EXPECT_THAT(disk_.held, Not(IsEmpty()));

  disk_.silent = false;
  for (int i = 0; i < 10; ++i) {
    disk_.sync();
    run();
  }
  EXPECT_THAT(
      replies_,
      ::testing::UnorderedElementsAre(
          "create second: done", "report", "cordon: done", "renew: done", "create second: refused",
          "create first: done", "delete first another: refused", "delete nobody : refused",
          "evict: refused", "evict: refused", "cordon again: refused", "cordon nobody: refused",
          "register a of a stranger: refused", "register b of dir-b: welcome",
          "renew late: refused", "forget: done", "delete first : done"));
  EXPECT_THAT(orders_.seen, ::testing::Contains("drop"));
}

TEST_F(GateTest, EffectsWithoutRowsWaitForRowsInFlightInOrder) {
  disk_.silent = true;
  std::vector<int> out;
  std::vector<std::pair<uint64_t, uint64_t>> brought;
  TestGate owner(journal_, SealedLink(orders_), [&] {
    return [&](uint64_t number, uint64_t commit) { brought.emplace_back(number, commit); };
  });
  Gate& gate = owner.gate;
  gate.after([&](const Durable& durable) {
    EXPECT_EQ(durable.commit(), 0u);
    out.push_back(0);
  });
  EXPECT_THAT(out, ElementsAre(0)) << "nothing is under way";
  gate.after(Append{}, [&](const Durable& durable) {
    EXPECT_GT(durable.commit(), 0u);
    out.push_back(1);
  });
  gate.after([&](const Durable&) { out.push_back(2); });
  gate.after(Append{}, [&](const Durable&) { out.push_back(3); });
  gate.after([&](const Durable&) { out.push_back(4); });
  EXPECT_TRUE(gate.closed());
  run();
  disk_.sync();
  ASSERT_EQ(brought.size(), 2u);
  EXPECT_THAT(out, ElementsAre(0)) << "only its actor opens a gate";
  gate.open(brought[0].first, brought[0].second);
  EXPECT_THAT(out, ElementsAre(0, 1, 2));
  gate.open(brought[1].first, brought[1].second);
  EXPECT_THAT(out, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(gate.closed());
  gate.close();
}

}  // namespace
}  // namespace muster::actors
