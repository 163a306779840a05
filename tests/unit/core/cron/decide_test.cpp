// What a CronJob's controller does: concurrency, deadlines, history, and being away.
#include "core/cron/decide.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Millis kMin = 60'000, kHour = 60 * kMin;
const Zone kUtc = [](int64_t) { return 0; };

// Every full hour; created half an hour after hour 0.
CronJob hourly() {
  CronJob cron;
  cron.name = "tick";
  cron.created_ms = 30 * kMin;
  cron.spec.schedule = "0 * * * *";
  return cron;
}
ChildJob child(const std::string& name, ChildJob::End end = ChildJob::End::none, Millis ended = 0) {
  ChildJob job{{name, "uid-" + name}, end, ended - kMin, ended};
  return job;
}
std::vector<std::string> reasons(const CronDecision& decision) {
  std::vector<std::string> out;
  for (const CronEvent& event : decision.events)
    out.push_back((event.warning ? "!" : "") + event.reason);
  return out;
}
CronDecision at(const CronJob& cron, Millis now, std::vector<ChildJob> children = {}) {
  return decide(cron, std::move(children), &kUtc, now);
}

TEST(Cron, StartsAtTheScheduledTimeAndOnce) {
  CronJob cron = hourly();
  CronDecision early = at(cron, kHour - 1);
  EXPECT_EQ(early.start, std::nullopt);
  EXPECT_EQ(early.wake, kHour);
  EXPECT_EQ(early.status, cron.status);
  CronDecision due = at(cron, kHour + 5);
  EXPECT_EQ(due.start, kHour);
  EXPECT_EQ(due.wake, 2 * kHour);
  EXPECT_THAT(reasons(due), IsEmpty());
  EXPECT_EQ(job_name(cron.name, kHour), "tick-60");
  cron.status = started(due.status, {"tick-60", "uid-tick-60"}, kHour);
  EXPECT_EQ(cron.status.scheduled_ms, kHour);
  EXPECT_EQ(started(cron.status, {"tick-60", "uid-tick-60"}, kHour), cron.status);
  CronDecision after = at(cron, kHour + 10, {child("tick-60")});
  EXPECT_EQ(after.start, std::nullopt);
  EXPECT_EQ(after.status, cron.status);
  EXPECT_THAT(reasons(after), IsEmpty());
}

TEST(Cron, SeesJobsEnd) {
  CronJob cron = hourly();
  cron.status = {
      {{"tick-60", "uid-tick-60"}, {"tick-120", "uid-tick-120"}}, 2 * kHour, std::nullopt};
  CronDecision decision = at(cron, 2 * kHour + kMin,
                             {child("tick-60", ChildJob::End::complete, 2 * kHour),
                              child("tick-120", ChildJob::End::failed)});
  EXPECT_THAT(decision.status.active, IsEmpty());
  EXPECT_EQ(decision.status.successful_ms, 2 * kHour);
  EXPECT_THAT(
      decision.events,
      ElementsAre(
          CronEvent{false, "SawCompletedJob", "Saw completed job: tick-60, condition: Complete"},
          CronEvent{false, "SawCompletedJob", "Saw completed job: tick-120, condition: Failed"}));
  cron.status = decision.status;
  decision = at(cron, 2 * kHour + 2 * kMin,
                {child("tick-60", ChildJob::End::complete, 2 * kHour),
                 child("by-hand", ChildJob::End::complete, 2 * kHour + kMin)});
  EXPECT_EQ(decision.status.successful_ms, 2 * kHour + kMin) << "also of a job started by hand";
}

TEST(Cron, MissesJobsThatAreGoneAndWondersAboutOthers) {
  CronJob cron = hourly();
  cron.status = {{{"tick-60", "uid-tick-60"}}, kHour, std::nullopt};
  const CronDecision decision = at(cron, kHour + kMin, {child("by-hand")});
  EXPECT_THAT(decision.status.active, IsEmpty());
  EXPECT_THAT(
      decision.events,
      ElementsAre(CronEvent{true, "UnexpectedJob",
                            "Saw a job that the controller did not create or forgot: by-hand"},
                  CronEvent{false, "MissingJob", "Active job went missing: tick-60"}));
}

TEST(Cron, AJobCreatedBeforeTheStatusWasWrittenIsNotCreatedAgain) {
  const CronJob cron = hourly();
  CronDecision running = at(cron, kHour + kMin, {child("tick-60")});
  EXPECT_EQ(running.start, std::nullopt);
  EXPECT_EQ(running.status, (CronStatus{{{"tick-60", "uid-tick-60"}}, kHour, std::nullopt}));
  EXPECT_THAT(reasons(running), IsEmpty());
  CronJob none = cron;
  none.spec.keep_failed = 0;
  CronDecision ended = at(none, kHour + kMin, {child("tick-60", ChildJob::End::failed)});
  EXPECT_EQ(ended.start, std::nullopt) << "although its history is removed now";
  EXPECT_THAT(ended.remove, ElementsAre(JobRef{"tick-60", "uid-tick-60"}));
  EXPECT_EQ(ended.status.scheduled_ms, kHour);
}

