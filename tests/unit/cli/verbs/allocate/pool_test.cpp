// Which allocations are asked for and given back, as transcripts: what was looked at, and what was
// decided.
#include "cli/verbs/allocate/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace muster::cli::allocate {
namespace {

constexpr Millis kMinute = 60'000, kHour = 60 * kMinute;

// A batch system and a cluster that are what the test says, and a Pool that looks at them.
struct World {
  explicit World(PoolSettings with, Books books = {})
      : settings(std::move(with)), pool(settings, std::move(books)) {}

  // Pods that wait; 0: none.
  void waiting(uint64_t pods, Demand like = {}) {
    now.demand.clear();
    like.job = "default/j";
    like.pods = pods;
    if (like.waits_for.empty()) like.waits_for = "slots";
    if (pods > 0) now.demand.push_back(std::move(like));
  }
  Allocation& allocation(const std::string& id) {
    return *std::find_if(now.allocations.begin(), now.allocations.end(),
                         [&](const Allocation& one) { return one.id == id; });
  }
  void runs(const std::string& id) {
    allocation(id).phase = Phase::running;
    allocation(id).started_ms = now.now;
  }
  // Its node registers.
  void node(const std::string& id, uint64_t pods) {
    now.nodes["p-" + id] = {.ready = true, .pods = pods, .shape = shape};
  }
  void ends(const std::string& id, const std::string& state = "COMPLETED") {
    allocation(id).phase = Phase::ended;
    allocation(id).state = state;
    allocation(id).ended_ms = now.now;
    if (now.nodes.contains("p-" + id)) now.nodes["p-" + id].ready = false;
  }
  void passes(Millis ms) { now.now += ms; }

  // Looks, and does what is decided: "submit 1, cordon p-1"; a batch system that refuses adds
  // nothing.
  std::string look() {
    Plan plan = pool.look(now);
    std::string text;
    for (const News& one : plan.news) news = one.text;
    for (const Action& action : plan.actions) {
      static const char* const kWords[] = {"submit", "cancel",   "end",
                                           "cordon", "uncordon", "forget"};
      std::string what = action.what;
      if (action.kind == Action::Kind::submit) {
        if (refuses) {
          news = pool.submission_failed("no such partition", now.now).text;
          text += "refused";
          break;
        }
        what = std::to_string(++last_id);
        now.allocations.push_back({.id = what});
        pool.submitted(what, now.now);
      }
      if (action.kind == Action::Kind::cordon) now.nodes[what].cordoned = true;
      if (action.kind == Action::Kind::uncordon) now.nodes[what].cordoned = false;
      text += (text.empty() ? "" : ", ") + std::string(kWords[static_cast<int>(action.kind)]) +
              " " + what;
    }
    standing = plan.standing;
    return text;
  }
  // Another process takes over, with what was kept.
  void restart() { pool = Pool(settings, pool.books()); }

  PoolSettings settings;
  Pool pool;
  Look now{.now = 1'800'000'000'000};
  Shape shape{.slots = 4, .cpu_millis = 4000, .memory_bytes = 8 << 20};
  int last_id = 0;
  bool refuses = false;
  std::string news, standing;
};

PoolSettings settings(uint32_t max_nodes = 10, uint32_t backlog = 4) {
  return {.name = "p",
          .max_nodes = max_nodes,
          .backlog = backlog,
          .time_ms = kHour,
          .idle_ms = 5 * kMinute};
}

TEST(PoolTest, PodsThatWaitBecomeNodesThatGoBackWhenIdle) {
  World w(settings());
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.standing, "no pods wait for nodes");
  w.waiting(12);
  EXPECT_EQ(w.look(), "") << "they may get free slots";
  EXPECT_EQ(w.look(), "submit 1") << "until a node has shown how many pods it takes";
  EXPECT_EQ(w.look(), "");
  w.runs("1");
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.standing, "12 pods wait; 1 node for them is there or on the way");
  w.node("1", 4);
  w.waiting(8);
  EXPECT_EQ(w.look(), "submit 2, submit 3") << "4 slots each";
  w.runs("2");
  w.node("2", 4);
  w.waiting(4);
  EXPECT_EQ(w.look(), "");
  w.waiting(0);
  w.node("1", 0);
  EXPECT_EQ(w.look(), "");
  w.passes(5 * kMinute);
  EXPECT_EQ(w.look(), "end 3, cordon p-1") << "3 is queued, and nothing waits";
  w.ends("3", "CANCELLED");
  EXPECT_EQ(w.look(), "cancel 1");
  EXPECT_EQ(w.look(), "");
  w.ends("1");
  EXPECT_EQ(w.look(), "forget p-1");
  EXPECT_EQ(w.news, "allocation 1 is over: it was given back");
  EXPECT_EQ(w.look(), "");
}

