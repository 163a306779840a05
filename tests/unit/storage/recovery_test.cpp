// Recovery: folding the journal gives the same jobs as before.
#include "storage/recovery.hpp"

#include "schema/journal.capnp.h"
#include "storage/codec/codec.hpp"
#include "storage/codec/codec_util.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/memory_journal.hpp"
#include "storage/rows/rows.hpp"
#include "storage/rows/summary_row.hpp"
#include "tests/unit/storage/now.hpp"

#include <gmock/gmock.h>

namespace muster::storage {
namespace {

using namespace core;
using testing::HasSubstr;

// Objects as text: "GENERATION PARALLELISM COMPLETIONS".
JobObjectPtr object_from(std::string_view json) {
  auto object = std::make_shared<JobObject>();
  int generation = 0, parallelism = 0, completions = 0;
  object->json = json;
  if (sscanf(object->json.c_str(), "%d %d %d", &generation, &parallelism, &completions) != 3)
    return nullptr;
  object->meta.generation = generation;
  object->meta.name = "test";
  object->spec.completion_mode = "Indexed";
  object->spec.parallelism = parallelism;
  object->spec.completions = completions;
  return object;
}

// A job that appends its records to the journal, as an actor does.
struct Writer {
  MemoryJournal& journal;
  Job job;
  uint64_t next_seq = 1;
  uint64_t first_tail = 1;

