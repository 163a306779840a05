// muster.dev/begin and muster.dev/hold: when the first pods of a job may be created.
#include "core/spec/rules/begin.hpp"

#include "core/job/rules/held.hpp"
#include "core/spec/rules/update.hpp"
#include "core/spec/values/instant.hpp"
#include "tests/unit/core/job/play.hpp"

namespace muster::core {
namespace {

constexpr Millis kAnHourMs = 3'600'000;

void in_an_hour(JobMeta& meta) {
  meta.annotations["muster.dev/begin"] = utc_text(Play::kBegin + kAnHourMs);
}

std::optional<Millis> wake_of(const Play& play) {
  for (const Effect& effect : play.effects())
    if (const auto* wake = std::get_if<WakeAt>(&effect)) return wake->at_ms;
  return std::nullopt;
}

void set_begin(Play& play, std::optional<Millis> at) {
  auto object = std::make_shared<JobObject>(play.job().object());
  object->meta.annotations.erase("muster.dev/begin");
  if (at) object->meta.annotations["muster.dev/begin"] = utc_text(*at);
  object->json = at ? utc_text(*at) : "none";
  play.sync({OwnerUpdate{1, play.job().object_ptr(), object}});
}

TEST(Begin, NothingStartsBeforeAndAllDoesThen) {
  Play play(Play::indexed(2, 2), in_an_hour);
  play.sync();
  EXPECT_TRUE(play.state().open.empty());
  EXPECT_EQ(play.state().started_at, std::nullopt);
  EXPECT_EQ(wake_of(play), Play::kBegin + kAnHourMs);
  play.tick(kAnHourMs - 1);
  EXPECT_TRUE(play.state().open.empty());
  play.restart();
  EXPECT_EQ(wake_of(play), Play::kBegin + kAnHourMs) << "a coordinator that starts waits on";
  play.tick(1);
  EXPECT_EQ(play.state().open.size(), 2u);
  EXPECT_EQ(play.state().started_at, Play::kBegin + kAnHourMs);
}

TEST(Begin, DeadlineOfTheJobRunsFromThen) {
  JobSpec spec = Play::indexed(1, 1);
  spec.active_deadline_s = 60;
  Play play(spec, in_an_hour);
  play.sync();
  play.tick(kAnHourMs / 2);
  EXPECT_FALSE(play.job().decided());
  play.tick(kAnHourMs / 2);
  play.tick(59'999);
  EXPECT_FALSE(play.job().decided());
  play.tick(1);
  EXPECT_TRUE(play.job().decided());
}

TEST(Begin, ChangesActAtOnce) {
  Play play(Play::indexed(1, 1), in_an_hour);
  play.sync();
  set_begin(play, Play::kBegin + 2 * kAnHourMs);
  EXPECT_EQ(wake_of(play), Play::kBegin + 2 * kAnHourMs);
  play.tick(kAnHourMs);
  EXPECT_TRUE(play.state().open.empty());
  set_begin(play, std::nullopt);
  EXPECT_EQ(play.state().open.size(), 1u);
  set_begin(play, Play::kBegin + 3 * kAnHourMs);
  EXPECT_EQ(play.state().open.size(), 1u) << "it has started; admission refuses this";
}

TEST(Begin, SuspendedJobThatIsResumedBeforeStillWaits) {
  JobSpec spec = Play::indexed(1, 1);
  spec.suspend = true;
  Play play(spec, in_an_hour);
  play.sync();
  play.update([](JobSpec& now) { now.suspend = false; });
  EXPECT_EQ(play.state().started_at, std::nullopt);
  EXPECT_TRUE(play.state().open.empty());
  play.restart();
  play.tick(kAnHourMs);
  EXPECT_EQ(play.state().started_at, Play::kBegin + kAnHourMs);
  EXPECT_EQ(play.state().open.size(), 1u);
}

TEST(Begin, HoldAndCancellationApplyBefore) {
  Play play(Play::indexed(1, 1), in_an_hour);
  play.sync({HoldChange{1, true, "alice"}});
  play.tick(kAnHourMs);
  EXPECT_TRUE(play.state().open.empty()) << "it is on hold";
  play.sync({HoldChange{1, false, "alice"}});
  EXPECT_EQ(play.state().open.size(), 1u);
  Play other(Play::indexed(1, 1), in_an_hour);
  other.sync();
  other.sync({Cancellation{1, "alice"}});
  EXPECT_TRUE(other.job().finished());
}

TEST(Begin, JobWithoutAnythingToDoCompletesOnlyThen) {
  Play play(Play::indexed(0, 0), in_an_hour);
  play.sync();
  EXPECT_FALSE(play.job().decided());
  play.tick(kAnHourMs);
  EXPECT_TRUE(play.job().finished());
}

TEST(Begin, DeadlineOfAJobCreatedOnHoldRunsFromItsRelease) {
  JobSpec spec = Play::indexed(1, 1);
  spec.active_deadline_s = 60;
  Play play(spec);
  play.sync({HoldChange{1, true, "alice"}});
  EXPECT_EQ(play.state().started_at, std::nullopt);
  play.tick(kAnHourMs);
  EXPECT_FALSE(play.job().decided());
  play.sync({HoldChange{1, false, "alice"}});
  EXPECT_EQ(play.state().started_at, Play::kBegin + kAnHourMs);
  EXPECT_EQ(play.state().open.size(), 1u);
}

TEST(Begin, HoldOfACreatedJobIsItsOwners) {
  JobMeta meta;
  EXPECT_EQ(held_by_owner(meta, 7), (JobHeld{7, "its owner", false, ""}));
  meta.annotations = {{"muster.dev/owner", "alice"},
                      {"muster.dev/owner-uid", "1000"},
                      {"muster.dev/owner-gid", "1000"}};
  EXPECT_EQ(held_by_owner(meta, 7), (JobHeld{7, "alice", false, ""}));
}

std::string begin_error(const StringMap& annotations) {
  Violations found;
  validate_begin(annotations, found);
  return found.empty() ? "" : found.list().front().detail;
}

TEST(Begin, AdmissionSaysWhatIsWrong) {
  EXPECT_EQ(begin_error({{"muster.dev/begin", "2027-01-31T08:00:00+01:00"}}), "");
  EXPECT_EQ(begin_error({{"muster.dev/begin", "tomorrow"}}),
            "must be an instant in RFC 3339, such as 2027-01-31T08:00:00+01:00 or "
            "2027-01-31T07:00:00Z");
  EXPECT_EQ(begin_error({{"muster.dev/hold", "true"}}), "");
  EXPECT_EQ(begin_error({{"muster.dev/hold", "yes"}}), "must be \"true\" or \"false\"");
}

TEST(Begin, StartedJobsBeginNoLater) {
  const auto refused = [](const StringMap& before, const StringMap& now, bool started) {
    Violations found;
    validate_begin_change(before, now, started, found);
    return !found.empty();
  };
  const StringMap early{{"muster.dev/begin", "2027-01-31T07:00:00Z"}},
      late{{"muster.dev/begin", "2027-01-31T08:00:00Z"}}, hold{{"muster.dev/hold", "true"}};
  EXPECT_FALSE(refused(early, late, false));
  EXPECT_TRUE(refused(early, late, true));
  EXPECT_FALSE(refused(early, early, true));
  EXPECT_FALSE(refused(early, {}, true));
  EXPECT_TRUE(refused({}, hold, false)) << "it would not hold the job";
  EXPECT_FALSE(refused(hold, hold, true));
  EXPECT_FALSE(refused(hold, {}, true));
}

TEST(Instant, IsReadWithAnyZone) {
  const Millis at = 1'801'378'800'000;  // 2027-01-31T07:00:00Z
  EXPECT_EQ(utc_text(at), "2027-01-31T07:00:00Z");
  for (const char* text : {"2027-01-31T07:00:00Z", "2027-01-31T08:00:00+01:00",
                           "2027-01-31T01:30:00-05:30", "2027-01-31T07:00:00.0Z"})
    EXPECT_EQ(read_instant(text), at) << text;
  EXPECT_EQ(read_instant("2027-01-31T07:00:00.25Z"), at + 250);
  for (const char* text :
       {"", "2027-01-31", "2027-01-31T07:00:00", "2027-02-30T07:00:00Z", "2027-01-31T24:00:00Z",
        "2027-01-31T07:00:00.Z", "2027-01-31T07:00:00+1:00", "2027-01-31T07:00:00Zx",
        "2027-01-31 07:00:00Z", "2027-01-31T07:00:00+24:00"})
    EXPECT_EQ(read_instant(text), std::nullopt) << text;
}

TEST(Hold, OwnersHoldIsBackOnceTheOperatorsIsReleased) {
  Play play(Play::indexed(2, 2));
  play.sync({HoldChange{1, true, "alice", false, "wait for me"}});
  play.sync({HoldChange{2, true, "olga", true, "license"}});
  EXPECT_EQ(play.state().hold->by, "olga");
  play.restart();
  play.sync({HoldChange{3, false, "olga", true}});
  ASSERT_TRUE(play.state().hold);
  EXPECT_EQ(play.state().hold->by, "alice");
  EXPECT_EQ(play.state().hold->reason, "wait for me");
  EXPECT_FALSE(play.state().hold->by_operator);
  play.sync({HoldChange{4, false, "alice"}});
  EXPECT_FALSE(play.state().hold);
}

TEST(Hold, OperatorMayReleaseTheOwnersHold) {
  Play play(Play::indexed(2, 2));
  play.sync({HoldChange{1, true, "alice"}});
  play.sync({HoldChange{2, false, "olga", true}});
  EXPECT_FALSE(play.state().hold);
}

}  // namespace
}  // namespace muster::core
