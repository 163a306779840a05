// Follower: whom it obeys, when it may take the lead and with what.
#include "core/standby/follower.hpp"

#include "core/standby/prefix.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace muster::core::standby {
namespace {

constexpr Millis kStarted = 10'000;

Configuration led_by(const std::string& leader, uint64_t term) {
  Configuration seen;
  seen.cluster = "c";
  seen.term = term;
  seen.leader = leader;
  seen.in_sync = {{"a", "a1"}, {"b", "b1"}};
  seen.members["a"].peers = "a:1";
  return seen;
}

TEST(StandbyFollower, TakesTheLeadOnlyIfNothingSpeaksAgainstIt) {
  using Why = Follower::Why;
  struct {
    const char* what;
    std::set<std::string> seats;
    uint64_t epoch;
    Configuration seen;
    bool key_held;
    std::optional<Millis> promised;
    Millis now;
    Why why;
  } const cases[] = {
      {"in sync, nobody leads", {"b1"}, 4, led_by("a", 4), false, {}, 13'000, Why::may},
      {"one of its seats", {"b0", "b1"}, 4, led_by("a", 4), false, {}, 13'000, Why::may},
      {"somebody leads", {"b1"}, 4, led_by("a", 4), true, {}, 13'000, Why::led},
      {"an older copy", {"b0"}, 4, led_by("a", 4), false, {}, 13'000, Why::outdated},
      {"no seat", {}, 4, led_by("a", 4), false, {}, 13'000, Why::outdated},
      // It may have given a promise before it was restarted.
      {"just started", {"b1"}, 4, led_by("a", 4), false, {}, 12'999, Why::promised},
      {"a promise", {"b1"}, 4, led_by("a", 4), false, 12'000, 14'999, Why::promised},
      {"an old promise", {"b1"}, 4, led_by("a", 4), false, 12'000, 15'000, Why::may},
      {"it led until it was restarted", {"b1"}, 4, led_by("b", 4), false, {}, 10'000, Why::may},
      // The store names it without its knowledge.
      {"it is named", {"b1"}, 4, led_by("b", 5), false, {}, 10'000, Why::promised},
      {"it is named, and promised",
       {"b1"},
       4,
       led_by("b", 5),
       false,
       12'000,
       14'999,
       Why::promised},
  };
  for (const auto& one : cases) {
    Follower follower({}, "b", one.seats, one.epoch, kStarted);
    if (one.promised) follower.promises(*one.promised);
    EXPECT_EQ(follower.may_take(one.seen, one.key_held, one.now), one.why) << one.what;
  }
  Configuration without = led_by("a", 4);
  without.in_sync.erase("b");
  Follower follower({}, "b", {"b1"}, 4, kStarted);
  EXPECT_EQ(follower.may_take(without, false, 99'000), Why::not_in_sync);
  follower.sits("b2");
  without.in_sync["b"] = "b2";
  EXPECT_EQ(follower.may_take(without, false, 99'000), Why::may);
}

TEST(StandbyFollower, PromisesAreNeverShortened) {
  Follower follower({}, "b", {"b1"}, 4, kStarted);
  follower.promises(20'000);
  follower.promises(15'000);
  EXPECT_EQ(follower.may_take(led_by("a", 4), false, 22'999), Follower::Why::promised);
}

TEST(StandbyFollower, OnlyTheLeaderOfTheHighestTermReleases) {
  Follower follower({}, "b", {"b1"}, 4, kStarted);
  follower.sees(5);
  follower.promises(20'000);
  follower.released(4);
  EXPECT_EQ(follower.may_take(led_by("a", 5), false, 20'000), Follower::Why::promised);
  follower.released(5);
  EXPECT_EQ(follower.may_take(led_by("a", 5), false, 20'000), Follower::Why::may);
}

TEST(StandbyFollower, ObeysNoOlderLeader) {
  Follower follower({}, "b", {"b1"}, 4, kStarted);
  EXPECT_FALSE(follower.obeys(3)) << "its journal has a later epoch";
  EXPECT_TRUE(follower.obeys(4));
  follower.sees(7);
  EXPECT_FALSE(follower.obeys(6));
  EXPECT_TRUE(follower.obeys(7));
  follower.sees(5);
  EXPECT_EQ(follower.term(), 7u);
}

TEST(StandbyFollower, ObeysNobodyWhileItTakesTheLead) {
  Follower follower({}, "b", {"b1"}, 4, kStarted);
  follower.takes(led_by("a", 4), 4, "b2", {});
  EXPECT_TRUE(follower.taking());
  EXPECT_FALSE(follower.obeys(4));
  EXPECT_FALSE(follower.obeys(9));
  follower.settled();
  EXPECT_TRUE(follower.obeys(4));
}

TEST(StandbyFollower, LeadsAloneAndAboveEveryTerm) {
  struct {
    uint64_t seen, heard, epoch, term;
  } const cases[] = {{4, 4, 4, 5}, {6, 4, 4, 7}, {4, 8, 4, 9}, {4, 4, 11, 12}};
  for (const auto& one : cases) {
    Follower follower({}, "b", {"b1"}, 1, kStarted);
    follower.sees(one.heard);
    Place place;
    place.peers = "b:1";
    const Configuration next = follower.takes(led_by("a", one.seen), one.epoch, "b2", place);
    EXPECT_EQ(next.term, one.term);
    EXPECT_EQ(next.leader, "b");
    EXPECT_EQ(next.cluster, "c");
    EXPECT_EQ(next.in_sync, (std::map<std::string, std::string>{{"b", "b2"}}));
    EXPECT_EQ(next.members.at("a").peers, "a:1");
    EXPECT_EQ(next.members.at("b").peers, "b:1");
  }
}

TEST(StandbyFollower, AppliesEachCommitOnceAndInOrder) {
  struct {
    uint64_t commit, last;
    Follower::Next next;
  } const cases[] = {{1, 0, Follower::Next::apply},  {8, 7, Follower::Next::apply},
                     {7, 7, Follower::Next::has_it}, {1, 7, Follower::Next::has_it},
                     {9, 7, Follower::Next::gap},    {2, 0, Follower::Next::gap}};
  for (const auto& one : cases)
    EXPECT_EQ(Follower::judge(one.commit, one.last), one.next) << one.commit << " at " << one.last;
}

TEST(StandbyPrefix, WholeEpochsThatACopyLacksAreGivenUp) {
  const auto line = [](std::vector<EpochEntry> entries) { return EpochLine(std::move(entries)); };
  const EpochLine ours = line({{1, 11, 1}, {2, 12, 5}, {4, 14, 9}});
  const struct {
    const char* what;
    EpochLine line;
    uint64_t last;
    EpochLine by;
    std::optional<GivenUp> lost;
  } cases[] = {
      {"the same", ours, 12, ours, {}},
      {"it goes on", ours, 12, line({{1, 11, 1}, {2, 12, 5}, {4, 14, 9}, {5, 15, 13}}), {}},
      {"commits of a common epoch",
       ours,
       12,
       line({{1, 11, 1}, {2, 12, 5}, {4, 14, 9}, {5, 15, 11}}),
       {}},
      {"a later epoch", ours, 12, line({{1, 11, 1}, {2, 12, 5}}), GivenUp{4, 9, 12}},
      {"another epoch of that number", ours, 12, line({{1, 11, 1}, {2, 12, 5}, {4, 99, 9}}),
       GivenUp{4, 9, 12}},
      {"two epochs", ours, 12, line({{1, 11, 1}, {5, 15, 5}}), GivenUp{2, 5, 12}},
      {"an epoch without a commit", ours, 8, line({{1, 11, 1}, {2, 12, 5}}), {}},
      {"it has dropped its oldest", ours, 12, line({{4, 14, 9}, {5, 15, 13}}), {}},
      {"another cluster's", ours, 12, {}, GivenUp{1, 1, 12}},
      {"nothing here", {}, 0, ours, {}},
  };
  for (const auto& one : cases)
    EXPECT_EQ(given_up(one.line, one.last, one.by), one.lost) << one.what;
}

}  // namespace
}  // namespace muster::core::standby
