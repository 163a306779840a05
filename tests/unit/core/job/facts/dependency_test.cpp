// Jobs that wait for others (muster.dev/after).
#include "core/job/rules/held.hpp"
#include "tests/unit/core/job/play.hpp"

#include <algorithm>

namespace muster::core {
namespace {

constexpr JobId kPrep = 7, kClean = 8;

void annotated(JobMeta& meta) {
  meta.annotations.emplace(kAfterKey, "ok:prep");
}
Play held(Needed needed, JobSpec spec = Play::indexed(2, 2)) {
  return Play(std::move(spec), annotated, {{kPrep, {needed, "prep"}}});
}
void end(Play& play, DependencyEnd how, JobId job = kPrep) {
  play.sync({DependencyHasEnded{1, job, how}});
}

TEST(Dependency, AHeldJobHasNoStartTimeAndNoPods) {
  JobSpec spec = Play::indexed(2, 2);
  spec.active_deadline_s = 1;
  Play play = held(Needed::ok, spec);
  play.sync();
  play.tick(60'000);
  EXPECT_TRUE(play.job().held());
  EXPECT_EQ(awaited_text(play.job()), "job prep to succeed");
  EXPECT_EQ(play.state().started_at, std::nullopt);
  EXPECT_EQ(play.state().pods_created, 0u);
  EXPECT_FALSE(play.job().decided()) << "its deadline has not begun";
  play.restart();
  EXPECT_TRUE(play.job().held());
  end(play, DependencyEnd::succeeded);
  EXPECT_FALSE(play.job().held());
  EXPECT_EQ(play.state().started_at, play.now());
  EXPECT_EQ(play.state().pods_created, 2u);
  play.restart();
}

TEST(Dependency, EndOfDependencyStartsOrFailsJobByItsKind) {
  struct Case {
    Needed needed;
    DependencyEnd how;
    const char* fails;  // the message of its failure; null: it starts
  };
  const Case cases[] = {
      {Needed::ok, DependencyEnd::succeeded, nullptr},
      {Needed::ok, DependencyEnd::failed, "Job prep failed, but this job runs only if it succeeds"},
      {Needed::ok, DependencyEnd::deleted,
       "Job prep was deleted before it finished, but this job runs only if it succeeds"},
      {Needed::notok, DependencyEnd::succeeded,
       "Job prep succeeded, but this job runs only if it fails"},
      {Needed::notok, DependencyEnd::failed, nullptr},
      {Needed::notok, DependencyEnd::deleted, nullptr},
      {Needed::any, DependencyEnd::succeeded, nullptr},
      {Needed::any, DependencyEnd::failed, nullptr},
      {Needed::any, DependencyEnd::deleted, nullptr},
  };
  for (const Case& one : cases) {
    Play play = held(one.needed);
    play.sync();
    end(play, one.how);
    EXPECT_FALSE(play.job().held());
    if (one.fails == nullptr) {
      EXPECT_EQ(play.state().pods_created, 2u);
      EXPECT_EQ(play.conditions(), "");
    } else {
      EXPECT_EQ(play.state().pods_created, 0u);
      EXPECT_EQ(play.conditions(),
                "FailureTarget=True/DependencyNeverSatisfied Failed=True/DependencyNeverSatisfied");
      EXPECT_EQ(play.state().conditions.back().message, one.fails);
    }
    play.restart();
  }
}

TEST(Dependency, JobIsHeldUntilAllDependenciesEnd) {
  Play play(Play::indexed(2, 2), annotated,
            {{kPrep, {Needed::ok, "prep"}}, {kClean, {Needed::any, "clean"}}});
  play.sync();
  EXPECT_EQ(awaited_text(play.job()), "job prep to succeed, clean to end");
  end(play, DependencyEnd::failed, kClean);
  EXPECT_TRUE(play.job().held());
  EXPECT_EQ(awaited_text(play.job()), "job prep to succeed");
  end(play, DependencyEnd::failed, kClean);
  EXPECT_TRUE(play.job().held()) << "an end that is reported again";
  end(play, DependencyEnd::failed);
  EXPECT_TRUE(play.job().finished());
}

TEST(Dependency, EndIsAcknowledgedEvenIfJobIsNotHeld) {
  Play play(Play::indexed(2, 2));
  play.sync();
  end(play, DependencyEnd::failed);
  ASSERT_FALSE(play.effects().empty());
  EXPECT_FALSE(play.job().decided());
}

TEST(Dependency, EndIsAcknowledgedAfterHeldJobIsDeleted) {
  Play play = held(Needed::ok);
  play.sync();
  play.sync({JobDeletion{1, true, false}});
  ASSERT_TRUE(play.state().forgotten);
  const JobState before = play.state();
  end(play, DependencyEnd::succeeded);
  EXPECT_EQ(play.state(), before) << "nothing follows the last record";
  EXPECT_TRUE(std::ranges::any_of(play.effects(), [](const Effect& effect) {
    const auto* answer = std::get_if<Answer>(&effect);
    return answer && answer->token == 1;
  })) << "else the job that has ended waits for the answer";
}

TEST(Dependency, RemovingAnnotationStartsHeldJob) {
  Play play = held(Needed::ok);
  play.sync();
  auto object = std::make_shared<JobObject>(play.job().object());
  object->meta.annotations.clear();
  object->json = "without";
  play.sync({OwnerUpdate{1, play.job().object_ptr(), object}});
  EXPECT_FALSE(play.job().held());
  EXPECT_EQ(play.state().pods_created, 2u);
  end(play, DependencyEnd::failed);
  EXPECT_FALSE(play.job().decided());
}

TEST(Dependency, AResumeDoesNotStartAHeldJob) {
  JobSpec spec = Play::indexed(2, 2);
  spec.suspend = true;
  Play play = held(Needed::ok, spec);
  play.sync();
  play.update([](JobSpec& s) { s.suspend = false; });
  EXPECT_EQ(play.state().started_at, std::nullopt);
  EXPECT_EQ(play.state().pods_created, 0u);
  play.tick(1000);
  end(play, DependencyEnd::succeeded);
  EXPECT_EQ(play.state().started_at, play.now());
  EXPECT_EQ(play.state().pods_created, 2u);
}

TEST(Dependency, JobWithZeroCompletionsWaitsToo) {
  Play play = held(Needed::ok, Play::indexed(0, 1));
  play.sync();
  EXPECT_FALSE(play.job().decided());
  end(play, DependencyEnd::succeeded);
  EXPECT_TRUE(play.job().finished());
}

TEST(Dependency, AJobIsNotForgottenBeforeItsDependentsKnow) {
  JobSpec spec = Play::indexed(0, 1);
  spec.ttl_s = 0;
  Play play(spec);
  play.knobs().has_dependents = true;
  play.sync();
  EXPECT_TRUE(play.job().finished());
  play.sync({JobDeletion{1}});
  EXPECT_TRUE(play.job().hidden());
  EXPECT_FALSE(play.state().forgotten);
  play.knobs().has_dependents = false;
  play.sync();
  EXPECT_TRUE(play.state().forgotten);
}

}  // namespace
}  // namespace muster::core