TEST(PoolTest, PeopleSeeWhereEachAllocationStands) {
  World w(settings());
  w.waiting(4);
  w.look();
  w.look();
  const auto standing = [&w]() -> std::string {
    std::string text;
    for (const PoolAllocation& one : w.pool.allocations())
      text += one.id + " " + one.state + " " + one.node + " " +
              std::to_string((w.now.now - one.since_ms) / kMinute) + "m;";
    return text;
  };
  w.passes(kMinute);
  EXPECT_EQ(standing(), "1 Queued  1m;");
  w.runs("1");
  w.look();
  EXPECT_EQ(standing(), "1 Starting  0m;");
  w.node("1", 4);
  w.waiting(0);
  w.passes(kMinute);
  w.look();
  EXPECT_EQ(standing(), "1 Running p-1 1m;");
  w.now.nodes["p-1"].ready = false;
  w.look();
  EXPECT_EQ(standing(), "1 Silent p-1 0m;");
  w.node("1", 0);
  w.look();
  EXPECT_EQ(standing(), "1 Idle p-1 0m;");
  w.passes(5 * kMinute);
  w.look();
  w.look();
  EXPECT_EQ(standing(), "1 Leaving p-1 0m;");
  w.ends("1");
  w.look();
  EXPECT_EQ(standing(), "");
}

TEST(PoolTest, ANodeThatGotAPodBeforeItWasCordonedStays) {
  World w(settings());
  w.waiting(1);
  w.look();
  w.look();
  w.runs("1");
  w.waiting(0);
  w.node("1", 0);
  EXPECT_EQ(w.look(), "");
  w.passes(5 * kMinute);
  EXPECT_EQ(w.look(), "cordon p-1");
  w.now.nodes["p-1"].pods = 1;
  EXPECT_EQ(w.look(), "uncordon p-1");
  w.passes(5 * kMinute);
  EXPECT_EQ(w.look(), "");
  w.now.nodes["p-1"].pods = 0;
  EXPECT_EQ(w.look(), "") << "idle anew";
}

TEST(PoolTest, NeverMoreThanTheMaximumAndTheBacklog) {
  World w(settings(5, 2));
  w.shape.slots = 1;
  w.waiting(100);
  w.look();
  EXPECT_EQ(w.look(), "submit 1");
  w.runs("1");
  w.node("1", 1);
  EXPECT_EQ(w.look(), "submit 2, submit 3");
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.standing,
            "100 pods wait; 2 allocations in the queue, at most 2 at a time (--backlog)");
  for (const char* id : {"2", "3"}) {
    w.runs(id);
    w.node(id, 1);
  }
  EXPECT_EQ(w.look(), "submit 4, submit 5");
  w.runs("4");
  w.runs("5");
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.standing, "100 pods wait; 5 of at most 5 allocations are there (--max-nodes)");
  w.restart();
  w.look();
  EXPECT_EQ(w.look(), "") << "found again";
}

