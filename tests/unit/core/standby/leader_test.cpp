// Leader: what is durable, who may be added or must go, and how long it may answer.
#include "core/standby/leader.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace muster::core::standby {
namespace {

using Names = std::vector<std::string>;

Configuration set_of(std::map<std::string, std::string> in_sync) {
  Configuration held;
  held.term = 5;
  held.leader = "a";
  held.in_sync = std::move(in_sync);
  held.members = {{"a", {}}, {"b", {}}, {"c", {}}};
  return held;
}

const Configuration kAlone = set_of({{"a", "a1"}});
const Configuration kPair = set_of({{"a", "a1"}, {"b", "b1"}});

// Leads alone from commit 10 on, with a lease since 0.
struct Led {
  Leader leader{{}, "a", kAlone, 0, 10};

  // `member` follows with everything, has answered a beat, and is added.
  void add(const std::string& member, Millis now = 0) {
    leader.follows(member, 10, {});
    leader.promises(member, now);
    leader.seated(member, member + "1");
    const auto wanted = leader.wishes(now);
    ASSERT_TRUE(wanted);
    leader.asks(*wanted);
    leader.answered(*wanted);
  }
  void commit(uint64_t number, Millis now) {
    leader.begins(number, now);
    leader.synced(number);
  }
};

TEST(StandbyLeader, AloneItsOwnDiskDecides) {
  Led led;
  EXPECT_EQ(led.leader.durable(), 10u);
  led.leader.begins(11, 0);
  EXPECT_EQ(led.leader.durable(), 10u);
  led.leader.synced(11);
  EXPECT_EQ(led.leader.durable(), 11u);
}

TEST(StandbyLeader, WaitsForEachReplicaThatMayTakeOver) {
  Led led;
  led.add("b");
  led.add("c");
  led.leader.follows("d", 3, {});  // catches up
  led.leader.begins(11, 0);
  led.leader.has("b", 11);
  led.leader.has("c", 11);
  EXPECT_EQ(led.leader.durable(), 10u) << "its own disk";
  led.leader.synced(11);
  EXPECT_EQ(led.leader.durable(), 11u);
  led.commit(12, 0);
  led.leader.has("b", 12);
  EXPECT_EQ(led.leader.durable(), 11u) << "c";
  led.leader.leaves("c", 0);
  EXPECT_EQ(led.leader.durable(), 11u) << "c, though it is gone";
}

TEST(StandbyLeader, CountsWhoeverAWriteInFlightAddsOrRemoves) {
  Led led;
  led.leader.follows("b", 10, {});
  led.leader.promises("b", 0);
  led.leader.seated("b", "b1");
  led.leader.asks(*led.leader.wishes(0));
  led.commit(11, 0);
  EXPECT_EQ(led.leader.durable(), 10u) << "b is perhaps in the set";
  led.leader.answered(kAlone);
  EXPECT_EQ(led.leader.durable(), 11u) << "it is not";
  led.leader.has("b", 11);
  led.leader.asks(*led.leader.wishes(0));
  led.leader.answered(kPair);

  led.commit(12, 0);
  led.leader.leaves("b", 100);
  const auto wanted = led.leader.wishes(2'100);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(*wanted, kAlone);
  led.leader.asks(*wanted);
  EXPECT_EQ(led.leader.durable(), 11u) << "b is perhaps still in the set";
  EXPECT_FALSE(led.leader.wishes(9'000)) << "one write at a time";
  led.leader.answered(kPair);
  EXPECT_EQ(led.leader.durable(), 11u) << "it still is";
  led.leader.asks(*led.leader.wishes(2'200));
  led.leader.answered(kAlone);
  EXPECT_EQ(led.leader.durable(), 12u);
}

TEST(StandbyLeader, CountsWhatAReplicaHasWhenItJoins) {
  Led led;
  led.add("b");
  led.commit(11, 0);
  led.leader.leaves("b", 0);
  led.leader.follows("b", 11, {"b1"});
  EXPECT_EQ(led.leader.durable(), 11u);
}

TEST(StandbyLeader, AddsOnlyWhoHasEverythingAndAnswers) {
  struct {
    const char* what;
    uint64_t commit;  // of the follower; 12 have begun, 11 are durable
    bool promised, leaves;
    Millis renewed, now;
    bool added;
  } const cases[] = {
      {"everything durable", 11, true, false, 0, 0, true},
      {"everything", 12, true, false, 0, 0, true},
      {"one too few", 10, true, false, 0, 0, false},
      {"no beat answered", 12, false, false, 0, 0, false},
      {"gone", 12, true, true, 0, 0, false},
      {"slow", 11, true, false, 1'000, 2'000, false},
      {"not yet slow", 11, true, false, 1'000, 1'999, true},
      {"no lease", 12, true, false, 0, 2'850, false},
      {"almost no lease", 12, true, false, 0, 2'849, true},
  };
  for (const auto& one : cases) {
    Led led;
    led.commit(11, 0);
    led.leader.begins(12, 0);
    led.leader.follows("b", one.commit, {"b1"});
    if (one.promised) led.leader.promises("b", 0);
    if (one.renewed) led.leader.renewed(one.renewed);
    if (one.leaves) led.leader.leaves("b", 0);
    EXPECT_EQ(led.leader.want_seats(one.now), one.added ? Names{"b"} : Names{}) << one.what;
    EXPECT_FALSE(led.leader.wishes(one.now)) << "without a new seat: " << one.what;
    led.leader.seated("b", "b2");
    const auto wanted = led.leader.wishes(one.now);
    EXPECT_EQ(wanted.has_value(), one.added) << one.what;
    EXPECT_TRUE(!wanted || wanted->in_sync.at("b") == "b2") << one.what;
  }
}

TEST(StandbyLeader, RemovesWhoKeepsItWaiting) {
  struct {
    const char* what;
    Millis begun;
    std::optional<Millis> has, leaves, back;
    Millis now;
    bool removed;
  } const cases[] = {
      {"prompt", 100, 200, {}, {}, 9'000, false},
      {"waits", 100, {}, {}, {}, 2'099, false},
      {"too slow", 100, {}, {}, {}, 2'100, true},
      {"gone", 100, 200, 300, {}, 2'299, false},
      {"gone for too long", 100, 200, 300, {}, 2'300, true},
      {"back", 100, 200, 300, 400, 9'000, false},
      {"back without the commit", 100, {}, 300, 400, 2'100, true},
  };
  for (const auto& one : cases) {
    Led led;
    led.add("b");
    led.commit(11, one.begun);
    if (one.has) led.leader.has("b", 11);
    if (one.leaves) led.leader.leaves("b", *one.leaves);
    if (one.back) led.leader.follows("b", one.has ? 11 : 10, {"b1"});
    const auto wanted = led.leader.wishes(one.now);
    EXPECT_EQ(wanted.has_value(), one.removed) << one.what;
    EXPECT_TRUE(!wanted || *wanted == kAlone) << one.what;
  }
}

// A data-dir that was replaced by an older copy, or has lost what was synced.
TEST(StandbyLeader, AnOlderCopyCountsForNothingAndIsRemoved) {
  struct {
    const char* what;
    uint64_t commit;
    std::set<std::string> seats;
    bool older;
  } const cases[] = {{"the same", 11, {"b1"}, false},
                     {"the same, among others", 12, {"b0", "b1"}, false},
                     {"another seat", 12, {"b0"}, true},
                     {"no seat", 12, {}, true},
                     {"fewer commits", 10, {"b1"}, true}};
  for (const auto& one : cases) {
    Led led;
    led.add("b");
    led.commit(11, 0);
    led.leader.has("b", 11);
    led.commit(12, 0);
    led.leader.leaves("b", 0);
    led.leader.follows("b", one.commit, one.seats);
    led.leader.promises("b", 0);
    led.leader.has("b", 12);
    EXPECT_EQ(led.leader.durable(), one.older ? 11u : 12u) << one.what;
    const auto wanted = led.leader.wishes(1);
    EXPECT_EQ(wanted.has_value(), one.older) << one.what;
    if (!wanted) continue;
    EXPECT_EQ(*wanted, kAlone) << one.what;
    // It is added again like any other, with another seat.
    led.leader.asks(*wanted);
    led.leader.answered(*wanted);
    EXPECT_EQ(led.leader.durable(), 12u) << one.what;
    EXPECT_EQ(led.leader.want_seats(1), Names{"b"}) << one.what;
    led.leader.seated("b", "b2");
    const auto again = led.leader.wishes(1);
    ASSERT_TRUE(again) << one.what;
    EXPECT_EQ(again->in_sync.at("b"), "b2") << one.what;
    led.leader.asks(*again);
    led.leader.answered(*again);
    EXPECT_FALSE(led.leader.wishes(1)) << one.what;
  }
}

TEST(StandbyLeader, RemovesWhoLeavesWhileItIsAdded) {
  Led led;
  led.leader.follows("b", 10, {});
  led.leader.promises("b", 0);
  led.leader.seated("b", "b1");
  led.leader.asks(*led.leader.wishes(0));
  led.leader.leaves("b", 0);
  led.leader.answered(kPair);
  const auto wanted = led.leader.wishes(2'000);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(*wanted, kAlone);
}

// Otherwise a third replica that lacks an acknowledged commit could be added.
TEST(StandbyLeader, WhatWasDurableStaysTheBarForOthers) {
  Led led;
  led.add("b");
  led.commit(11, 0);
  led.leader.has("b", 11);
  ASSERT_EQ(led.leader.durable(), 11u);
  led.leader.follows("b", 4, {"b0"});
  EXPECT_EQ(led.leader.durable(), 11u);
  led.leader.follows("c", 10, {});
  led.leader.promises("c", 0);
  EXPECT_EQ(led.leader.want_seats(0), Names{});
  led.leader.has("c", 11);
  EXPECT_EQ(led.leader.want_seats(0), Names{"c"});
}

TEST(StandbyLeader, WhoIsRemovedNeedsAnotherSeat) {
  Led led;
  led.add("b");
  led.commit(11, 0);
  led.leader.asks(*led.leader.wishes(2'000));
  led.leader.answered(kAlone);
  led.leader.has("b", 11);
  EXPECT_FALSE(led.leader.wishes(2'000));
  EXPECT_EQ(led.leader.want_seats(2'000), Names{"b"});
}

TEST(StandbyLeader, AnswersWhileNobodyElseCanLead) {
  struct {
    const char* what;
    bool replica, in_flight;
    Millis renewed, promised, now;
    bool may;
  } const cases[] = {
      {"alone, without a lease", false, false, 0, 0, 99'000, true},
      {"a lease", true, false, 5'000, 0, 7'849, true},
      {"no lease, as clocks differ", true, false, 5'000, 0, 7'850, false},
      {"a promise", true, false, 0, 5'000, 7'849, true},
      {"no promise, as clocks differ", true, false, 0, 5'000, 7'850, false},
      {"neither", true, false, 0, 0, 2'850, false},
      {"a replica that is perhaps in the set", false, true, 0, 0, 2'850, false},
      {"one that has promised", false, true, 0, 5'000, 7'849, true},
  };
  for (const auto& one : cases) {
    Led led;
    if (one.replica) led.add("b");
    if (one.in_flight) {
      led.leader.follows("b", 10, {});
      led.leader.promises("b", 0);
      led.leader.seated("b", "b1");
      led.leader.asks(*led.leader.wishes(0));
    }
    led.leader.renewed(one.renewed);
    led.leader.promises("b", one.promised);
    EXPECT_EQ(led.leader.may_answer(one.now), one.may) << one.what;
  }
}

TEST(StandbyLeader, ALeaseIsNotShortenedByALateAnswer) {
  Led led;
  led.add("b");
  led.leader.renewed(5'000);
  led.leader.renewed(4'000);
  EXPECT_TRUE(led.leader.may_answer(7'849));
}

TEST(StandbyLeader, NeedsThePromiseOfEachReplicaThatMayTakeOver) {
  Led led;
  led.add("b");
  led.add("c");
  led.leader.promises("b", 5'000);
  EXPECT_FALSE(led.leader.may_answer(6'000));
  led.leader.promises("c", 4'000);
  EXPECT_TRUE(led.leader.may_answer(6'000));
  led.leader.promises("c", 1'000);
  EXPECT_TRUE(led.leader.may_answer(6'849)) << "an answer that was overtaken";
  EXPECT_FALSE(led.leader.may_answer(6'850));
}

TEST(StandbyLeader, GivesUpIfOnlyItsOwnDiskHangs) {
  Led led;
  led.add("b");
  led.leader.begins(11, 100);
  EXPECT_FALSE(led.leader.hangs(9'000)) << "b does not have it either";
  led.leader.has("b", 11);
  EXPECT_FALSE(led.leader.hangs(2'099));
  EXPECT_TRUE(led.leader.hangs(2'100));
  led.leader.synced(11);
  EXPECT_FALSE(led.leader.hangs(9'000));
}

TEST(StandbyLeader, HandsOverToWhomHasEverything) {
  Led led;
  led.leader.follows("c", 10, {});
  EXPECT_FALSE(led.leader.can_hand_over("c")) << "not in sync";
  led.add("b");
  EXPECT_TRUE(led.leader.can_hand_over("b"));
  led.leader.begins(11, 0);
  led.leader.has("b", 11);
  EXPECT_FALSE(led.leader.can_hand_over("b")) << "not synced here";
  led.leader.synced(11);
  EXPECT_TRUE(led.leader.can_hand_over("b"));
  led.leader.leaves("b", 0);
  EXPECT_FALSE(led.leader.can_hand_over("b")) << "gone";
}

TEST(StandbyLeader, TellsWhereMembersAreAndForgetsThem) {
  Led led;
  Place place;
  place.peers = "b:1";
  led.leader.resides("b", place);
  auto wanted = led.leader.wishes(0);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->members.at("b"), place);
  led.leader.asks(*wanted);
  led.leader.answered(*wanted);
  EXPECT_FALSE(led.leader.wishes(0));
  led.leader.forgets("a");
  EXPECT_FALSE(led.leader.wishes(0)) << "itself, never";
  led.add("b");
  led.leader.forgets("b");
  wanted = led.leader.wishes(0);
  ASSERT_TRUE(wanted);
  EXPECT_FALSE(wanted->members.contains("b"));
  EXPECT_FALSE(wanted->in_sync.contains("b"));
  led.leader.asks(*wanted);
  led.leader.answered(*wanted);
  EXPECT_FALSE(led.leader.wishes(0));
  EXPECT_EQ(led.leader.want_seats(0), Names{}) << "it is not added again by itself";
  led.leader.resides("b", place);
  EXPECT_EQ(led.leader.want_seats(0), Names{"b"});
}

}  // namespace
}  // namespace muster::core::standby
