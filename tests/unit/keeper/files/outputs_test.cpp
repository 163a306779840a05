#include "keeper/files/outputs.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace muster::keeper {
namespace {

class OutputsTest : public testing::Test {
 protected:
  OutputsTest() {
    std::string pattern = testing::TempDir() + "outputs-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    std::filesystem::create_directory(path("keeper"));
    dir_fd_ = ::open(path("keeper").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    outputs_.emplace(dir_fd_);
  }
  ~OutputsTest() override {
    ::close(dir_fd_);
    std::filesystem::remove_all(dir_);
  }
  // The keeper dies, and a new one takes over.
  void restart() {
    outputs_.reset();
    outputs_.emplace(dir_fd_);
  }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  // A process that writes `text` and exits.
  void run(const std::string& name, const std::string& text, bool fresh = true) {
    write(name, text, fresh);
    outputs_->close(path(name));
  }
  void write(const std::string& name, const std::string& text, bool fresh = true) {
    const Outputs::Opened output = outputs_->open(path(name), fresh);
    ASSERT_GE(output.fd, 0) << name;
    ASSERT_EQ(::write(output.fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    if (!output.pooled) ::close(output.fd);
  }
  bool exists(const std::string& name) const { return access(path(name).c_str(), F_OK) == 0; }
  std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  size_t pooled() const {
    size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(path("keeper/outputs")))
      files += file.path().filename() == "names" ? 0 : 1;
    return files;
  }

  std::string dir_;
  int dir_fd_ = -1;
  std::optional<Outputs> outputs_;
};

TEST_F(OutputsTest, SilentProcessLeavesNoFile) {
  run("a", "");
  run("b", "");
  EXPECT_FALSE(exists("a"));
  EXPECT_EQ(pooled(), 1u) << "the second used the first one's";
  run("c", "told\n");
  EXPECT_EQ(text("c"), "told\n") << "a reported output has its name once the process is gone";
  EXPECT_EQ(pooled(), 0u);
}

TEST_F(OutputsTest, LongRunningProcessGetsNamedFile) {
  write("a", "first ");
  EXPECT_FALSE(exists("a"));
  outputs_->name(path("a"));
  EXPECT_EQ(text("a"), "first ");
  write("b", "");
  outputs_->name(path("b"));
  EXPECT_TRUE(exists("b"));
  outputs_->close(path("b"));
  EXPECT_FALSE(exists("b")) << "it has written nothing";
  EXPECT_EQ(pooled(), 1u);
  run("c", "c");
  EXPECT_EQ(text("c"), "c");
}

TEST_F(OutputsTest, OnlyAnEmptyFileWithoutANameIsReusedAtOnce) {
  write("empty", "");
  write("written", "told");
  write("named", "");
  outputs_->name(path("named"));
  write("shared", "");
  write("shared", "");
  std::vector<std::string> paths = {path("empty"), path("written"), path("named"), path("shared"),
                                    path("never opened")};
  outputs_->reuse(paths);
  EXPECT_EQ(paths, (std::vector<std::string>{path("written"), path("named"), path("shared"),
                                             path("never opened")}));
  const size_t before = pooled();
  write("next", "");
  EXPECT_EQ(pooled(), before) << "it uses the empty one's";
  for (const char* name : {"written", "named", "shared", "shared", "next", "empty"})
    outputs_->close(path(name));
  EXPECT_EQ(text("written"), "told");
  EXPECT_FALSE(exists("empty") || exists("named") || exists("shared") || exists("next"));
}

TEST_F(OutputsTest, NoFileIsReplaced) {
  run("restarted", "once\n");
  run("restarted", "twice\n", false);
  EXPECT_EQ(text("restarted"), "once\ntwice\n");
  write("restarted", "thrice\n");  // opened as new, although the file exists
  outputs_->name(path("restarted"));
  EXPECT_EQ(text("restarted"), "once\ntwice\n");
  outputs_->close(path("restarted"));
  EXPECT_EQ(text("restarted"), "once\ntwice\nthrice\n");
}

TEST_F(OutputsTest, SharedFileIsNamedOnceBothProcessesEnded) {
  write("a", "1");
  write("a", "2");
  outputs_->close(path("a"));
  EXPECT_FALSE(exists("a"));
  outputs_->close(path("a"));
  EXPECT_EQ(text("a"), "12");
}

TEST_F(OutputsTest, NextKeeperNamesOutputFilesOfDeadKeeper) {
  write("a", "from a");
  write("b", "");
  run("c", "");
  restart();
  EXPECT_EQ(text("a"), "from a");
  EXPECT_FALSE(exists("b") || exists("c"));
  EXPECT_EQ(pooled(), 0u);
  run("d", "d");
  EXPECT_EQ(text("d"), "d");
}

TEST_F(OutputsTest, AFileThatWasTamperedWithIsNotUsedAgain) {
  const Outputs::Opened output = outputs_->open(path("a"), true);
  ASSERT_TRUE(output.pooled);
  ASSERT_EQ(fchmod(output.fd, 0644), 0);
  outputs_->close(path("a"));
  EXPECT_EQ(pooled(), 0u);
  const Outputs::Opened next = outputs_->open(path("b"), true);
  fcntl(next.fd, F_SETFL, 0);
  outputs_->close(path("b"));
  const Outputs::Opened last = outputs_->open(path("c"), true);
  EXPECT_TRUE(fcntl(last.fd, F_GETFL) & O_APPEND) << "the flags are as they were";
  outputs_->close(path("c"));
}

TEST_F(OutputsTest, OutputIsDroppedWithItsDirectory) {
  std::filesystem::create_directory(path("logs"));
  write("logs/a", "a");
  std::filesystem::remove(path("logs"));
  outputs_->close(path("logs/a"));
  EXPECT_EQ(pooled(), 0u);
}

TEST_F(OutputsTest, TrimRemovesUnusedFiles) {
  run("a", "");
  outputs_->trim();
  EXPECT_EQ(pooled(), 1u) << "files were opened a moment ago";
  outputs_->trim();
  EXPECT_EQ(pooled(), 0u);
  write("b", "");
  outputs_->remove_spares();
  EXPECT_EQ(pooled(), 1u) << "a process has it";
}

TEST_F(OutputsTest, MissingPooledFileDoesNotAffectNextOutputs) {
  run("a", "");
  unlink(path("keeper/outputs/0").c_str());
  run("b", "b");  // its output is gone with the file
  run("c", "c");
  EXPECT_EQ(text("c"), "c");
}

TEST_F(OutputsTest, ThreadsOpenAndCloseConcurrently) {
  constexpr int kThreads = 3, kEach = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kEach; ++i) {
        std::string name = std::to_string(t) + "-" + std::to_string(i);
        run(name, i % 3 == 0 ? name : "");
        if (i % 50 == 0) outputs_->trim();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  outputs_->remove_spares();
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir_)) {
    if (file.path().filename() == "keeper") continue;
    EXPECT_EQ(text(file.path().filename()), file.path().filename().string());
    ++files;
  }
  EXPECT_EQ(files, size_t{kThreads} * kEach / 3);
}

TEST_F(OutputsTest, FailedOpenSetsErrno) {
  EXPECT_LT(outputs_->open(path("missing/b"), true).fd, 0);
  EXPECT_EQ(errno, ENOENT);
  run("c", "c");
  EXPECT_EQ(text("c"), "c");
}

}  // namespace
}  // namespace muster::keeper
