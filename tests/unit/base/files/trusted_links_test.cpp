// Links on the way to a file, and those that are followed.
#include "base/files/trusted_links.hpp"

#include "base/fd.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {
namespace {

constexpr uid_t kStranger = 4321;

class TrustedLinks : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "muster-links-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = std::filesystem::canonical(pattern).string();
    for (const char* name : {"/a", "/a/b"}) ASSERT_EQ(mkdir((dir_ + name).c_str(), 0700), 0);
    Fd(open((dir_ + "/a/b/file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    // Links of root are always followed.
    if (geteuid() == 0) us_ = 1234;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void link(const std::string& target, const std::string& name) {
    ASSERT_EQ(symlink(target.c_str(), (dir_ + name).c_str()), 0);
    if (geteuid() != 0) return;
    ASSERT_EQ(lchown((dir_ + name).c_str(), us_, us_), 0);
  }
  // "ok", the link that was not followed, or the error.
  std::string opened(const std::string& name, uid_t user, int flags = O_RDONLY) {
    UntrustedLink untrusted;
    errno = 0;
    const Fd file(open_by_trusted_links((dir_ + name).c_str(), flags, 0600, user, untrusted));
    if (file) return "ok";
    if (*untrusted.path == '\0') return strerrorname_np(errno);
    EXPECT_EQ(errno, ELOOP);
    EXPECT_EQ(untrusted.owner, us_);
    return untrusted.path + dir_.size();
  }

  std::string dir_;
  uid_t us_ = geteuid();  // to whom the links belong
};

TEST_F(TrustedLinks, AreThoseOfRootAndTheUser) {
  link("a", "/direct");
  link(dir_ + "/a", "/absolute");
  link("../direct/./b/..//b", "/a/up");
  link("direct/up", "/twice");
  link("b/file", "/a/last");
  link("/proc", "/proc");
  for (const char* name :
       {"/a/b/file", "/direct/b/file", "/absolute/b/file", "/a/up/file", "/twice/file",
        "/twice//./../b/file", "/direct/last", "/direct", "/direct/", "/proc/self/status"})
    EXPECT_EQ(opened(name, us_), "ok") << name;
  EXPECT_EQ(opened("/a/b/file", kStranger), "ok") << "no link on the way";
  EXPECT_EQ(opened("/direct/b/file", kStranger), "/direct");
  EXPECT_EQ(opened("/absolute/b/file", kStranger), "/absolute");
  EXPECT_EQ(opened("/a/last", kStranger), "/a/last");
  EXPECT_EQ(opened("/a/up/file", kStranger), "/a/up");
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make links of root";
  ASSERT_EQ(lchown((dir_ + "/twice").c_str(), 0, 0), 0);
  EXPECT_EQ(opened("/twice/file", kStranger), "/direct") << "where root's leads to";
  ASSERT_EQ(lchown((dir_ + "/absolute").c_str(), 0, 0), 0);
  EXPECT_EQ(opened("/absolute/b/file", kStranger), "ok");
}

TEST_F(TrustedLinks, FailuresAreThoseOfOpen) {
  link("around", "/loop");
  link("loop", "/around");
  link("a/none", "/dangling");
  link("b/file", "/a/last");
  link("a", "/direct");
  const std::string name(NAME_MAX + 1, 'x'), path(PATH_MAX, '/');
  EXPECT_EQ(opened("/loop/file", us_), "ELOOP");
  EXPECT_EQ(opened("/dangling", us_), "ENOENT");
  EXPECT_EQ(opened("/direct/none/file", us_), "ENOENT");
  EXPECT_EQ(opened("/direct/b/file/x", us_), "ENOTDIR");
  EXPECT_EQ(opened("/direct/" + name, us_), "ENAMETOOLONG");
  EXPECT_EQ(opened("/direct/" + path, us_), "ENAMETOOLONG");
  EXPECT_EQ(opened("/direct/last", us_, O_WRONLY | O_NOFOLLOW), "ELOOP");
  EXPECT_EQ(opened("/direct", us_, O_RDONLY | O_NOFOLLOW), "ELOOP");
  EXPECT_EQ(opened("/direct/b", us_, O_WRONLY | O_CREAT), "EISDIR");
}

TEST_F(TrustedLinks, FilesAreMade) {
  link("a", "/direct");
  for (const int more : {0, O_NOFOLLOW}) {
    const std::string name = "/direct/new" + std::to_string(more);
    EXPECT_EQ(opened(name, kStranger, O_WRONLY | O_CREAT | more), "/direct");
    EXPECT_EQ(opened(name, us_, O_WRONLY | O_CREAT | more), "ok");
    EXPECT_EQ(opened(name, us_, O_WRONLY | O_CREAT | O_EXCL | more), "EEXIST");
  }
}

}  // namespace
}  // namespace muster