TEST(Cron, ConcurrencyPolicies) {
  CronJob cron = hourly();
  cron.status = {{{"tick-60", "uid-tick-60"}}, kHour, std::nullopt};
  const std::vector<ChildJob> running = {child("tick-60")};
  EXPECT_EQ(at(cron, 2 * kHour, running).start, 2 * kHour);
  cron.spec.concurrency = Concurrency::forbid;
  CronDecision forbidden = at(cron, 2 * kHour, running);
  EXPECT_EQ(forbidden.start, std::nullopt);
  EXPECT_THAT(reasons(forbidden), ElementsAre("JobAlreadyActive"));
  EXPECT_EQ(
      at(cron, 2 * kHour + kMin, {child("tick-60", ChildJob::End::complete, 2 * kHour)}).start,
      2 * kHour)
      << "late, once the other has ended";
  cron.spec.concurrency = Concurrency::replace;
  CronDecision replaced = at(cron, 2 * kHour, running);
  EXPECT_THAT(replaced.remove, ElementsAre(JobRef{"tick-60", "uid-tick-60"}));
  EXPECT_THAT(replaced.status.active, IsEmpty());
  EXPECT_EQ(replaced.start, 2 * kHour);
}

TEST(Cron, MakesUpForTheLastMissedTimeOnly) {
  CronJob cron = hourly();
  EXPECT_EQ(at(cron, 5 * kHour + kMin).start, 5 * kHour);
  EXPECT_THAT(reasons(at(cron, 5 * kHour + kMin)), IsEmpty());
  const CronDecision many = at(cron, 102 * kHour);
  EXPECT_EQ(many.start, 102 * kHour);
  EXPECT_THAT(reasons(many), ElementsAre("!TooManyMissedTimes"));
  EXPECT_THAT(reasons(at(cron, 100 * kHour)), IsEmpty());
  cron.spec.starting_deadline_s = 60;
  EXPECT_EQ(at(cron, 5 * kHour + kMin - 1).start, 5 * kHour);
  const CronDecision late = at(cron, 5 * kHour + kMin);
  EXPECT_EQ(late.start, std::nullopt);
  EXPECT_EQ(late.wake, 6 * kHour);
  EXPECT_THAT(late.events, ElementsAre(CronEvent{true, "MissSchedule",
                                                 "Missed scheduled time to start a job: Thu, 01 "
                                                 "Jan 1970 05:00:00 +0000"}));
  cron.spec.starting_deadline_s = INT64_MAX;
  EXPECT_EQ(at(cron, 5 * kHour + kMin).start, 5 * kHour);
}

TEST(Cron, StartsNothingWhileSuspendedDeletedOrInAnUnknownZone) {
  CronJob cron = hourly();
  cron.spec.suspend = true;
  EXPECT_EQ(at(cron, 5 * kHour).start, std::nullopt);
  EXPECT_EQ(at(cron, 5 * kHour).wake, std::nullopt);
  cron.spec.suspend = false;
  EXPECT_EQ(at(cron, 5 * kHour).start, 5 * kHour) << "the last one that was missed";
  cron.deleted = true;
  EXPECT_EQ(at(cron, 5 * kHour).start, std::nullopt);
  cron.deleted = false;
  cron.spec.time_zone = "Mars/Base";
  const CronDecision decision = decide(cron, {}, nullptr, 5 * kHour);
  EXPECT_EQ(decision.start, std::nullopt);
  EXPECT_THAT(
      decision.events,
      ElementsAre(CronEvent{true, "UnknownTimeZone",
                            "invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base"}));
}

TEST(Cron, HistoryLimitsRemoveTheOldest) {
  CronJob cron = hourly();
  cron.status.scheduled_ms = 9 * kHour;
  cron.spec.keep_successful = 1;
  cron.spec.keep_failed = 0;
  std::vector<ChildJob> jobs = {child("c", ChildJob::End::complete, 9 * kHour),
                                child("a", ChildJob::End::complete, 7 * kHour),
                                child("b", ChildJob::End::complete, 8 * kHour),
                                child("f", ChildJob::End::failed, 8 * kHour), child("r")};
  cron.status.active = {{"r", "uid-r"}};
  EXPECT_THAT(at(cron, 9 * kHour + kMin, jobs).remove,
              ElementsAre(JobRef{"a", "uid-a"}, JobRef{"b", "uid-b"}, JobRef{"f", "uid-f"}));
  cron.spec.keep_successful = cron.spec.keep_failed = std::nullopt;
  EXPECT_THAT(at(cron, 9 * kHour + kMin, jobs).remove, IsEmpty());
}

}  // namespace
}  // namespace muster::core