  Writer(MemoryJournal& to, JobId id, const std::string& json)
      : journal(to), job(id, object_from(json)) {
    append({JobAdmitted{kNow, job.object_ptr()}, JobStarted{kNow}});
  }
  void append(const std::vector<Record>& records) {
    for (const Record& record : records) job.apply(record);
    ASSERT_TRUE(journal.commit(job_rows(job.id(), next_seq++, records)).ok());
  }
  void snapshot() {
    ASSERT_TRUE(
        journal.commit(snapshot_rows(job.id(), job.state(), next_seq - 1, first_tail)).ok());
    first_tail = next_seq;
  }
};

void run_pods(Writer& to, uint32_t first, uint32_t count, Millis at_ms) {
  PodsCreated created{.at_ms = at_ms, .runs = {{.first = first, .count = count}}};
  PodsBound bound{.at_ms = at_ms + 1};
  PodsStarted started{.at_ms = at_ms + 2};
  PodsEnded ended{.at_ms = at_ms + 3};
  for (uint32_t i = first; i < first + count; ++i) {
    bound.bindings.push_back({{i, 0}, 1});
    started.starts.push_back({{i, 0}, 100 + static_cast<int32_t>(i), 0, at_ms + 2});
    if (i + 1 < first + count) {  // the last one keeps running
      ended.ends.push_back(
          {.pod = {i, 0}, .end = {.ended_at = at_ms + 3}, .counted = Counted::succeeded});
    }
  }
  to.append({created});
  to.append({bound, started});
  to.append({ended});
}

size_t rows_of(MemoryJournal& journal, std::string_view prefix) {
  size_t rows = 0;
  (void)journal.scan(prefix, [&rows](auto, auto) {
    ++rows;
    return true;
  });
  return rows;
}

struct Fixture : testing::Test {
  Fixture() {
    EXPECT_TRUE(
        journal.commit({cluster_row("c-1"), epoch_row(4, UINT64_MAX), next_job_row(100)}).ok());
  }
  MemoryJournal journal;
};
using RecoveryTest = Fixture;

TEST(Recovery, ANewJournalIsEmpty) {
  MemoryJournal journal;
  auto recovered = recover(journal, object_from);
  ASSERT_TRUE(recovered.ok());
  EXPECT_EQ(recovered->cluster_id, "");
  EXPECT_EQ(recovered->epoch, 0u);
  EXPECT_EQ(recovered->commit, 0u);
  EXPECT_TRUE(recovered->jobs.empty());
}

TEST_F(RecoveryTest, RestoresMetadataAndNodes) {
  NodeInfo a{.id = 1, .name = "a", .slots = 4}, b{.id = 300, .name = "b", .gone = true};
  ASSERT_TRUE(journal.commit({node_row(b), node_row(a)}).ok());
  auto recovered = recover(journal, object_from);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  EXPECT_EQ(recovered->cluster_id, "c-1");
  EXPECT_EQ(recovered->epoch, 4u);
  EXPECT_EQ(recovered->nonce, UINT64_MAX);
  EXPECT_EQ(recovered->next_job_id, 100u);
  EXPECT_EQ(recovered->commit, 2u);
  ASSERT_EQ(recovered->nodes.size(), 2u);
  EXPECT_TRUE(recovered->nodes[0] == a);
  EXPECT_TRUE(recovered->nodes[1] == b);
  EXPECT_EQ(recovered->uses, NotedUses{});
}

TEST_F(RecoveryTest, RestoresWhatUsersHaveHad) {
  for (const NotedUses& noted :
       {NotedUses{kNow, {{0, 0.25}, {4294967295, 1}}}, NotedUses{kNow, {}}}) {
    ASSERT_TRUE(journal.commit({uses_row(noted)}).ok());
    const auto recovered = recover(journal, object_from);
    ASSERT_TRUE(recovered.ok()) << recovered.error().message;
    EXPECT_EQ(recovered->uses, noted);
  }
  for (const char* row : {"", "x", "1 2", "1\n", "1\n2", "1\n2 x", "1\n-2 3", "1\n4294967296 1",
                          "1\n2 1000000001", "1\n2 3\n"})
    EXPECT_FALSE(read_uses(row)) << row;
}

TEST_F(RecoveryTest, AJobIsTheSameAfterEveryAppendWithAndWithoutSnapshots) {
  for (bool snapshots : {false, true}) {
    MemoryJournal disk = journal;
    Writer writer(disk, 5, "1 4 20");
    auto expect_same = [&disk, &writer] {
      auto recovered = recover(disk, object_from);
      ASSERT_TRUE(recovered.ok()) << recovered.error().message;
      ASSERT_EQ(recovered->jobs.size(), 1u);
      const RecoveredJob& back = recovered->jobs[0];
      EXPECT_TRUE(back.job.state() == writer.job.state());
      EXPECT_EQ(back.job.active(), writer.job.active());
      EXPECT_EQ(back.next_seq, writer.next_seq);
      EXPECT_EQ(back.next_seq - back.tail_rows, writer.first_tail);
    };
    for (uint32_t i = 0; i < 4; ++i) {
      run_pods(writer, i * 5, 5, kNow + 1000 * i);
      expect_same();
      if (snapshots) {
        writer.snapshot();
        EXPECT_EQ(rows_of(disk, keys::records_of(5)), 0u);
        expect_same();
      }
    }
    EXPECT_EQ(writer.job.succeeded(), 16u);
  }
}

TEST_F(RecoveryTest, ScaleDownIsReplayedFromAdmittedObject) {
  Writer writer(journal, 5, "1 4 20");
  run_pods(writer, 0, 6, kNow);
  JobSpecChanged changed{.at_ms = kNow + 10,
                         .generation = 2,
                         .parallelism = 2,
                         .completions = 3,
                         .object = object_from("2 2 3")};
  writer.append({changed});
  auto recovered = recover(journal, object_from);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  EXPECT_TRUE(recovered->jobs.at(0).job.state() == writer.job.state());
  EXPECT_EQ(recovered->jobs[0].job.state().completed.text(), "0-2");
  EXPECT_EQ(recovered->jobs[0].job.object().json, "2 2 3");
  EXPECT_GT(recovered->jobs[0].job.state().attempt_floor, 0u);
}

TEST_F(RecoveryTest, KeepsRecordsOfJobsApart) {
  Writer five(journal, 5, "1 4 20"), six(journal, 6, "1 1 2"), high(journal, 99, "3 1 1");
  run_pods(five, 0, 3, kNow);
  run_pods(six, 0, 2, kNow);
  five.snapshot();
  run_pods(five, 3, 3, kNow + 50);
  auto recovered = recover(journal, object_from);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  ASSERT_EQ(recovered->jobs.size(), 3u);
  EXPECT_TRUE(recovered->jobs[0].job.state() == five.job.state());
  EXPECT_TRUE(recovered->jobs[1].job.state() == six.job.state());
  EXPECT_TRUE(recovered->jobs[2].job.state() == high.job.state());
}

TEST_F(RecoveryTest, ForgottenJobLeavesNoRows) {
  Writer writer(journal, 5, "1 4 20"), other(journal, 6, "1 4 20");
  run_pods(writer, 0, 3, kNow);
  writer.snapshot();
  run_pods(writer, 3, 3, kNow + 50);
  ASSERT_TRUE(journal.commit(forget_rows(5, writer.next_seq - 1, writer.first_tail)).ok());
  auto recovered = recover(journal, object_from);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  ASSERT_EQ(recovered->jobs.size(), 1u);
  EXPECT_EQ(recovered->jobs[0].job.id(), 6u);
  EXPECT_EQ(rows_of(journal, keys::records_of(5)) + rows_of(journal, keys::snapshot(5)), 0u);
}

// The result of recovering a journal with these rows changed: "recovered", why a job is
// quarantined, or why recovery refuses to start.
struct DamageTest : Fixture {
  std::string after(const std::vector<Row>& rows) {
    MemoryJournal disk = journal;
    EXPECT_TRUE(disk.commit(rows).ok());
    auto recovered = recover(disk, object_from);
    if (!recovered.ok()) return "refused: " + recovered.error().message;
    if (recovered->damaged.empty()) return "recovered";
    EXPECT_EQ(recovered->damaged.size(), 1u);
    return "quarantined: " + recovered->damaged.front().why;
  }
};

TEST_F(DamageTest, AJobThatCantBeUnderstoodIsQuarantined) {
  Writer writer(journal, 5, "1 4 20");
  run_pods(writer, 0, 3, kNow);
  EXPECT_EQ(after({}), "recovered");
  EXPECT_EQ(after({{keys::records(5, 3), std::nullopt}}),
            "quarantined: journal: job j5, append 4: append 3 is missing");
  EXPECT_THAT(after({{keys::records(5, 3), "junk"}}),
              HasSubstr("quarantined: journal: job j5, append 3: records can't be read"));
  EXPECT_THAT(after({{keys::owner(5), std::nullopt}}),
              HasSubstr("quarantined: journal: job j5: it has rows but no owner's row"));
  EXPECT_THAT(after({{keys::owner(5), "junk"}}),
              HasSubstr("quarantined: journal: job j5: the owner's row can't be read"));
  EXPECT_THAT(after({{keys::owner(8), "1 1 1"}}),
              HasSubstr("quarantined: journal: job j8: an owner's row without records"));
  EXPECT_THAT(after({{keys::snapshot(5), "junk"}}),
              HasSubstr("quarantined: journal: job j5: a snapshot can't be read"));
}

TEST_F(DamageTest, DamagedClusterRowsAreRefused) {
  Writer writer(journal, 5, "1 4 20");
  EXPECT_THAT(after({{keys::node(3), "junk"}}),
              HasSubstr("refused: journal: node n3: a node can't be read"));
  EXPECT_THAT(after({{std::string(keys::kEpoch), "4"}}), HasSubstr("refused: journal: epoch"));
  EXPECT_THAT(after({{std::string(keys::kUses), "x"}}), HasSubstr("refused: journal: recent use"));
  EXPECT_THAT(after({{std::string(keys::kNextJob), "5"}}),
              HasSubstr("refused: journal: job j5: its id was never reserved"));
  std::string newer = encode_records({JobStarted{kNow}});
  ASSERT_EQ(newer[5], 1) << "where the packed version is";
  newer[5] = 2;
  EXPECT_THAT(after({{keys::records(5, 2), newer}}),
              HasSubstr("refused: journal: job j5, append 2: records of version 2"));
}

TEST_F(DamageTest, P14UnreadableBlocksQuarantineOnlyTheirJobs) {
  Writer five(journal, 5, "1 4 20"), six(journal, 6, "1 4 20"), seven(journal, 7, "1 4 20"),
      eight(journal, 8, "1 4 20"), nine(journal, 9, "1 4 20");
  for (Writer* writer : {&five, &six, &seven, &eight}) run_pods(*writer, 0, 3, kNow);
  seven.snapshot();
  journal.damage(keys::records(5, 3));
  journal.damage(keys::owner(6));
  journal.damage(keys::snapshot(7));
  auto recovered = recover(journal, object_from);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  std::vector<JobId> sound, damaged;
  for (const RecoveredJob& job : recovered->jobs) sound.push_back(job.job.id());
  for (const DamagedJob& job : recovered->damaged) damaged.push_back(job.id);
  EXPECT_EQ(sound, (std::vector<JobId>{8, 9}));
  EXPECT_TRUE(recovered->jobs[0].job.state() == eight.job.state());
  EXPECT_EQ(damaged, (std::vector<JobId>{5, 6, 7})) << "1-4 never existed and are not invented";
  EXPECT_THAT(recovered->damaged[0].why, HasSubstr("job j5, records: memory journal: a damaged"));
  EXPECT_TRUE(recovered->damaged[0].object);
  EXPECT_FALSE(recovered->damaged[1].object) << "what its owner wrote is lost";
  EXPECT_TRUE(recovered->damaged[2].object);
  EXPECT_EQ(recover_job(journal, 5, object_from).error().code, Errc::invalid);
  EXPECT_EQ(recover_job(journal, 4, object_from).error().code, Errc::not_found);
  EXPECT_TRUE(recover_job(journal, 8, object_from).ok());

  journal.damage(std::string(keys::kEpoch));
  EXPECT_THAT(recover(journal, object_from).error().message, HasSubstr("muster restore"));
}

// Unloaded jobs: 5 has a summary row, as its actor writes it; 6 is as an older version left it.
struct UnloadedTest : Fixture {
  UnloadedTest() : five(journal, 5, "1 4 1"), six(journal, 6, "1 4 1"), seven(journal, 7, "1 4 1") {
    for (Writer* writer : {&five, &six}) {
      writer->append({PodsCreated{kNow, {{.first = 0, .count = 1}}}});
      writer->append({PodsBound{kNow, {{{0, 0}, 1}}}});
      PodsEnded ended{.at_ms = kNow + 1};
      ended.ends.push_back({.pod = {0, 0}, .counted = Counted::succeeded});
      writer->append({ended,
                      FinishDecided{kNow + 2, true, ConditionReason::completions_reached, ""},
                      JobFinished{kNow + 3}});
      EXPECT_TRUE(writer->job.can_unload());
    }
    EXPECT_TRUE(journal.commit({summary_row(five.job)}).ok());
  }
  Result<Recovered> again() {
    loads = 0;
    unloaded.clear();
    auto counted = [this](std::string_view json) {
      ++loads;
      return object_from(json);
    };
    return recover(journal, counted,
                   [this](JobSummary job) { unloaded.push_back(std::move(job)); });
  }
  Writer five, six, seven;
  int loads = 0;
  std::vector<JobSummary> unloaded;
};

TEST_F(UnloadedTest, P17NoObjectOfAJobAtRestIsReadAtAStart) {
  auto recovered = again();
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  ASSERT_EQ(recovered->jobs.size(), 1u);
  EXPECT_EQ(recovered->jobs[0].job.id(), 7u);
  ASSERT_EQ(unloaded.size(), 2u);
  EXPECT_EQ(loads, 2) << "of six, which has no summary row, and of seven";
  ASSERT_EQ(recovered->summary_rows.size(), 1u);
  ASSERT_TRUE(journal.commit(recovered->summary_rows).ok());
  ASSERT_TRUE(again().ok());
  EXPECT_EQ(loads, 1) << "a summary row is made once";
  for (JobId id : {5u, 6u}) {
    const JobSummary& entry = unloaded.at(id - 5);
    EXPECT_EQ(entry.id, id);
    EXPECT_EQ(entry.name, "test");
    EXPECT_EQ(entry.finished_ms, kNow + 3);
    EXPECT_TRUE(entry.complete);
  }
}

TEST_F(UnloadedTest, P17BriefJobHasWhatListShows) {
  auto job = brief_job(journal, 5);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_TRUE(job->state() == brief(five.job.state()));
  EXPECT_EQ(job->object().json, "1 4 1");
  EXPECT_EQ(job->succeeded(), 1u);
  EXPECT_TRUE(job->condition(core::ConditionType::complete));
  EXPECT_EQ(brief_job(journal, 6).error().code, Errc::not_found);
}

// Users would not see their own jobs in lists.
TEST_F(UnloadedTest, SummaryRowWithoutTheOwnerIsRebuilt) {
  const Row row = summary_row(five.job);
  const auto old = codec::unpacked<wire::SummaryRow, std::string>(
      *row.value, "a row", wire::SUMMARY_VERSION, [](auto from) {
        capnp::MallocMessageBuilder message;
        message.setRoot(from);
        message.getRoot<wire::SummaryRow>().setOwnerKnown(false);
        return codec::packed(message);
      });
  ASSERT_TRUE(old.ok()) << old.error().message;
  ASSERT_TRUE(journal.commit({{row.key, *old}}).ok());
  auto recovered = again();
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  ASSERT_EQ(recovered->summary_rows.size(), 2u) << "of five and of six";
  EXPECT_TRUE(decode_summary(5, *recovered->summary_rows[0].value)->owner_known);
}

TEST_F(UnloadedTest, P17InvalidSummaryRowIsRebuilt) {
  ASSERT_TRUE(journal.commit({{keys::summary(5), "junk"}, {keys::summary(4), "junk"}}).ok());
  auto recovered = again();
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  EXPECT_EQ(unloaded.size(), 2u);
  EXPECT_EQ(recovered->summary_rows.size(), 2u);
  // An older version removed the job but left its summary row.
  ASSERT_TRUE(journal.commit(recovered->summary_rows).ok());
  ASSERT_TRUE(journal.commit({{keys::owner(5), std::nullopt}}).ok());
  for (uint64_t sequence = 1; sequence < five.next_seq; ++sequence)
    ASSERT_TRUE(journal.commit({{keys::records(5, sequence), std::nullopt}}).ok());
  recovered = again();
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  EXPECT_EQ(unloaded.size(), 1u);
  ASSERT_EQ(recovered->summary_rows.size(), 1u);
  EXPECT_FALSE(recovered->summary_rows[0].value);
}

TEST_F(UnloadedTest, P14DamageIsReportedOnlyOnRequest) {
  journal.damage(keys::owner(5));
  auto recovered = again();
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  EXPECT_TRUE(recovered->damaged.empty());
  EXPECT_EQ(unloaded.size(), 2u) << "its name stays known, and taken";
  EXPECT_EQ(recover_job(journal, 5, object_from).error().code, Errc::invalid);
  EXPECT_EQ(brief_job(journal, 5).error().code, Errc::invalid);
}

TEST(Keys, AreOrderedAndRoundTrip) {
  EXPECT_LT(keys::records(1, 255), keys::records(1, 256));
  EXPECT_LT(keys::records(255, UINT64_MAX), keys::records(256, 0));
  auto key = keys::parse_records(keys::records(77, 1u << 20));
  ASSERT_TRUE(key);
  EXPECT_EQ(key->job, 77u);
  EXPECT_EQ(key->sequence, 1u << 20);
  EXPECT_EQ(keys::parse_job(keys::kOwners, keys::owner(UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(keys::parse_job(keys::kOwners, keys::snapshot(1)), std::nullopt);
  EXPECT_EQ(keys::parse_node(keys::node(5)), 5u);
  EXPECT_FALSE(keys::parse_records(keys::records_of(5)));
  EXPECT_FALSE(keys::parse_node("n123"));
}

}  // namespace
}  // namespace muster::storage
