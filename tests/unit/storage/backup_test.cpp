// Backup, restore and verify: a restore has all that was written, and tampering is detected.
#include "storage/backup.hpp"

#include "core/job/fold/restored.hpp"
#include "storage/journal/keys.hpp"
#include "storage/journal/rocksdb_journal.hpp"
#include "storage/part_dir.hpp"
#include "storage/rows/attempts.hpp"
#include "storage/rows/rows.hpp"
#include "storage/takeover.hpp"
#include "storage/verify.hpp"
#include "tests/unit/storage/now.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::storage {
namespace {

using namespace core;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr JobId kJob = 5;

// An Indexed job; the text is its number of completions.
JobObjectPtr indexed_job(std::string_view json) {
  auto object = std::make_shared<JobObject>();
  object->json = json;
  object->meta.generation = 1;
  object->meta.ns = "default";
  object->meta.name = "test";
  object->spec.completion_mode = "Indexed";
  object->spec.parallelism = object->spec.completions = std::stoi(object->json);
  return object;
}

class P11Backup : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/muster-backup-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    top_ = path;
    auto opened = RocksdbJournal::open(top_ + "/data");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    journal_ = std::move(*opened);
    write({cluster_row("c-1"), epoch_row(4, 44), line_row({4, 44, 1}), next_job_row(6)});
  }
  void TearDown() override {
    journal_.reset();
    fs::remove_all(top_);
  }

  void write(const std::vector<Row>& rows) {
    auto status = journal_->commit(rows);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  // A job of 4 indexes: 0 has succeeded, 1 has failed and waits for a node again, 2 runs, 3 waits.
  void write_job() {
    Job job(kJob, indexed_job("4"));
    std::vector<Pod> closed;
    uint64_t sequence = 0;
    auto append = [&](const std::vector<Record>& records) {
      closed.clear();
      for (const Record& record : records) job.apply(record, nullptr, &closed);
      std::vector<Row> rows = job_rows(kJob, ++sequence, records);
      if (!closed.empty()) rows.push_back(attempts_row(kJob, sequence, kNow, closed));
      write(rows);
    };
    append({JobAdmitted{kNow, job.object_ptr()}, JobStarted{kNow}});
    append({PodsCreated{.at_ms = kNow, .runs = {{.first = 0, .count = 4}}}});
    append({PodsBound{kNow, {{{0, 0}, 1}, {{1, 0}, 1}, {{2, 0}, 1}}},
            PodsStarted{kNow, {{{0, 0}, 100}, {{1, 0}, 101}, {{2, 0}, 102}}}});
    append({PodsEnded{
                .at_ms = kNow,
                .ends = {{.pod = {0, 0}, .end = {.ended_at = kNow}, .counted = Counted::succeeded},
                         {.pod = {1, 0},
                          .end = {.exit_code = 1, .ended_at = kNow},
                          .counted = Counted::failed}}},
            PodsCreated{.at_ms = kNow, .runs = {{.first = 1, .attempt = 1, .failures = 1}}}});
  }
  std::string backed_up() {
    auto made = make_backup(*journal_, top_ + "/backup", top_ + "/data");
    EXPECT_TRUE(made.ok()) << made.error().message;
    return top_ + "/backup";
  }
  std::vector<std::string> mismatches() { return verify(*journal_, indexed_job).mismatches; }

  std::string top_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(P11Backup, IsCompletePrivateAndValid) {
  write_job();
  const uint64_t commit = journal_->last_commit();
  const std::string dir = backed_up();
  write({{"t1", "later"}});
  auto checked = check_backup(dir);
  ASSERT_TRUE(checked.ok()) << checked.error().message;
  EXPECT_EQ(checked->cluster_id, "c-1");
  EXPECT_EQ(checked->epoch, 4u);
  EXPECT_EQ(checked->commit, commit);
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    struct stat st {};
    ASSERT_EQ(stat(entry.path().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, entry.is_directory() ? 0700u : 0600u) << entry.path();
  }
  auto verified = verify_dir(dir, indexed_job);
  ASSERT_TRUE(verified.ok()) << verified.error().message;
  EXPECT_THAT(verified->mismatches, IsEmpty());
  EXPECT_EQ(verified->commit, commit);
  EXPECT_EQ(verified->jobs, 1u);
  EXPECT_EQ(verified->attempts, 2u);
  EXPECT_FALSE(fs::exists(dir + ".part"));
  auto again = make_backup(*journal_, dir, top_ + "/data");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::conflict);
}