TEST(PoolTest, TheMinimumIsThereWithoutPods) {
  PoolSettings with = settings();
  with.min_nodes = 2;
  World w(with);
  EXPECT_EQ(w.look(), "submit 1, submit 2");
  w.runs("1");
  w.node("1", 0);
  w.look();
  w.passes(10 * kMinute);
  EXPECT_EQ(w.look(), "");
}

TEST(PoolTest, FailuresAreWaitedOutLongerEachTime) {
  World w(settings());
  w.waiting(1);
  w.refuses = true;
  w.look();
  EXPECT_EQ(w.look(), "refused");
  EXPECT_EQ(w.news,
            "the batch system accepts no allocation: no such partition (1 failure in a row; the "
            "next request is in 10s)");
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.standing, "1 pod waits; the next request is in 10s, after 1 failure");
  for (const Millis wait : {10, 20, 40, 80, 160, 320, 600, 600}) {
    w.passes(wait * 1000 - 1);
    EXPECT_EQ(w.look(), "") << wait;
    w.passes(1);
    EXPECT_EQ(w.look(), "refused") << wait;
  }
  w.passes(10 * kMinute);
  w.refuses = false;
  EXPECT_EQ(w.look(), "submit 1");
  w.runs("1");
  w.look();
  w.ends("1", "FAILED NonZeroExitCode");
  EXPECT_EQ(w.look(), "");
  EXPECT_NE(w.news.find("over before it had a node: FAILED NonZeroExitCode (10 failures"),
            std::string::npos)
      << w.news;
  w.passes(10 * kMinute);
  EXPECT_EQ(w.look(), "submit 2");
  w.runs("2");
  w.node("2", 1);
  w.waiting(0);
  EXPECT_EQ(w.look(), "");
  w.ends("2", "NODE_FAIL");
  w.waiting(9);
  EXPECT_EQ(w.look(), "forget p-2");
  EXPECT_EQ(w.look(), "submit 3, submit 4, submit 5") << "what was used is no failure";
}

TEST(PoolTest, AllocationsThatFailTogetherAreOneFailure) {
  World w(settings());
  w.shape.slots = 1;
  w.waiting(5);
  w.look();
  w.look();
  w.runs("1");
  w.node("1", 1);
  w.waiting(4);
  EXPECT_EQ(w.look(), "submit 2, submit 3, submit 4, submit 5");
  for (const char* id : {"2", "3"}) w.ends(id, "FAILED");
  EXPECT_EQ(w.look(), "");
  w.passes(kMinute);
  for (const char* id : {"4", "5"}) w.ends(id, "FAILED");
  EXPECT_EQ(w.look(), "submit 6, submit 7, submit 8, submit 9");
  EXPECT_EQ(w.pool.count(Phase::queued), 4u);
}

TEST(PoolTest, AnAllocationWithoutANodeIsEnded) {
  World w(settings());
  w.waiting(1);
  w.look();
  w.look();
  w.runs("1");
  EXPECT_EQ(w.look(), "");
  w.passes(10 * kMinute);
  EXPECT_EQ(w.look(), "end 1");
  EXPECT_NE(w.news.find("allocation 1 runs and has had no node for 10m"), std::string::npos);
  EXPECT_EQ(w.look(), "");
  w.ends("1", "CANCELLED");
  EXPECT_EQ(w.look(), "") << "it waits";
  w.passes(kMinute);
  EXPECT_EQ(w.look(), "submit 2");
}

TEST(PoolTest, ANodeThatNobodyUsedIsAFailure) {
  World w(settings());
  w.waiting(1, {.named = {{"nvidia.com/gpu", 1}}});
  w.look();
  EXPECT_EQ(w.look(), "submit 1") << "it might have one";
  w.runs("1");
  w.node("1", 0);
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.standing, "no pods wait for nodes") << "like this one";
  w.shape.named["nvidia.com/gpu"] = 1;
  w.node("1", 0);  // and yet it gets none
  w.passes(5 * kMinute);
  w.look();
  EXPECT_EQ(w.look(), "cancel 1");
  EXPECT_EQ(w.news,
            "node p-1 ran no pod, although 1 pod waits: `muster why` says what they wait for (1 "
            "failure in a row; the next request is in 10s)");
}

