#include "core/job/shown/notice.hpp"

#include "tests/unit/core/sample_job.hpp"

#include <gmock/gmock.h>

namespace muster::core {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Millis kNoticeStart = 1'700'000'000'000;

// A job of five indexes that has ended like this.
Job ended_job(const StringMap& annotations, bool complete, bool finished = true) {
  SampleJob sample = SampleJob::bare(true);
  sample.meta.name = "fit";
  sample.meta.annotations = annotations;
  sample.admit();
  Job job(7, std::make_shared<JobObject>(JobObject{sample.meta, sample.spec, ""}));
  JobState state = job.state();
  state.started_at = kNoticeStart;
  state.completions = 5;
  state.completed = *IndexSet::parse_strict(complete ? "0-4" : "0,2", 5);
  if (!complete) state.failed_indexes = *IndexSet::parse_strict("1,3-4", 5);
  if (finished)
    state.conditions.push_back(
        {complete ? ConditionType::complete : ConditionType::failed, true, kNoticeStart + 90'000,
         complete ? ConditionReason::completions_reached : ConditionReason::failed_indexes,
         complete ? "Reached expected number of succeeded pods" : "Job has failed\nindexes"});
  return Job(7, job.object_ptr(), state);
}

TEST(Notice, IsDueOnceForThoseWhoAsked) {
  const StringMap mail = {{"muster.dev/mail", "ada"}};
  EXPECT_TRUE(notice_due(ended_job(mail, true)));
  EXPECT_FALSE(notice_due(ended_job(mail, true, false))) << "it runs";
  EXPECT_FALSE(notice_due(ended_job({}, true))) << "nobody asked";
  EXPECT_TRUE(notice_due(ended_job({{"muster.dev/notify", "true"}}, false)));
  EXPECT_FALSE(notice_due(ended_job(
      {{"muster.dev/mail", "ada"}, {"muster.dev/notified", "2026-01-01T00:00:00Z"}}, true)));
  const StringMap failures = {{"muster.dev/mail", "ada"}, {"muster.dev/notify-on", "fail"}};
  EXPECT_FALSE(notice_due(ended_job(failures, true)));
  EXPECT_TRUE(notice_due(ended_job(failures, false)));
}

TEST(Notice, TheJobDoesNotExpireBeforeItsEndWasTold) {
  const auto expires = [](StringMap annotations, int32_t ttl_s) {
    const Job job = ended_job(annotations, true);
    JobObject object = job.object();
    object.spec.ttl_s = ttl_s;
    return *expires_at(Job(7, std::make_shared<JobObject>(object), job.state()));
  };
  constexpr Millis kEnd = kNoticeStart + 90'000;
  EXPECT_EQ(expires({}, 0), kEnd);
  EXPECT_EQ(expires({{"muster.dev/mail", "ada"}}, 0), kEnd + kNoticeLifeMs);
  EXPECT_EQ(expires({{"muster.dev/mail", "ada"}, {"muster.dev/notified", "x"}}, 0), kEnd);
  EXPECT_EQ(expires({{"muster.dev/mail", "ada"}}, 7 * 86'400), kEnd + 7 * 86'400'000LL);
}

TEST(Notice, MailNamesTheTasksOfAnArray) {
  const auto lost = [](const std::string& inputs, const std::string& variable) {
    JobObject object = ended_job({{"muster.dev/inputs", inputs}}, false).object();
    object.spec.pod.containers.emplace_back().env = {{variable, "$(MUSTER_INPUT)"}};
    const Job job(7, std::make_shared<JobObject>(object), ended_job({}, false).state());
    const std::string mail = notice_mail(job, {}, "head");
    const size_t at = mail.find("            ") + 12;
    return mail.substr(at, mail.find('\n', at) - at);
  };
  EXPECT_EQ(lost("10\n11\n12\n13\n14\n", "SLURM_ARRAY_TASK_ID"), "tasks 11,13,14");
  EXPECT_EQ(lost("muster inputs 1\n0 5-25:5\n", "SLURM_ARRAY_TASK_ID"), "tasks 10,20,25");
  EXPECT_EQ(lost("10\n11\n12\n13\n14\n", "OTHER"), "indexes 1,3,4") << "inputs of --each";
  EXPECT_EQ(lost("10\n11\n", "SLURM_ARRAY_TASK_ID"), "indexes 1,3,4");
  EXPECT_EQ(lost("a\nb\nc\nd\ne\n", "SLURM_ARRAY_TASK_ID"), "indexes 1,3,4");
}

TEST(Notice, MailSaysWhatHasEndedAndHow) {
  const Job job = ended_job({{"muster.dev/mail", "ada@example.org,bob"}}, false);
  const std::string mail =
      notice_mail(job, notice_wishes(job.object().meta.annotations), "head.example.org");
  EXPECT_EQ(mail,
            "To: ada@example.org, bob\n"
            "Subject: muster: job fit failed\n"
            "Message-ID: <2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b.end@head.example.org>\n"
            "Auto-Submitted: auto-generated\n"
            "MIME-Version: 1.0\n"
            "Content-Type: text/plain; charset=utf-8\n"
            "Content-Transfer-Encoding: 8bit\n"
            "\n"
            "Job fit (namespace default) has failed.\n"
            "\n"
            "Reason:     FailedIndexes: Job has failed indexes\n"
            "Succeeded:  2 of 5\n"
            "Failed:     3\n"
            "            indexes 1,3,4\n"
            "Started:    2023-11-14 22:13:20 UTC\n"
            "Ended:      2023-11-14 22:14:50 UTC, after 1m30s\n"
            "\n"
            "More: muster why job/fit -n default\n");
}

TEST(Notice, CancelledIndexesAreNotFailed) {
  Job job = ended_job({{"muster.dev/mail", "ada"}}, false);
  JobState state = job.state();
  state.cancelled_indexes = *IndexSet::parse_strict("3-4", 5);
  const Job some(7, job.object_ptr(), state);
  EXPECT_THAT(
      notice_mail(some, notice_wishes(job.object().meta.annotations), "h"),
      HasSubstr("Failed:     1\n            indexes 1\nCancelled:  2\n            indexes 3,4\n"));
  EXPECT_EQ(notice_variables(some).at("MUSTER_ENDED_FAILED"), "1");
}

TEST(Notice, LongSetsAreCutAtAnIndex) {
  Job job = ended_job({{"muster.dev/mail", "ada"}}, false);
  JobState state = job.state();
  state.failed_indexes = {};
  for (uint32_t index = 0; index < 2000; index += 2) state.failed_indexes.insert(index);
  const Job many(7, job.object_ptr(), state);
  const std::string mail = notice_mail(many, notice_wishes(job.object().meta.annotations), "h");
  EXPECT_THAT(mail, HasSubstr("indexes 0,2,4,"));
  EXPECT_THAT(mail, HasSubstr(",...\n"));
  EXPECT_THAT(mail, Not(HasSubstr("1998")));
}

TEST(Notice, TheCommandsJobHasANameThatFollowsFromTheJob) {
  JobMeta meta;
  meta.name = "fit";
  meta.uid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";
  EXPECT_EQ(notice_job_name(meta), "fit-end-2f6b7c1e");
  meta.name = std::string(49, 'a') + "-" + std::string(13, 'b');
  const std::string name = notice_job_name(meta);
  EXPECT_EQ(name, std::string(49, 'a') + "-end-2f6b7c1e");
}

}  // namespace
}  // namespace muster::core
