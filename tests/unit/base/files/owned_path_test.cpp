// Paths, and the users who could have put something there.
#include "base/files/owned_path.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {
namespace {

constexpr uid_t kSomebody = 65534;

TEST(OwnedPath, RejectsPathsThatOtherUsersCouldReplace) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  std::string dir = testing::TempDir() + "muster-path-XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  ASSERT_EQ(chmod(dir.c_str(), 0755), 0);
  const auto make = [&dir](const std::string& name, uid_t user, mode_t mode) {
    ASSERT_EQ(mkdir((dir + name).c_str(), 0700), 0);
    ASSERT_EQ(chown((dir + name).c_str(), user, user), 0);
    ASSERT_EQ(chmod((dir + name).c_str(), mode), 0);
  };
  make("/theirs", kSomebody, 0755);
  make("/theirs/sock", kSomebody, 0700);
  make("/shared", 0, 01777);
  make("/shared/theirs", kSomebody, 0755);
  make("/shared/theirs/sock", kSomebody, 0700);
  make("/shared/ours", 0, 0755);
  make("/shared/ours/sock", kSomebody, 0700);
  make("/open", kSomebody, 0777);
  make("/open/sock", kSomebody, 0700);
  make("/somebodys", 1234, 0755);
  make("/somebodys/sock", kSomebody, 0700);
  ASSERT_EQ(symlink((dir + "/theirs").c_str(), (dir + "/link").c_str()), 0);
  ASSERT_EQ(symlink((dir + "/theirs").c_str(), (dir + "/shared/link").c_str()), 0);
  ASSERT_EQ(lchown((dir + "/shared/link").c_str(), kSomebody, kSomebody), 0);
  ASSERT_EQ(symlink("loop", (dir + "/loop").c_str()), 0);
  struct {
    const char* path;
    bool safe;
  } const cases[] = {
      {"/theirs/sock", true},
      {"/shared/theirs/sock", false},
      {"/shared/ours/sock", true},
      {"/open/sock", false},
      {"/somebodys/sock", false},
      {"/link/sock", true},
      {"/shared/link/sock", false},
      {"/none/sock", false},
      {"/theirs/../theirs/sock", false},
      {"/loop/sock", false},
      {"/theirs/./sock", true},
  };
  for (const auto& one : cases) EXPECT_EQ(only_by(kSomebody, dir + one.path), one.safe) << one.path;
  EXPECT_FALSE(only_by(kSomebody, "relative/sock"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace muster
