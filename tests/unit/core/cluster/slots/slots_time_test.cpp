// Slots on nodes that end or are reserved: no pod starts where it cannot end in time, and what is
// expected of the line of waiting jobs.
#include "core/cluster/slots/slots.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>

namespace muster::core {
namespace {

constexpr Millis kSecondMs = 1'000;
// The wall clock is ahead of that of place().
constexpr Millis kAheadMs = 1'800'000'000'000;

// Jobs whose pods run for up to their limit, on nodes whose windows and ends come.
struct Term {
  struct Pod {
    JobId job;
    NodeId node;
    Millis since;
  };
  struct Waiting {
    JobObjectPtr object;
    uint32_t pending = 0;
    uint64_t received = 0;
    Millis runs_ms = 0;
  };
  Slots slots;
  std::map<NodeId, NodeInfo> nodes;
  std::map<JobId, Waiting> jobs;
  std::multimap<Millis, Pod> running;  // by end
  Millis now = 0;
  uint32_t started = 0;

  Term() { slots.set_wall(kAheadMs); }
  void node(NodeId id, uint32_t count, std::optional<Millis> until_ms = {},
            const std::vector<Window>& windows = {}) {
    NodeInfo& info = nodes[id];
    info.id = id;
    info.name = "n" + std::to_string(id);
    info.slots = count;
    info.cpu_millis = count * 1000;
    if (until_ms) info.until_ms = kAheadMs + *until_ms;
    for (const Window& window : windows)
      info.spec.annotations[std::string(kWindowKeys) + window.name] = window_text(window);
    slots.set_node(info);
    slots.set_usable(id, true);
  }
  void job(JobId id, uint32_t pods, std::optional<Millis> limit_ms, const std::string& user = "",
           int32_t priority = 0, bool gang = false, Millis grace_ms = 0) {
    auto object = std::make_shared<JobObject>();
    PodTemplate& pod = object->spec.pod;
    pod.priority = priority;
    pod.termination_grace_s = grace_ms / 1000;
    if (limit_ms) pod.active_deadline_s = *limit_ms / 1000;
    Container container;
    if (gang) container.resources.requests["cpu"] = "1";
    pod.containers.push_back(container);
    StringMap& notes = object->meta.annotations;
    if (gang) notes["muster.dev/gang"] = "true";
    if (!user.empty()) {
      notes["muster.dev/owner"] = user;
      notes["muster.dev/owner-uid"] = notes["muster.dev/owner-gid"] =
          std::to_string(1000 + user.size());
    }
    jobs[id] = {object, pods, 0, limit_ms.value_or(1'000'000'000) + grace_ms};
    slots.want(id, pods, 0, object);
  }
  Slots::Round round() {
    Slots::Round round = slots.place(now);
    for (const auto& [id, node, count] : round.grants) {
      Waiting& job = jobs.at(id);
      job.received += count;
      job.pending -= count;
      started += count;
      for (uint32_t i = 0; i < count; ++i) running.emplace(now + job.runs_ms, Pod{id, node, now});
      slots.want(id, job.pending, job.received, job.object);
    }
    for (const auto& [id, victims] : round.victims)
      for (auto [node, count] : victims) end(id, node, count);
    return round;
  }
  void end(JobId id, NodeId node, uint32_t count) {
    for (auto it = running.begin(); it != running.end() && count > 0;) {
      const bool one = it->second.job == id && it->second.node == node;
      if (one) --count;
      if (one) {
        slots.freed(id, {{node, 1}}, {}, {1, now - it->second.since}, now);
        it = running.erase(it);
      } else {
        ++it;
      }
    }
  }
  void pass(Millis span_ms) {
    now += span_ms;
    while (!running.empty() && running.begin()->first <= now) {
      const Pod pod = running.begin()->second;
      slots.freed(pod.job, {{pod.node, 1}}, {}, {1, now - pod.since}, now);
      running.erase(running.begin());
    }
  }
  uint64_t on(NodeId node, JobId job) const {
    uint64_t pods = 0;
    for (const auto& [at, pod] : running) pods += pod.node == node && pod.job == job;
    return pods;
  }
};

Window window_at(const std::string& name, Millis from_ms, Millis until_ms,
                 std::vector<std::string> users = {}) {
  return {name, kAheadMs + from_ms, kAheadMs + until_ms, std::move(users), {}, "", ""};
}

TEST(Time, WindowsOpenAndClose) {
  Term term;
  term.node(1, 2, {}, {window_at("fw", 100 * kSecondMs, 200 * kSecondMs)});
  term.job(1, 1, 60 * kSecondMs);
  term.job(2, 1, {});
  term.round();
  EXPECT_EQ(term.on(1, 1), 1u) << "it ends in time";
  EXPECT_EQ(term.on(1, 2), 0u) << "nobody knows when it ends";
  term.pass(50 * kSecondMs);
  term.job(3, 1, 60 * kSecondMs);
  term.round();
  EXPECT_EQ(term.on(1, 3), 0u) << "it would not end in time";
  term.pass(100 * kSecondMs);
  term.round();
  EXPECT_EQ(term.running.size(), 0u) << "the window is open";
  term.pass(50 * kSecondMs);
  term.round();
  EXPECT_EQ(term.on(1, 2) + term.on(1, 3), 2u) << "the window is over";
}

TEST(Time, ACourseIsForItsUsersOnly) {
  Term term;
  term.node(1, 4, {}, {window_at("course", 10 * kSecondMs, 100 * kSecondMs, {"ann"})});
  term.job(1, 1, {}, "ann");
  term.job(2, 1, {}, "eve1");
  term.round();
  EXPECT_EQ(term.on(1, 1), 1u);
  EXPECT_EQ(term.on(1, 2), 0u);
  term.pass(20 * kSecondMs);
  term.job(3, 1, 10 * kSecondMs, "ann");
  term.job(4, 1, kSecondMs, "eve1");
  Slots::Round round = term.round();
  EXPECT_EQ(term.on(1, 3), 1u);
  EXPECT_EQ(term.on(1, 4), 0u);
  EXPECT_TRUE(round.tainted.empty());
}

// As after a window is made that begins at once.
TEST(Time, WhatStillRunsLeavesWhenAWindowBegins) {
  Term term;
  term.node(1, 4);
  term.job(1, 2, {}, "ann");
  term.job(2, 2, {}, "eve1");
  term.round();
  EXPECT_EQ(term.running.size(), 4u);
  term.pass(kSecondMs);
  term.node(1, 4, {}, {window_at("course", 2 * kSecondMs, 9 * kSecondMs, {"ann"})});
  EXPECT_TRUE(term.round().tainted.empty()) << "not yet";
  term.pass(kSecondMs);
  const Slots::Round round = term.round();
  EXPECT_EQ(round.tainted, (std::map<JobId, std::vector<NodeId>>{{2, {1}}}));
  EXPECT_LE(round.again_ms.value_or(kSecondMs * 9), kSecondMs) << "they are told again";
}

TEST(Time, AnAllocationIsUsedUntilItsEnd) {
  Term term;
  term.node(1, 8, 60 * kSecondMs);
  term.job(1, 1, {}, "", 0, false, 30 * kSecondMs);
  term.job(2, 1, 60 * kSecondMs);
  term.job(3, 1, 61 * kSecondMs);
  term.round();
  EXPECT_EQ(term.on(1, 1), 1u) << "without a limit, it runs until the end";
  EXPECT_EQ(term.on(1, 2), 1u);
  EXPECT_EQ(term.on(1, 3), 0u);
  EXPECT_FALSE(term.slots.may_keep(1)) << "its next pod may be too late";
  term.pass(31 * kSecondMs);
  term.job(4, 1, {}, "", 0, false, 30 * kSecondMs);
  term.round();
  EXPECT_EQ(term.on(1, 4), 0u) << "it could only end";
}

TEST(Time, PreemptionAndReservationsKnowTheEnd) {
  Term term;
  term.node(1, 1, 100 * kSecondMs);
  term.job(1, 1, 90 * kSecondMs);
  term.round();
  term.pass(10 * kSecondMs);
  term.job(2, 1, 95 * kSecondMs, "", 10);
  const Slots::Round round = term.round();
  EXPECT_TRUE(round.victims.empty()) << "the pod of higher priority would not end in time";
  term.job(3, 1, 50 * kSecondMs, "", 0, true);  // its slot would be free too late
  for (int i = 0; i < 5; ++i) {
    term.pass(kSecondMs);
    term.round();
  }
  EXPECT_FALSE(term.slots.awaited()) << "nothing is kept where it could not end in time";
}

// What a pod may run, against a model without any of the code above.
TEST(Time, NoPodIsInTheWayOfAnyEnd) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 chance(seed);
    auto one_of = [&chance](Millis most) { return static_cast<Millis>(chance() % most); };
    Term term;
    std::map<NodeId, Window> windows;
    std::map<NodeId, Millis> ends;
    for (NodeId id = 1; id <= 4; ++id) {
      const Millis from = (20 + one_of(100)) * kSecondMs;
      windows[id] =
          window_at("w", from, from + (1 + one_of(60)) * kSecondMs,
                    id % 2 == 0 ? std::vector<std::string>{"ann"} : std::vector<std::string>{});
      if (id < 4) {
        term.node(id, 4, {}, {windows[id]});
      } else {
        ends[id] = from;
        term.node(id, 4, from);
      }
    }
    JobId next = 1;
    for (int step = 0; step < 200; ++step) {
      if (chance() % 2 == 0) {
        const bool gang = chance() % 4 == 0;
        const auto limit = chance() % 5 == 0 ? std::optional<Millis>()
                                             : std::optional((1 + one_of(40)) * kSecondMs);
        term.job(next++, 1 + chance() % 4, limit, chance() % 2 == 0 ? "ann" : "eve1",
                 static_cast<int32_t>(chance() % 2), gang, one_of(3) * kSecondMs);
      }
      term.round();
      for (const auto& [end_ms, pod] : term.running) {
        const std::string& user =
            term.jobs.at(pod.job).object->meta.annotations.at("muster.dev/owner");
        const bool endless = !term.jobs.at(pod.job).object->spec.pod.active_deadline_s;
        if (const auto end = ends.find(pod.node); end != ends.end()) {
          ASSERT_TRUE(endless || end_ms <= end->second) << "seed " << seed;
          continue;
        }
        const Window& window = windows.at(pod.node);
        if (!window.users.empty() && user == "ann") continue;
        const bool apart =
            end_ms <= window.from_ms - kAheadMs || pod.since >= window.until_ms - kAheadMs;
        ASSERT_TRUE(apart) << "seed " << seed << ": j" << pod.job << " from " << pod.since << " to "
                           << end_ms;
      }
      term.pass(kSecondMs);
    }
    EXPECT_GT(term.started, 20u) << "seed " << seed;
  }
}

TEST(Line, SaysWhoGoesFirstAndWhenIfThatIsKnown) {
  Term term;
  term.node(1, 2);
  term.job(1, 1, 60 * kSecondMs);
  term.job(2, 1, 90 * kSecondMs);
  term.round();
  EXPECT_TRUE(term.slots.line(term.now).empty()) << "nobody waits";
  term.job(3, 1, 10 * kSecondMs, "", 5);
  term.job(4, 1, 10 * kSecondMs);
  term.round();
  const std::vector<Expectation> line = term.slots.line(term.now);
  ASSERT_EQ(line.size(), 2u);
  EXPECT_EQ(line[0].job, 3u);
  EXPECT_EQ(line[0].ahead, 0u);
  EXPECT_EQ(line[1].job, 4u);
  EXPECT_EQ(line[1].ahead, 1u);
}

TEST(Line, StartsFollowFromKnownEnds) {
  Term term;
  term.node(1, 2);
  term.job(1, 1, 60 * kSecondMs, "", 9);
  term.job(2, 1, 90 * kSecondMs, "", 9);
  term.round();
  term.job(3, 1, 10 * kSecondMs, "", 5);
  term.job(4, 1, 10 * kSecondMs);
  term.job(5, 1, 10 * kSecondMs, "", -1);
  term.round();
  const std::vector<Expectation> line = term.slots.line(term.now);
  ASSERT_EQ(line.size(), 3u);
  EXPECT_EQ(line[0].start_ms, 60 * kSecondMs);
  EXPECT_EQ(line[1].start_ms, 70 * kSecondMs) << "after the one before it";
  EXPECT_EQ(line[2].start_ms, 80 * kSecondMs);
}

TEST(Line, OfEqualsAnyMayBeFirst) {
  Term term;
  term.node(1, 1);
  term.job(1, 1, 60 * kSecondMs, "", 9);
  term.round();
  for (JobId id : {2, 3}) term.job(id, 1, 10 * kSecondMs);
  term.job(4, 1, 10 * kSecondMs, "", -1);
  term.round();
  const std::vector<Expectation> line = term.slots.line(term.now);
  ASSERT_EQ(line.size(), 3u);
  for (size_t i : {0, 1}) {
    EXPECT_EQ(line[i].ahead, 0u);
    EXPECT_FALSE(line[i].start_ms);
  }
  EXPECT_EQ(line[2].ahead, 2u);
  EXPECT_EQ(line[2].start_ms, 80 * kSecondMs) << "whoever of them is first";
}

TEST(Line, NothingIsExpectedOfWhatIsNotKnown) {
  Term term;
  term.node(1, 1);
  term.job(1, 1, {}, "", 9);
  term.round();
  term.job(2, 1, 10 * kSecondMs);
  term.round();
  const std::vector<Expectation> line = term.slots.line(term.now);
  ASSERT_EQ(line.size(), 1u);
  EXPECT_FALSE(line[0].start_ms) << "the pod before it may run for ever";
}

}  // namespace
}  // namespace muster::core
