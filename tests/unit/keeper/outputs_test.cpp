#include "keeper/outputs.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
  }
  ~OutputsTest() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  // A process that writes `text` and exits.
  void run(const std::string& name, const std::string& text) {
    write(name, text);
    outputs_.close(path(name));
  }
  void write(const std::string& name, const std::string& text) {
    int fd = outputs_.open(path(name));
    ASSERT_GE(fd, 0) << name;
    ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  bool exists(const std::string& name) const { return access(path(name).c_str(), F_OK) == 0; }
  ino_t inode(const std::string& name) const {
    struct stat info {};
    return stat(path(name).c_str(), &info) == 0 ? info.st_ino : 0;
  }
  std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string dir_;
  Outputs outputs_;
};

TEST_F(OutputsTest, AnEmptyFileBecomesTheNextOnes) {
  run("a", "");
  ino_t number = inode("a");
  ASSERT_NE(number, 0u);
  run("b", "told\n");
  EXPECT_FALSE(exists("a"));
  EXPECT_EQ(inode("b"), number);
  run("c", "");
  EXPECT_EQ(text("b"), "told\n") << "what was told stays";
  EXPECT_NE(inode("c"), number);
}

TEST_F(OutputsTest, NoFileIsReplaced) {
  run("restarted", "once\n");
  run("a", "");
  run("restarted", "twice\n");
  EXPECT_EQ(text("restarted"), "once\ntwice\n");
  EXPECT_TRUE(exists("a")) << "it is still spare";
  run("b", "b");
  EXPECT_FALSE(exists("a"));
}

TEST_F(OutputsTest, ASpareThatIsOpenedByItsNameIsNotGivenAway) {
  run("a", "");
  write("a", "");
  write("b", "b");
  write("a", "a");
  EXPECT_EQ(text("a"), "a");
  EXPECT_EQ(text("b"), "b");
}

TEST_F(OutputsTest, AFileOfTwoIsSpareAfterBoth) {
  write("a", "");
  write("a", "");
  outputs_.close(path("a"));
  run("b", "b");
  EXPECT_TRUE(exists("a"));
  outputs_.close(path("a"));
  run("c", "c");
  EXPECT_FALSE(exists("a"));
}

TEST_F(OutputsTest, WhatNobodyNeedsIsRemoved) {
  run("a", "");
  outputs_.trim();
  EXPECT_TRUE(exists("a")) << "files were opened a moment ago";
  outputs_.trim();
  EXPECT_FALSE(exists("a"));
  write("b", "");
  run("c", "");
  outputs_.remove_spares();
  EXPECT_FALSE(exists("c"));
  EXPECT_TRUE(exists("b")) << "a process has it";
}

TEST_F(OutputsTest, ASpareThatIsGoneIsNoHarm) {
  run("a", "");
  unlink(path("a").c_str());
  run("b", "b");
  EXPECT_EQ(text("b"), "b");
}

TEST_F(OutputsTest, ThreadsOpenWhatAnotherCloses) {
  constexpr int kThreads = 3, kEach = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kEach; ++i) {
        std::string name = std::to_string(t) + "-" + std::to_string(i);
        run(name, i % 3 == 0 ? name : "");
        if (i % 50 == 0) outputs_.trim();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  outputs_.remove_spares();
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir_)) {
    EXPECT_EQ(text(file.path().filename()), file.path().filename().string());
    ++files;
  }
  EXPECT_EQ(files, size_t{kThreads} * kEach / 3);
}

TEST_F(OutputsTest, WhatCannotBeOpenedTellsWhy) {
  run("a", "");
  EXPECT_LT(outputs_.open(path("missing/b")), 0);
  EXPECT_EQ(errno, ENOENT);
  run("c", "c");
  EXPECT_FALSE(exists("a")) << "the spare was kept for one that can be opened";
}

}  // namespace
}  // namespace muster::keeper