// Another user who can move a directory on the way would get the keys in it.
TEST_F(P11Backup, P5RefusesPathThatOtherUsersMayReplace) {
  const auto refusal = [this](const std::string& dir) {
    const auto made = make_backup(*journal_, dir, top_ + "/data");
    EXPECT_FALSE(fs::exists(dir));
    EXPECT_FALSE(fs::exists(dir + ".part"));
    return made.ok() ? "made" : made.error().message;
  };
  fs::create_directory(top_ + "/shared");
  fs::permissions(top_ + "/shared", fs::perms::all);
  EXPECT_THAT(refusal(top_ + "/shared/b"), HasSubstr("another user may replace a directory"));
  fs::create_directories(top_ + "/shared/mine");
  EXPECT_THAT(refusal(top_ + "/shared/mine/b"), HasSubstr("another user may replace a directory"));
  fs::create_directory_symlink(top_ + "/shared", top_ + "/link");
  EXPECT_THAT(refusal(top_ + "/link/b"), HasSubstr("another user may replace a directory"));
  EXPECT_THAT(refusal(top_ + "/data/b"), HasSubstr("is in the data-dir"));
  EXPECT_THAT(refusal(top_ + "/data/db/../b"), HasSubstr("is in the data-dir"));
  EXPECT_THAT(refusal(top_ + "/none/b"), HasSubstr("can't use " + top_ + "/none: No such file"));
  if (geteuid() == 0) {
    fs::create_directory(top_ + "/theirs");
    ASSERT_EQ(chown((top_ + "/theirs").c_str(), 1, 1), 0);
    EXPECT_THAT(refusal(top_ + "/theirs/b"), HasSubstr("another user may replace a directory"));
  }
  EXPECT_TRUE(make_backup(*journal_, top_ + "/b/", top_ + "/data").ok());
}

TEST_F(P11Backup, P32PartOfKilledBackupIsRemoved) {
  const std::string dir = top_ + "/backup";
  if (const pid_t child = fork(); child == 0) {
    auto part = PartDir::make(dir, top_ + "/data");
    std::ofstream(part->path() + "/half");
    _exit(part.ok() ? 0 : 1);
  } else {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  ASSERT_TRUE(fs::exists(dir + ".part/half"));
  {
    const auto other = PartDir::make(top_ + "/other", top_ + "/data");
    ASSERT_TRUE(other.ok());
    EXPECT_FALSE(fs::exists(dir + ".part"));
    // One that is being made is left alone.
    remove_interrupted_backups(top_ + "/data");
    EXPECT_TRUE(fs::exists(other->path()));
    EXPECT_EQ(PartDir::make(top_ + "/other", top_ + "/data").error().code, Errc::conflict);
  }
  EXPECT_FALSE(fs::exists(top_ + "/other.part"));
  EXPECT_FALSE(fs::exists(top_ + "/data/backups-begun"));
}

// A copy has no watermark while it is made, which is no reason to warn of a damaged one.
TEST_F(P11Backup, P32RestoreOfValidBackupPrintsNoWarning) {
  write_job();
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const std::string dir = backed_up();
  EXPECT_TRUE(restore(dir, top_ + "/new", {kNow, 7}, indexed_job).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr() + testing::internal::GetCapturedStdout(), "");
}

TEST_F(P11Backup, P25RestoreMarksOriginalDataDirAsTakenOver) {
  write_job();
  ASSERT_TRUE(RocksdbJournal::note_cluster(top_ + "/data", "c-1").ok());
  const std::string dir = backed_up();
  EXPECT_EQ(restore(dir, top_ + "/trial", {kNow, 7}, indexed_job)->taken_over, "")
      << "a coordinator serves it";
  EXPECT_FALSE(refuses_taken_over(top_ + "/data"));
  journal_.reset();
  EXPECT_EQ(restore(dir, top_ + "/new", {kNow, 7}, indexed_job)->taken_over, top_ + "/data");
  const auto refused = refuses_taken_over(top_ + "/data");
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->message, HasSubstr("has been taken over by " + top_ + "/new, restored at"));
  EXPECT_THAT(refused->message, HasSubstr("remove " + top_ + "/data/taken-over"));
  EXPECT_FALSE(refuses_taken_over(top_ + "/new"));
  // A copy without a manifest is an origin itself.
  EXPECT_EQ(restore(top_ + "/new", top_ + "/newer", {kNow, 7}, indexed_job)->taken_over, "");
  ASSERT_TRUE(RocksdbJournal::note_cluster(top_ + "/new", "c-1").ok());
  EXPECT_EQ(restore(top_ + "/new", top_ + "/newest", {kNow, 7}, indexed_job)->taken_over,
            top_ + "/new");
}

