// RocksdbJournal: committed rows survive, and refusals are explicit.
#include "storage/journal/rocksdb_journal.hpp"

#include "storage/journal/keys.hpp"
#include "storage/journal/watermark.hpp"

#include <gmock/gmock.h>
#include <rocksdb/db.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace muster::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Calls `done` until it returns true; false: it did not within 20 seconds.
template <typename Done>
bool until(Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class RocksdbJournalTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/muster-journal-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    top_ = path;
    dir_ = top_ + "/data";
  }
  void TearDown() override { fs::remove_all(top_); }

  std::unique_ptr<Journal> open() {
    auto journal = RocksdbJournal::open(dir_);
    EXPECT_TRUE(journal.ok()) << (journal.ok() ? "" : journal.error().message);
    return journal.ok() ? std::move(*journal) : nullptr;
  }
  // The error message of open(), which must fail with this code.
  std::string refusal(Errc code) {
    auto journal = RocksdbJournal::open(dir_);
    if (journal.ok()) return "opened";
    EXPECT_EQ(journal.error().code, code);
    return journal.error().message;
  }
  void commit(Journal& journal, int from, int to) {
    for (int i = from; i < to; ++i) {
      auto status = journal.commit({{"t" + std::to_string(i), std::string(100, 'x')}});
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
  }
  // The database's newest non-empty log file.
  fs::path log_file() {
    fs::path newest;
    for (const auto& entry : fs::directory_iterator(dir_ + "/db")) {
      if (entry.path().extension() == ".log" && entry.file_size() > 0 && entry.path() > newest)
        newest = entry.path();
    }
    return newest;
  }

  std::string top_, dir_;
};

// What can be taken from under a journal: each within DIR.
class P29Gone : public RocksdbJournalTest, public testing::WithParamInterface<const char*> {};

TEST_P(P29Gone, JournalReportsMissingFileAndStopsAcknowledging) {
  std::mutex mutex;
  std::string said;
  auto opened = RocksdbJournal::open_to_read(dir_, [&](const std::string& why) {
    const std::lock_guard lock(mutex);
    said = why;
  });
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  auto journal = std::move(*opened);
  commit(*journal, 0, 3);
  const std::string name = GetParam();
  const fs::path gone = name == "log" ? log_file() : fs::path(dir_) / name;
  if (name == "commit")  // replaced by an equal one
    fs::copy_file(gone, top_ + "/copy");
  fs::remove_all(gone);
  if (name == "commit") {
    fs::rename(top_ + "/copy", gone);
    EXPECT_FALSE(journal->commit({{"t9", "x"}}).ok());
  }
  if (name.empty()) {
    EXPECT_FALSE(journal->commit({{"t9", "x"}}).ok());
  }
  EXPECT_TRUE(until([&] {
    const std::lock_guard lock(mutex);
    return !said.empty();
  }));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(said, HasSubstr(dir_));
  EXPECT_THAT(said, HasSubstr("while it was in use"));
}
INSTANTIATE_TEST_SUITE_P(Each, P29Gone, testing::Values("", "commit", "db", "db/CURRENT", "log"));

TEST_F(RocksdbJournalTest, P33RefusesSecondProcessThoughLockFileIsRemoved) {
  auto journal = open();
  fs::remove(dir_ + "/lock");
  EXPECT_THAT(refusal(Errc::conflict), HasSubstr("is in use by another process"));
}

TEST_F(RocksdbJournalTest, ReopenedJournalHasCommittedRows) {
  auto journal = open();
  EXPECT_EQ(journal->last_commit(), 0u);
  ASSERT_TRUE(journal->commit({{"tb", "2"}, {"ta", "1"}, {"u", "9"}}).ok());
  ASSERT_TRUE(journal->commit({{"tc", "3"}, {"tb", std::nullopt}}).ok());
  journal.reset();
  journal = open();
  EXPECT_EQ(journal->last_commit(), 2u);
  EXPECT_EQ(*journal->get("tb"), std::nullopt);
  EXPECT_EQ(*journal->get("u"), "9");
  std::string seen;
  Status read = journal->scan("t", [&seen](std::string_view key, std::string_view value) {
    seen += std::string(key) + "=" + std::string(value) + " ";
    return true;
  });
  EXPECT_TRUE(read.ok());
  EXPECT_EQ(seen, "ta=1 tc=3 ");
  EXPECT_EQ(Watermark::read(dir_ + "/commit"), 2u);
  struct stat s;
  ASSERT_EQ(stat(dir_.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
}

TEST_F(RocksdbJournalTest, SecondProcessIsRefusedWithPidOfHolder) {
  auto journal = open();
  std::string message = refusal(Errc::conflict);
  EXPECT_THAT(message, HasSubstr(dir_ + " is in use by another process (pid " +
                                 std::to_string(getpid()) + ")"));
  journal.reset();
  EXPECT_NE(open(), nullptr);
}

TEST_F(RocksdbJournalTest, GlanceReadsJournalThatIsInUse) {
  EXPECT_EQ(RocksdbJournal::glance(dir_).error().code, Errc::not_found);
  auto journal = open();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(journal->commit({{"ta", std::to_string(i)}}).ok());
    auto seen = RocksdbJournal::glance(dir_);
    ASSERT_TRUE(seen.ok()) << seen.error().message;
    EXPECT_EQ(seen->commit, static_cast<uint64_t>(i + 1));
    EXPECT_EQ(seen->acknowledged, seen->commit);
    EXPECT_EQ(seen->pid, static_cast<uint64_t>(getpid()));
    EXPECT_EQ(**seen->rows->get("ta"), std::to_string(i));
  }
  journal.reset();
  EXPECT_FALSE(RocksdbJournal::glance(dir_)->pid);
}

TEST_F(RocksdbJournalTest, AnotherFormatIsRefused) {
  ASSERT_TRUE(open()->commit({{std::string(keys::kFormat), "2"}}).ok());
  EXPECT_THAT(RocksdbJournal::glance(dir_).error().message, HasSubstr("written by a newer muster"));
  EXPECT_EQ(refusal(Errc::invalid),
            dir_ + ": written by a newer muster: format 2, this version supports 1");
}

TEST_F(RocksdbJournalTest, AForeignDatabaseIsRefused) {
  fs::create_directories(dir_ + "/db");
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, dir_ + "/db", &db).ok());
  ASSERT_TRUE(db->Put({}, "hello", "world").ok());
  delete db;
  EXPECT_THAT(refusal(Errc::invalid), HasSubstr("not a muster journal"));
}

