// Log files: reading by offset and by line, and retention.
#include "agent/files/logs.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/time.h>
#include <thread>

namespace muster::agent {
namespace {

constexpr Millis kNow = 2'000'000'000'000;
constexpr LogStore::Limits kNoLimits{kNow, ~0ull};

// A file of `size` bytes, last written `age_ms` before kNow.
void write_file(const std::string& path, size_t size, Millis age_ms) {
  std::ofstream(path) << std::string(size, 'x');
  Millis at = kNow - age_ms;
  timeval times[2] = {{at / 1000, 0}, {at / 1000, 0}};
  ASSERT_EQ(utimes(path.c_str(), times), 0);
}

bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

void sweep(LogStore& logs, LogStore::Limits limits) {
  for (int i = 0; i < 1000; ++i) {
    if (logs.sweep(limits, kNow, 2)) return;
  }
  FAIL() << "the sweep does not finish";
}

TEST(ReadLogFile, ReadsFromOffsetOrLastLines) {
  TempDir temp;
  std::string file = temp / "log";
  std::ofstream(file) << "one\ntwo\nthree\n";
  struct Row {
    int64_t offset;
    size_t limit;
    const char* data;
    int64_t at;
  };
  for (const Row& row : {Row{0, 100, "one\ntwo\nthree\n", 0},
                         {4, 3, "two", 4},
                         {14, 9, "", 14},
                         {99, 9, "", 99},
                         {-1, 100, "three\n", 8},
                         {-2, 100, "two\nthree\n", 4},
                         {-3, 100, "one\ntwo\nthree\n", 0},
                         {-9, 100, "one\ntwo\nthree\n", 0},
                         {-2, 4, "two\n", 4}}) {
    LogChunk chunk = read_log_file(file, row.offset, row.limit);
    EXPECT_TRUE(chunk.found);
    EXPECT_EQ(chunk.data, row.data) << row.offset;
    EXPECT_EQ(chunk.offset, row.at) << row.offset;
    EXPECT_EQ(chunk.size, 14u);
  }
  std::ofstream(file) << "one\ntwo";
  EXPECT_EQ(read_log_file(file, -1, 100).data, "two") << "a line that is not complete";
  EXPECT_FALSE(read_log_file(temp / "none", 0, 100).found);
}

TEST(ReadLogFile, ReadsLastLinesAcrossBlocks) {
  TempDir temp;
  std::string file = temp / "log", all, last;
  for (int i = 0; i < 40'000; ++i) {
    std::string line = "line " + std::to_string(i) + "\n";
    all += line;
    if (i >= 10'000) last += line;
  }
  std::ofstream(file) << all;
  LogChunk chunk = read_log_file(file, -30'000, 1 << 20);
  EXPECT_EQ(chunk.data, last);
  EXPECT_EQ(static_cast<size_t>(chunk.offset), all.size() - last.size());
}

// The keeper reuses an empty file by renaming it for another pod: a reader that has just opened it
// must not return the other pod's output.
TEST(ReadLogFile, ReturnsNothingOfPodThatReusesTheFile) {
  TempDir temp;
  std::string mine = temp / "mine", other = temp / "other";
  std::atomic<bool> done{false};
  std::thread keeper([&] {
    for (int i = 0; i < 3'000; ++i) {
      write_file(mine, 0, 0);
      std::filesystem::rename(mine, other);
      write_file(other, 5, 0);
      std::filesystem::remove(other);
    }
    done = true;
  });
  size_t foreign = 0;
  while (!done) foreign += read_log_file(mine, 0, 10).data.size();
  keeper.join();
  EXPECT_EQ(foreign, 0u);
}

TEST(LogStore, SweepRemovesEmptyFilesOfClosedPods) {
  TempDir temp;
  LogStore logs(temp / "logs");
  auto files = logs.open("u1", "p-1.x", "main");
  ASSERT_TRUE(files.ok());
  write_file(files->out, 0, 0);
  write_file(files->err, 3, 0);
  sweep(logs, kNoLimits);
  EXPECT_TRUE(exists(files->out)) << "it may still be written to";
  logs.close("u1", "p-1.x");
  sweep(logs, kNoLimits);
  EXPECT_FALSE(exists(files->out));
  EXPECT_TRUE(exists(files->err));
  LogChunk out = logs.read({"u1", "p-1.x", "main"}, 0, 10);
  EXPECT_TRUE(out.found) << "it was empty";
  EXPECT_EQ(out.size, 0u);
  EXPECT_EQ(logs.read({"u1", "p-1.x", "main", true}, 0, 10).data, "xxx");
  EXPECT_FALSE(logs.read({"u2", "p-1.x", "main"}, 0, 10).found);
}

TEST(LogStore, RefusesNamesThatLeaveItsFolder) {
  TempDir temp;
  std::filesystem::create_directories(temp / "logs/u1");
  std::ofstream(temp / "secret.main.stdout") << "s";
  LogStore logs(temp / "logs");
  EXPECT_FALSE(logs.read({"..", "secret", "main"}, 0, 10).found);
  EXPECT_FALSE(logs.read({"u1", "../../secret", "main"}, 0, 10).found);
  EXPECT_FALSE(logs.open("u1/..", "p", "main").ok());
}

TEST(LogStore, SweepRemovesOldFilesButNotOfRunningPods) {
  TempDir temp;
  LogStore logs(temp / "logs");
  auto old = logs.open("u1", "old", "main"), fresh = logs.open("u1", "fresh", "main"),
       running = logs.open("u2", "running", "main"), gone = logs.open("u3", "gone", "main");
  write_file(old->out, 5, 5000);
  write_file(fresh->out, 5, 3000);
  write_file(running->out, 5, 9000);
  write_file(gone->out, 5, 9000);
  for (const char* pod : {"old", "fresh"}) logs.close("u1", pod);
  logs.close("u3", "gone");
  sweep(logs, {4000, ~0ull});
  EXPECT_FALSE(exists(old->out));
  EXPECT_TRUE(exists(fresh->out));
  EXPECT_TRUE(exists(running->out));
  EXPECT_FALSE(exists(gone->out));
}

TEST(LogStore, SweepRemovesOldEmptyFolders) {
  TempDir temp;
  LogStore logs(temp / "logs");
  for (const char* job : {"u1", "u2"}) {
    ASSERT_TRUE(logs.open(job, "p", "main").ok());
    timeval times[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimes((temp / "logs/" + job).c_str(), times), 0);
  }
  logs.close("u1", "p");
  sweep(logs, {4000, ~0ull});
  EXPECT_FALSE(exists(temp / "logs/u1"));
  EXPECT_TRUE(exists(temp / "logs/u2")) << "a pod runs there";
  auto again = logs.open("u1", "q", "main");
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(exists(temp / "logs/u1"));
}

TEST(LogStore, SweepRemovesOldestFilesAboveMaximumSize) {
  TempDir temp;
  LogStore logs(temp / "logs");
  std::vector<std::string> files;
  for (int i = 0; i < 6; ++i) {
    std::string pod = "p" + std::to_string(i);
    auto paths = logs.open("u" + std::to_string(i % 2), pod, "main");
    files.push_back(paths->out);
    write_file(paths->out, 100, 10'000 - 1000 * i);
    if (i != 0) logs.close("u" + std::to_string(i % 2), pod);
  }
  sweep(logs, {kNoLimits.keep_ms, 350});
  EXPECT_TRUE(exists(files[0])) << "the oldest, yet it runs";
  EXPECT_FALSE(exists(files[1]));
  EXPECT_FALSE(exists(files[2]));
  EXPECT_FALSE(exists(files[3]));
  EXPECT_TRUE(exists(files[4]));
  EXPECT_TRUE(exists(files[5]));
  sweep(logs, {kNoLimits.keep_ms, 350});
  EXPECT_TRUE(exists(files[4])) << "a second pass has nothing to do";
}

}  // namespace
}  // namespace muster::agent