TEST_F(P11Backup, P25OnlyTheSameClustersStateIsMarked) {
  ASSERT_TRUE(RocksdbJournal::note_cluster(top_ + "/data", "c-1").ok());
  journal_.reset();
  EXPECT_FALSE(mark_taken_over(top_ + "/data", "c-2", "x"));
  EXPECT_FALSE(mark_taken_over(top_ + "/none", "c-1", "x"));
  EXPECT_FALSE(refuses_taken_over(top_ + "/data"));
  std::ofstream(top_ + "/data/taken-over") << "the head c02\n";  // by hand
  EXPECT_THAT(refuses_taken_over(top_ + "/data")->message,
              HasSubstr("by the head c02: its cluster"));
}

TEST_F(P11Backup, CopiesADataDirWhetherOrNotAProcessHasItOpen) {
  write_job();
  const uint64_t commit = journal_->last_commit();
  for (const bool open : {true, false}) {
    const std::string dir = top_ + (open ? "/of-open" : "/of-closed");
    if (!open) journal_.reset();
    auto made = copy_backup(top_ + "/data", dir);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->commit, commit);
    EXPECT_TRUE(check_backup(dir).ok());
    EXPECT_THAT(verify_dir(dir, indexed_job)->mismatches, IsEmpty());
    auto restored = restore(dir, dir + "-restored", {kNow, 7}, indexed_job);
    ASSERT_TRUE(restored.ok()) << restored.error().message;
    EXPECT_EQ(restored->jobs, 1u);
  }
}

TEST_F(P11Backup, AFlippedByteIsFound) {
  write_job();
  const std::string dir = backed_up();
  fs::path table;
  for (const auto& entry : fs::directory_iterator(dir + "/db"))
    if (entry.path().extension() == ".sst") table = entry.path();
  ASSERT_FALSE(table.empty());
  fs::path copy = top_ + "/copy.sst";  // the backup hard-links the journal's files
  fs::copy_file(table, copy);
  std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(20);
  file.put('\x7f');
  file.close();
  fs::rename(copy, table);
  auto checked = check_backup(dir);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr(table.filename().string()));
  auto verified = verify_dir(dir, indexed_job);
  ASSERT_TRUE(verified.ok()) << verified.error().message;
  EXPECT_FALSE(verified->mismatches.empty());
  EXPECT_FALSE(restore(dir, top_ + "/new", {kNow, 7}, indexed_job).ok());
  EXPECT_FALSE(fs::exists(top_ + "/new"));
}

