// Output that grows beyond its maximum is cut, with a line that says so, and stays cut.
#include "keeper/files/output_limit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace muster::keeper {
namespace {

namespace fs = std::filesystem;

// What a cut at 100 bytes says.
constexpr const char* kLine =
    "\nmuster: this output is cut here, at 100 bytes (--output-max); what follows is lost\n";

class OutputLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/muster-limit-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    dir_ = path;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string file(const std::string& name) const { return dir_ + "/" + name; }
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::app) << text;
  }
  std::string text(const std::string& name) const {
    std::stringstream all;
    all << std::ifstream(file(name)).rdbuf();
    return all.str();
  }
  static int reopen(const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  }

  std::string dir_;
};

TEST_F(OutputLimitTest, P11CutsOutputAndMarksThePlace) {
  OutputLimit limit(100, AT_FDCWD, reopen);
  append("out", std::string(100, 'a'));
  append("err", "x");
  limit.add(1, {file("out"), file("err")});
  limit.look();
  EXPECT_EQ(text("out"), std::string(100, 'a')) << "the maximum is allowed";
  append("out", std::string(300, 'b'));
  limit.look();
  const std::string cut = std::string(100, 'a') + kLine;
  EXPECT_EQ(text("out"), cut);
  append("out", "more");
  limit.look();
  EXPECT_EQ(text("out"), cut) << "once is enough";
  EXPECT_EQ(text("err"), "x");
  limit.remove(1);
  append("out", "more");
  limit.look();
  EXPECT_EQ(text("out"), cut + "more") << "its process has ended";
}

TEST_F(OutputLimitTest, P11ChecksFilesInTurnsAndFollowsNoLink) {
  OutputLimit limit(10, AT_FDCWD, reopen);
  constexpr size_t kCount = OutputLimit::kLooks + 50;
  for (size_t i = 0; i < kCount; ++i) {
    append(std::to_string(i), std::string(20, 'x'));
    limit.add(i, {file(std::to_string(i))});
  }
  append("precious", std::string(20, 'x'));
  fs::create_symlink(file("precious"), file("link"));
  limit.add(kCount, {file("link"), file("missing")});
  limit.look();
  size_t cut = 0;
  for (size_t i = 0; i < kCount; ++i) cut += text(std::to_string(i))[10] == '\n';
  EXPECT_EQ(cut, OutputLimit::kLooks);
  limit.look();
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(text(std::to_string(i))[10], '\n') << i;
  EXPECT_EQ(text("precious"), std::string(20, 'x'));
}

TEST_F(OutputLimitTest, P11LineStaysWhenProcessKeepsWriting) {
  for (int round = 0; round < 20; ++round) {
    const std::string name = "out-" + std::to_string(round);
    append(name, std::string(200, 'x'));
    OutputLimit limit(100, AT_FDCWD, reopen);
    limit.add(1, {file(name)});
    std::atomic<bool> done = false;
    std::thread process([&] {
      std::ofstream out(file(name), std::ios::app);
      while (!done) out << "yyyyyyyyyy" << std::flush;
    });
    for (int looks = 0; looks < 50; ++looks) limit.look();
    done = true;
    process.join();
    limit.look();
    EXPECT_EQ(text(name), std::string(100, 'x') + kLine);
  }
}

TEST_F(OutputLimitTest, P11ZeroIsNoMaximum) {
  OutputLimit limit(0, AT_FDCWD, reopen);
  append("out", std::string(100, 'a'));
  limit.add(1, {file("out")});
  limit.look();
  EXPECT_EQ(text("out").size(), 100u);
}

}  // namespace
}  // namespace muster::keeper
