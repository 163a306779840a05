// Files of --output: which pod writes which, and which cannot be written.
#include "client/follow/pod_files.hpp"

#include "client/follow/pod_output.hpp"
#include "client/terminal/json.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

class PodFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "pod-files-XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    dir_ = made;
  }
  void TearDown() override { fs::remove_all(dir_); }

  PodFiles files(const std::string& pattern) const {
    return PodFiles(*core::OutputPattern::parse(dir_ + "/" + pattern));
  }
  std::string text(const std::string& name) const {
    std::ifstream in(dir_ + "/" + name);
    if (!in) return "(none)";
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ + "/" + name) << content;
  }
  static core::OutputPod pod(int64_t index, int64_t attempt) {
    return {.job = "j",
            .pod = "j-" + std::to_string(index) + "-" + std::to_string(attempt),
            .node = "n1",
            .index = index,
            .attempt = attempt};
  }

  std::string dir_;
};

TEST_F(PodFilesTest, PodTruncatesItsFileAndDirectoriesAreCreated) {
  PodFiles f = files("a/%j/%i");
  ASSERT_TRUE(f.prepare("j", true, true).ok());
  EXPECT_TRUE(fs::is_directory(dir_ + "/a/j"));
  put("a/j/3", "of yesterday");
  put("a/j/4", "of yesterday");
  auto three = f.file_of(pod(3, 0), false), four = f.file_of(pod(4, 0), false);
  f.write(three, "one\n");
  f.write(three, "two\n");
  f.begin(four, true);  // it printed nothing
  EXPECT_EQ(text("a/j/3"), "one\ntwo\n");
  EXPECT_EQ(text("a/j/4"), "");
  EXPECT_EQ(f.failures(), 0u);
}

TEST_F(PodFilesTest, NewestAttemptOwnsTheFile) {
  PodFiles f = files("%i");
  auto first = f.file_of(pod(3, 0), false), second = f.file_of(pod(3, 1), false);
  f.write(first, "first\n");
  f.write(second, "second\n");
  f.write(first, "late\n");  // the first attempt is still terminating
  EXPECT_EQ(text("3"), "second\n");
  auto silent = f.file_of(pod(3, 0), false);
  f.begin(silent, true);
  EXPECT_EQ(text("3"), "second\n");
  auto third = f.file_of(pod(3, 2), false);
  f.begin(third, true);
  EXPECT_EQ(text("3"), "") << "the newest printed nothing";

  PodFiles each = files("%i.%a");
  auto a = each.file_of(pod(3, 0), false), b = each.file_of(pod(3, 1), false);
  each.write(a, "a");
  each.write(b, "b");
  each.write(a, "a");
  EXPECT_EQ(text("3.0") + text("3.1"), "aab");
}

TEST_F(PodFilesTest, CompleteFileIsNotRewritten) {
  put("3", "whole\n");
  PodFiles f = files("%i");
  auto file = f.file_of(pod(3, 1), false);
  EXPECT_FALSE(f.holds(file, 5));
  ASSERT_TRUE(f.holds(file, 6));
  f.keep(file);
  auto older = f.file_of(pod(3, 0), false);
  f.write(older, "older\n");
  EXPECT_EQ(text("3"), "whole\n");
  f.write(file, "more\n");
  EXPECT_EQ(text("3"), "whole\nmore\n");
}

TEST_F(PodFilesTest, MissingLogLeavesFileUnchanged) {
  put("3", "of an earlier run\n");
  PodFiles f = files("%i");
  auto file = f.file_of(pod(3, 0), false);
  f.begin(file, false);
  EXPECT_EQ(text("3"), "of an earlier run\n");
}

TEST_F(PodFilesTest, UnwritablePathIsRefusedBeforeStart) {
  put("file", "");
  const Status wrong = files("file/%i").prepare("j", true, true);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "--output: cannot write to " + dir_ + "/file: Not a directory");
  EXPECT_FALSE(files("all.out").prepare("j", true, true).ok());
  EXPECT_TRUE(files("all.out").prepare("j", true, false).ok());
}

TEST_F(PodFilesTest, AFailureIsReportedOnceAndEndsThisPodOnly) {
  PodFiles f = files("%i");
  fs::create_directory(dir_ + "/3");
  fs::create_directory(dir_ + "/4");
  auto three = f.file_of(pod(3, 0), false), four = f.file_of(pod(4, 0), false),
       five = f.file_of(pod(5, 0), false);
  testing::internal::CaptureStderr();
  f.write(three, "x\n");
  f.write(three, "x\n");
  f.write(four, "x\n");
  f.write(five, "x\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "muster: warning: cannot write " + dir_ + "/3: Is a directory; the log has the rest\n");
  EXPECT_EQ(f.failures(), 2u);
  EXPECT_EQ(text("5"), "x\n");
}

// The pipe has no reader, and a write does not wait for one.
TEST_F(PodFilesTest, APipeDoesNotBlock) {
  ASSERT_EQ(mkfifo((dir_ + "/3").c_str(), 0600), 0);
  PodFiles f = files("%i");
  auto file = f.file_of(pod(3, 0), false);
  testing::internal::CaptureStderr();
  f.write(file, "x\n");
  (void)testing::internal::GetCapturedStderr();
  EXPECT_EQ(f.failures(), 1u);
}

TEST_F(PodFilesTest, LinesOfStdoutAndStderrDoNotMix) {
  PodFiles f = files("%i");
  auto file = f.file_of(pod(3, 0), false);
  Printer printer;
  printer.set_files(&f);
  Printer::Stream out{.file = &file}, err{.err = true, .file = &file};
  printer.take(out, "out 1\nhal");
  printer.take(err, "err 1\nno line break");
  printer.take(out, "f\n");
  printer.finish(out);
  printer.finish(err);
  EXPECT_EQ(text("3"), "out 1\nerr 1\nhalf\nno line break");
}

TEST(Turns, AnIndexIsShownOnceAllBeforeItHaveSettled) {
  const Json job = read_json(R"({"spec":{"completions":6}})");
  Turns turns(job);
  EXPECT_EQ(turns.now(), 0u);
  std::string closed;
  const auto advance = [&](const char* status, bool over = false) {
    closed.clear();
    turns.advance(read_json(status), over,
                  [&](uint32_t index) { closed += std::to_string(index) + " "; });
    return closed;
  };
  EXPECT_EQ(advance(R"({"status":{"completedIndexes":"1-3"}})"), "");
  EXPECT_EQ(advance(R"({"status":{"completedIndexes":"1-3","failedIndexes":"0"}})"), "0 1 2 3 ");
  EXPECT_EQ(turns.now(), 4u);
  EXPECT_EQ(advance(R"({"status":{"completedIndexes":"1-3","failedIndexes":"0"}})", true), "4 5 ");
  EXPECT_EQ(advance(R"({})", true), "");
}

TEST(Turns, RetryRoundWaitsOnlyForItsIndexes) {
  Turns turns(read_json(
      R"({"metadata":{"annotations":{"muster.dev/indexes":"3,7"}},"spec":{"completions":10}})"));
  EXPECT_EQ(turns.now(), 3u);
  turns.advance(read_json(R"({"status":{"completedIndexes":"3"}})"), false, [](uint32_t) {});
  EXPECT_EQ(turns.now(), 7u);
}

}  // namespace
}  // namespace muster::cli