TEST_F(RocksdbJournalTest, ARemovedLogIsNoticed) {
  commit(*open(), 0, 100);
  fs::remove(log_file());
  std::string message = refusal(Errc::invalid);
  EXPECT_THAT(message, HasSubstr(dir_));
  EXPECT_THAT(message, HasSubstr("commit 100 was acknowledged, only 0 could be recovered"));
  EXPECT_THAT(message, HasSubstr("muster restore"));
  EXPECT_EQ(refusal(Errc::invalid), message) << "the second try is as loud as the first";
}

TEST_F(RocksdbJournalTest, TruncatedLogIsDetectedAndLeftUnchanged) {
  commit(*open(), 0, 100);
  fs::path log = log_file();
  fs::resize_file(log, fs::file_size(log) / 2);
  auto size = fs::file_size(log);
  std::string message = refusal(Errc::invalid);
  EXPECT_THAT(message, HasSubstr("ACKNOWLEDGED DATA IS MISSING: commit 100 was acknowledged"));
  EXPECT_EQ(refusal(Errc::invalid), message);
  EXPECT_EQ(fs::file_size(log), size) << "evidence is kept";
}

TEST_F(RocksdbJournalTest, AFlippedByteInTheMiddleIsNoticed) {
  commit(*open(), 0, 100);
  fs::path log = log_file();
  std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
  auto middle = static_cast<std::streamoff>(fs::file_size(log) / 2);
  file.seekg(middle);
  char byte = static_cast<char>(file.get());
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 0x40));
  file.close();
  EXPECT_THAT(refusal(Errc::invalid), HasSubstr("ACKNOWLEDGED DATA IS MISSING"));
}

TEST_F(RocksdbJournalTest, AMissingDatabaseIsNoticed) {
  commit(*open(), 0, 3);
  fs::remove_all(dir_ + "/db");
  EXPECT_THAT(refusal(Errc::invalid),
              HasSubstr("commit 3 was acknowledged, only 0 could be recovered"));
}

TEST_F(RocksdbJournalTest, ATornWatermarkCountsAsAbsent) {
  commit(*open(), 0, 10);
  std::ofstream(dir_ + "/commit") << "commit 000000000000000000";
  EXPECT_EQ(Watermark::read(dir_ + "/commit"), std::nullopt);
  EXPECT_EQ(open()->last_commit(), 10u);
  EXPECT_EQ(Watermark::read(dir_ + "/commit"), 10u) << "written anew";
}

TEST_F(RocksdbJournalTest, AnUnacknowledgedCommitAboveTheWatermarkIsKept) {
  commit(*open(), 0, 10);
  auto watermark = Watermark::open(top_ + "/older");
  ASSERT_TRUE(watermark.ok());
  ASSERT_TRUE((*watermark)->note(9).ok());
  fs::copy_file(top_ + "/older", dir_ + "/commit", fs::copy_options::overwrite_existing);
  EXPECT_EQ(open()->last_commit(), 10u);
}

TEST_F(RocksdbJournalTest, ADirectoryThatCantBeMadeIsNamed) {
  std::ofstream(top_ + "/file") << "x";
  dir_ = top_ + "/file/data";
  EXPECT_THAT(refusal(Errc::unavailable), HasSubstr(dir_));
}

