#include "agent/files/input_file.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

TEST(InputFile, IsReadAgainOnlyWhenItHasChanged) {
  const TempDir dir;
  const std::string path = dir / "list";
  std::ofstream(path) << "a\nb\n";
  InputFile file;
  const auto first = file.read(path);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ((*first)->row(1), core::Input{"b"});
  EXPECT_EQ(*file.read(path), *first);
  std::ofstream(dir / "next") << "a\nc\n";
  ASSERT_EQ(rename((dir / "next").c_str(), path.c_str()), 0);
  const auto second = file.read(path);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->row(1), core::Input{"c"});
  EXPECT_EQ((*first)->row(1), core::Input{"b"});  // pods may still be using it
}

TEST(InputFile, ErrorsNameTheFile) {
  const TempDir dir;
  const auto refusal = [](const std::string& path) {
    const auto read = InputFile().read(path);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refusal(dir / "none"), "inputs " + (dir / "none") + ": No such file or directory");
  EXPECT_THAT(refusal(dir.path()), HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(dir / "pipe"), HasSubstr("not a regular file"));
  std::ofstream(dir / "large") << "";
  ASSERT_EQ(truncate((dir / "large").c_str(), core::kInputFileMax + 1), 0);
  EXPECT_THAT(refusal(dir / "large"), HasSubstr("larger than 256 MiB"));
  std::ofstream(dir / "damaged") << "muster inputs 1\n2\nhalf";
  EXPECT_THAT(refusal(dir / "damaged"), HasSubstr("damaged"));
}

// Who may write to a directory on the way must not choose what file of ours a job reads.
TEST(InputFile, FollowsNoLinkOfAnotherUser) {
  const TempDir dir;
  ASSERT_EQ(mkdir((dir / "lists").c_str(), 0700), 0);
  std::ofstream(dir / "lists/a") << "a\nb\n";
  ASSERT_EQ(symlink("lists", (dir / "link").c_str()), 0);
  const auto followed = InputFile().read(dir / "link/a");
  ASSERT_TRUE(followed) << followed.error().message;
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  ASSERT_EQ(lchown((dir / "link").c_str(), 1234, 1234), 0);
  const auto refused = InputFile().read(dir / "link/a");
  ASSERT_FALSE(refused);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr("link is a symbolic link of uid 1234, and only those of root and of uid 0"));
}

}  // namespace
}  // namespace muster::agent
