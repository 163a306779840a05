// Directories of pods: made, kept, measured and removed, whatever they contain.
#include "keeper/files/pod_dirs.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>

namespace muster::keeper {
namespace {

namespace fs = std::filesystem;
using core::node::Space;

class PodDirsTest : public testing::Test {
 protected:
  void SetUp() override {
    work_ = Fd(open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto opened = PodDirs::open(work_.get(), false);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    dirs_ = opened->release();  // never deleted: its thread keeps running
  }
  fs::path make(PodId pod) {
    Space space;
    space.dirs = {{"a", 0}, {"b", 0}};
    EXPECT_TRUE(dirs_->make(pod, space, getuid(), getgid()).ok());
    return fs::path(dirs_->path()) / core::node::pod_dir_name(pod);
  }
  bool empty_soon() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!fs::is_empty(dirs_->path()) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return fs::is_empty(dirs_->path());
  }

  agent::TempDir dir_;
  Fd work_;
  PodDirs* dirs_ = nullptr;
};

TEST_F(PodDirsTest, MakesThemOnceAndRemovesThem) {
  const fs::path one = make({1, 2, 3});
  std::ofstream(one / "a/file") << "x";
  make({1, 2, 3});
  EXPECT_TRUE(fs::exists(one / "a/file"));
  EXPECT_EQ(fs::status(one / "a").permissions(), fs::perms::owner_all);
  dirs_->release({1, 2, 3});
  EXPECT_FALSE(fs::exists(one));
  dirs_->release({1, 2, 4});  // has no directories
  EXPECT_TRUE(empty_soon());
}

TEST_F(PodDirsTest, RemovesAllButDirectoriesToKeep) {
  const fs::path one = make({1, 0, 0}), other = make({1, 1, 0});
  dirs_->keep({{1, 1, 0}});
  EXPECT_FALSE(fs::exists(one));
  EXPECT_TRUE(fs::exists(other / "b"));
  dirs_->keep({});
  EXPECT_TRUE(empty_soon());
}

TEST_F(PodDirsTest, MemoryDirectoriesAreMadeOnDemand) {
  const fs::path memory = dirs_->memory_path();
  if (memory.empty()) GTEST_SKIP() << "no tmpfs at /dev/shm";
  EXPECT_FALSE(fs::exists(memory));
  auto another = PodDirs::open(work_.get(), false);
  ASSERT_TRUE(another.ok());
  EXPECT_NE((*another)->memory_path(), memory) << "nobody can guess it";
  (*another).release();
  Space space;
  space.memory_dirs = {{"m", 10}};
  const PodId one{1, 0, 0}, other{1, 1, 0};
  for (const PodId pod : {one, other}) {
    ASSERT_TRUE(dirs_->make(pod, space, getuid(), getgid()).ok());
    EXPECT_EQ(fs::status(memory / core::node::pod_dir_name(pod) / "m").permissions(),
              fs::perms::owner_all);
  }
  dirs_->release(one);
  EXPECT_FALSE(fs::exists(memory / core::node::pod_dir_name(one)));
  EXPECT_TRUE(fs::exists(memory / core::node::pod_dir_name(other) / "m"));
  dirs_->keep({});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!fs::is_empty(memory) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(fs::is_empty(memory));
  auto next = PodDirs::open(work_.get(), false);  // of a keeper that follows one that was killed
  ASSERT_TRUE(next.ok());
  EXPECT_EQ((*next)->memory_path(), memory);
  (*next).release();
  dirs_->leave();
  EXPECT_FALSE(fs::exists(memory));
}

TEST_F(PodDirsTest, RemovesDeepAndUnreadableDirectories) {
  const fs::path one = make({1, 0, 0});
  Fd at(open((one / "a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 3000; ++depth) {  // longer than PATH_MAX
    ASSERT_EQ(mkdirat(at.get(), "directory", 0700), 0);
    at = Fd(openat(at.get(), "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  fs::create_directories(one / "b/closed/inner");
  chmod((one / "b/closed/inner").c_str(), 0);
  chmod((one / "b/closed").c_str(), 0);
  dirs_->release({1, 0, 0});
  EXPECT_TRUE(empty_soon());
}

// With pods of several users, as a root keeper has them.
class PodDirsOfUsers : public testing::Test {
 protected:
  static constexpr uid_t kAlice = 4001, kBob = 4002;
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
    fs::permissions(dir_.path(), fs::perms(0755));
    fs::create_directory(dir_ / "work");
    ASSERT_EQ(chown((dir_ / "work").c_str(), kBob, kBob), 0);  // the agent's
    work_ = Fd(open((dir_ / "work").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  Result<std::unique_ptr<PodDirs>> opened() { return PodDirs::open(work_.get(), true); }
  agent::TempDir dir_;
  Fd work_;
};

TEST_F(PodDirsOfUsers, P12RefusesParentThatAgentCouldRename) {
  auto dirs = opened();
  ASSERT_TRUE(dirs.ok()) << dirs.error().message;
  EXPECT_EQ((*dirs)->path(), dir_ / "work.scratch");
  (*dirs).release();
  // The agent could rename what is in a directory of its own.
  ASSERT_EQ(chown(dir_.path().c_str(), kBob, kBob), 0);
  auto unsafe = opened();
  ASSERT_FALSE(unsafe.ok());
  EXPECT_NE(unsafe.error().message.find("must be root's"), std::string::npos);
  ASSERT_EQ(chown(dir_.path().c_str(), 0, 0), 0);
}

TEST_F(PodDirsOfUsers, P12FilesThatUserMayNotRemoveStay) {
  auto opened_dirs = opened();
  ASSERT_TRUE(opened_dirs.ok());
  PodDirs& dirs = *opened_dirs->release();
  Space space;
  space.dirs = {{"v", 0}};
  const PodId pod{1, 0, 0};
  ASSERT_TRUE(dirs.make(pod, space, kAlice, kAlice).ok());
  const fs::path volume = fs::path(dirs.path()) / core::node::pod_dir_name(pod) / "v";
  // Alice's own files, and a directory of Bob's that she could move here from a group's directory.
  fs::create_directories(volume / "hers/deep");
  std::ofstream(volume / "hers/deep/file") << "x";
  for (const char* name : {"hers", "hers/deep", "hers/deep/file"})
    ASSERT_EQ(chown((volume / name).c_str(), kAlice, kAlice), 0);
  fs::permissions(volume / "hers", fs::perms(0));
  fs::create_directories(volume / "bobs");
  std::ofstream(volume / "bobs/diary") << "precious";
  for (const char* name : {"bobs", "bobs/diary"})
    ASSERT_EQ(chown((volume / name).c_str(), kBob, kBob), 0);
  dirs.release(pod);
  const fs::path left = fs::path(dirs.path()) / ".left-1/v";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!fs::exists(left) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::ifstream diary(left / "bobs/diary");
  std::string text;
  diary >> text;
  EXPECT_EQ(text, "precious");
  EXPECT_FALSE(fs::exists(left / "hers"));
}

TEST_F(PodDirsTest, FollowsNoLink) {
  const fs::path kept = fs::path(dir_.path()) / "kept";
  fs::create_directories(kept / "inner");
  std::ofstream(kept / "inner/file") << "x";
  chmod((kept / "inner").c_str(), 0750);
  const fs::path one = make({1, 0, 0});
  fs::create_directory_symlink(kept, one / "a/link");
  fs::create_directory_symlink(kept / "inner", one / "b/link");
  dirs_->release({1, 0, 0});
  EXPECT_TRUE(empty_soon());
  EXPECT_TRUE(fs::exists(kept / "inner/file"));
  EXPECT_EQ(fs::status(kept / "inner").permissions(), fs::perms(0750));
}

}  // namespace
}  // namespace muster::keeper