TEST(Watermark, ATornSlotLeavesTheNumberBefore) {
  std::string path = testing::TempDir() + "watermark-" + std::to_string(getpid());
  {
    auto watermark = Watermark::open(path);
    ASSERT_TRUE(watermark.ok());
    for (uint64_t i = 1; i <= 41; ++i) ASSERT_TRUE((*watermark)->note(i).ok());
  }
  EXPECT_EQ(Watermark::read(path), 41u);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(45 + 25);  // within slot 1, which holds 41
  file.put('7');
  file.close();
  EXPECT_EQ(Watermark::read(path), 40u);
  fs::remove(path);
  EXPECT_EQ(Watermark::read(path), std::nullopt);
}

TEST_F(RocksdbJournalTest, P14MissingDatabaseOfKnownClusterIsRefused) {
  ASSERT_TRUE(open()->commit({{"ta", "1"}}).ok());
  EXPECT_EQ(RocksdbJournal::noted_cluster(dir_), "");
  ASSERT_TRUE(RocksdbJournal::note_cluster(dir_, "c-1").ok());
  EXPECT_EQ(RocksdbJournal::noted_cluster(dir_), "c-1");
  EXPECT_NE(open(), nullptr);
  fs::remove_all(dir_ + "/db");
  fs::remove(dir_ + "/commit");
  std::string message = refusal(Errc::invalid);
  EXPECT_THAT(message, HasSubstr(dir_ + "/cluster-id says that this is the state of cluster c-1"));
  EXPECT_THAT(message, HasSubstr("muster restore"));
  EXPECT_EQ(refusal(Errc::invalid), message);
  EXPECT_FALSE(fs::exists(dir_ + "/db/CURRENT"));
}

// A database with all rows in one table, one data block of which is damaged.
class DamagedBlockTest : public RocksdbJournalTest {
 protected:
  // Brings the database into the state that it reaches after some time: no log, one table.
  void settle() {
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, dir_ + "/db", &db).ok());
    rocksdb::CompactRangeOptions all;
    all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    ASSERT_TRUE(db->Flush({}).ok());
    ASSERT_TRUE(db->CompactRange(all, nullptr, nullptr).ok());
    delete db;
  }
  // Flips a bit in the block that contains this text.
  void damage(const std::string& text) {
    for (const auto& entry : fs::directory_iterator(dir_ + "/db")) {
      if (entry.path().extension() != ".sst") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::string bytes(std::istreambuf_iterator<char>(in), {});
      const size_t at = bytes.find(text);
      if (at == std::string::npos) continue;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
      std::ofstream(entry.path(), std::ios::binary) << bytes;
      return;
    }
    FAIL() << text << " is in no table";
  }
  // Incompressible text.
  static std::string noise(int seed) {
    std::string text = "noise-" + std::to_string(seed) + "-";
    uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
    while (text.size() < 6'000) {
      state = state * 1664525u + 1013904223u;
      text += static_cast<char>(state >> 24);
    }
    return text;
  }
};

TEST_F(DamagedBlockTest, P14FailsOnlyReadsThatNeedIt) {
  auto journal = open();
  for (int i = 0; i < 9; ++i)
    ASSERT_TRUE(journal->commit({{"t" + std::to_string(i), noise(i)}}).ok());
  journal.reset();
  settle();
  damage("noise-4-");
  journal = open();
  ASSERT_TRUE(journal);
  EXPECT_EQ(**journal->get("t3"), noise(3));
  auto got = journal->get("t4");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Errc::invalid);
  EXPECT_THAT(got.error().message, HasSubstr("a block of the database is damaged"));
  std::string seen;
  auto visit = [&seen](std::string_view key, std::string_view) {
    seen += key;
    return true;
  };
  EXPECT_FALSE(journal->scan("t", visit).ok());
  EXPECT_EQ(seen, "t0t1t2t3");
  EXPECT_TRUE(journal->scan_from("t", "t5", visit).ok());
  EXPECT_EQ(seen, "t0t1t2t3t5t6t7t8");
  EXPECT_FALSE(journal->frozen()->get("t4").ok());
  EXPECT_TRUE(journal->commit({{"t9", "9"}}).ok()) << "the rest goes on";
}

TEST_F(DamagedBlockTest, P14AtTheFrontIsNotTakenForAForeignDatabase) {
  auto journal = open();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(journal->commit({{"a" + std::to_string(i), noise(i)}}).ok());
  journal.reset();
  settle();
  damage("noise-0-");
  EXPECT_NE(open(), nullptr);
}

TEST_F(DamagedBlockTest, P14DoesNotStopJournalDuringCompaction) {
  auto journal = open();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(journal->commit({{"t" + std::to_string(i), noise(i)}}).ok());
  journal.reset();
  settle();
  damage("noise-1-");
  // Each start flushes the log; from time to time RocksDB merges the tables.
  for (int i = 0; i < 12; ++i) {
    journal = open();
    ASSERT_TRUE(journal) << i;
    for (int k = 0; k < 3; ++k)
      ASSERT_TRUE(journal->commit({{"t" + std::to_string(k), noise(10 * i + k)}}).ok()) << i;
    journal.reset();
  }
}

}  // namespace
}  // namespace muster::storage