TEST_F(P11Backup, RestoreReusesNoIdOrCommit) {
  write_job();
  const uint64_t commit = journal_->last_commit();
  const std::string dir = backed_up();
  auto done = restore(dir, top_ + "/new", {kNow, 7}, indexed_job);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(done->checked);
  EXPECT_EQ(done->jobs, 1u);
  auto journal = RocksdbJournal::open_to_read(top_ + "/new");
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  auto recovered = recover(**journal, indexed_job);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  EXPECT_EQ(recovered->cluster_id, "c-1");
  EXPECT_GT(recovered->commit, commit + 1'000'000);
  EXPECT_GT(recovered->next_job_id, 1'000'000u);
  EXPECT_EQ(recovered->line.broken(), "");
  EXPECT_TRUE(recovered->line.last().restored);
  EXPECT_EQ(recovered->line.last().epoch, recovered->epoch);
  EXPECT_EQ(recovered->line.judge({4, 44, commit + 500}, recovered->commit),
            EpochLine::Standing::restored);

  ASSERT_EQ(recovered->jobs.size(), 1u);
  const Job& job = recovered->jobs[0].job;
  EXPECT_EQ(job.succeeded(), 1u);
  EXPECT_EQ(job.state().failed, 1u);
  const uint32_t base = restored_base(kNow);
  ASSERT_EQ(job.state().open.size(), 3u);
  EXPECT_TRUE(job.pod({2, 0})) << "it runs: its agent may have it";
  const Pod* again = job.pod({1, base});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->failures, 1) << "what its backoff is based on";
  EXPECT_TRUE(job.pod({3, base}));
  EXPECT_EQ(job.next_attempt(0), base);
  EXPECT_EQ(job.next_attempt(1), base + 1);
  EXPECT_EQ(job.next_attempt(2), base);
  EXPECT_THAT(verify(**journal, indexed_job).mismatches, IsEmpty());

  auto occupied = restore(dir, top_ + "/new", {kNow, 7}, indexed_job);
  ASSERT_FALSE(occupied.ok());
  EXPECT_EQ(occupied.error().code, Errc::conflict);
}

TEST_F(P11Backup, TwoRestoresOfOneBackupAreTwoHistories) {
  const std::string dir = backed_up();
  ASSERT_TRUE(restore(dir, top_ + "/a", {kNow, 7}, indexed_job).ok());
  ASSERT_TRUE(restore(dir, top_ + "/b", {kNow + 60'000, 8}, indexed_job).ok());
  auto a = RocksdbJournal::open_to_read(top_ + "/a"), b = RocksdbJournal::open_to_read(top_ + "/b");
  auto first = recover_head(**a), second = recover_head(**b);
  const EpochEntry last = first->line.last();
  EXPECT_EQ(second->line.judge({last.epoch + 5, 99, last.first_commit + 9}, second->commit),
            EpochLine::Standing::restored)
      << "the second restore is the deliberate one";
  const EpochEntry later = second->line.last();
  EXPECT_EQ(first->line.judge({later.epoch, later.nonce, later.first_commit}, first->commit),
            EpochLine::Standing::older);
}

TEST_F(P11Backup, VerifyCountsJobsAgainstTheirHistory) {
  write_job();
  EXPECT_THAT(mismatches(), IsEmpty());
  EXPECT_EQ(verify(*journal_, indexed_job).counted, 1u);
  // A lost count: the state has one failure fewer than the history.
  auto job = recover_job(*journal_, kJob, indexed_job);
  JobState state = job->job.state();
  state.failed = 0;
  write(snapshot_rows(kJob, state, job->next_seq - 1, 1));
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("its history has 1 failed attempts")));
  state.failed = 2;
  write(snapshot_rows(kJob, state, job->next_seq - 1, job->next_seq));
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("counts 2 failed pods")));
  state.failed = 1;
  state.completed = IndexSet{};
  write(snapshot_rows(kJob, state, job->next_seq - 1, job->next_seq));
  EXPECT_THAT(mismatches(),
              ElementsAre(HasSubstr("1 succeeded attempts belong to indexes that are not"),
                          HasSubstr("0 completed indexes")));
}

TEST_F(P11Backup, VerifyFindsStrayRows) {
  write_job();
  write({{keys::records(kJob, 9), "x"}});
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("append 9")));
  write({{keys::records(kJob, 9), std::nullopt}, line_row({9, 1, 0})});
  EXPECT_THAT(mismatches(), IsEmpty()) << "a line that another version left begins anew";
  write({line_row({9, 1, 0}), epoch_row(9, 1)});
  EXPECT_THAT(mismatches(), ElementsAre(HasSubstr("line of epochs")));
}

}  // namespace
}  // namespace muster::storage