TEST(PoolTest, TheBudgetHoldsAlsoAfterARestart) {
  PoolSettings with = settings();
  with.budget_ms = 2 * kHour;
  World w(with);
  w.shape.slots = 1;
  w.waiting(100);
  w.look();
  EXPECT_EQ(w.look(), "submit 1");
  w.runs("1");
  w.node("1", 1);
  EXPECT_EQ(w.look(), "submit 2");
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.standing,
            "100 pods wait; of 2.0 node hours, 0.0 are spent and 2.0 promised to allocations "
            "(--budget)");
  w.passes(30 * kMinute);
  w.ends("1");
  EXPECT_EQ(w.look(), "forget p-1") << "what is left of it is less than an allocation may take";
  w.restart();
  EXPECT_EQ(w.pool.books().spent_ms, 30 * kMinute);
  w.look();
  EXPECT_EQ(w.look(), "");
  w.ends("2");
  w.allocation("2").started_ms.reset();  // cancelled before it started
  EXPECT_EQ(w.look(), "") << "a failure";
  w.passes(kMinute);
  EXPECT_EQ(w.look(), "submit 3");
  EXPECT_EQ(w.pool.books().spent_ms, 30 * kMinute);
}

TEST(PoolTest, WhatEndedWhileNobodyLookedMayHaveRunToItsEnd) {
  World w(settings(), {.spent_ms = kHour, .open = {{"7", 1'800'000'000'000 - kHour / 2}}});
  w.look();
  EXPECT_EQ(w.pool.books(), (Books{.spent_ms = kHour + kHour / 2}));
}

TEST(PoolTest, AfterARestartAllocationsAreFoundAndOldOnesAreNot) {
  World w(settings());
  w.now.allocations = {{.id = "1", .phase = Phase::running, .started_ms = w.now.now},
                       {.id = "2"},
                       {.id = "3", .phase = Phase::ended, .state = "FAILED"}};
  w.node("1", 4);
  w.now.nodes["p-3"] = {};
  w.waiting(4);
  EXPECT_EQ(w.look(), "forget p-3");
  EXPECT_EQ(w.pool.ids(), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(w.look(), "") << "2 is on the way, and 3 no failure";
}

TEST(PoolTest, AnAllocationThatIsNotShownTwiceIsOver) {
  World w(settings());
  w.waiting(1);
  w.look();
  w.look();
  w.now.allocations.clear();
  EXPECT_EQ(w.look(), "");
  EXPECT_EQ(w.look(), "");
  EXPECT_NE(w.news.find("allocation 1 was over before it had a node: no longer known"),
            std::string::npos);
}

TEST(PoolTest, IdleNodesWaitForTheOthersOfAGang) {
  World w(settings());
  w.shape.slots = 1;
  w.waiting(2, {.gang = true});
  w.look();
  w.look();
  w.runs("1");
  w.node("1", 0);
  EXPECT_EQ(w.look(), "submit 2");
  w.passes(20 * kMinute);
  EXPECT_EQ(w.look(), "");
  w.runs("2");
  w.node("2", 1);
  w.node("1", 1);
  w.waiting(0);
  EXPECT_EQ(w.look(), "");
}

TEST(PoolTest, WithoutTheRightToCordonNodesAreGivenBackAllTheSame) {
  World w(settings());
  w.waiting(1);
  w.look();
  w.look();
  w.runs("1");
  w.waiting(0);
  w.node("1", 1);
  w.look();
  w.node("1", 0);
  w.look();
  w.pool.cannot_cordon();
  w.passes(5 * kMinute);
  EXPECT_EQ(w.look(), "cancel 1");
  w.passes(2 * kMinute);
  EXPECT_EQ(w.look(), "end 1") << "its agent has not left";
}

}  // namespace
}  // namespace muster::cli::allocate
