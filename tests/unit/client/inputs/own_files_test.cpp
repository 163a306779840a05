// Own files: only what can be the output of the job's own pods is read.
#include "client/inputs/own_files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

class OwnFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "own-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    std::ofstream(dir_ + "/out") << "one\ntwo\nthree";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // The text of a file as output of pods of this user, or the error.
  std::string read(const std::string& name, std::optional<uid_t> owner = {},
                   std::optional<int64_t> lines = {}) const {
    Json job = {{"metadata", {{"name", "j"}, {"annotations", {{"muster.dev/stdout", "/x"}}}}}};
    if (owner) job["metadata"]["annotations"]["muster.dev/owner-uid"] = std::to_string(*owner);
    std::string text;
    const Status done =
        OwnFiles(job).read(dir_ + "/" + name, lines, [&text](std::string_view part) {
          text += part;
          return true;
        });
    if (done) return text;
    EXPECT_EQ(text, "");
    return done.error().message;
  }
  std::string refused(const std::string& name, const std::string& why) const {
    return "the output is in " + dir_ + "/" + name +
           " on its node, which cannot be read here: " + why;
  }

  std::string dir_;
};

TEST_F(OwnFilesTest, ReadsAllOrTheLastLines) {
  EXPECT_EQ(read("out"), "one\ntwo\nthree");
  EXPECT_EQ(read("out", geteuid()), "one\ntwo\nthree");
  EXPECT_EQ(read("out", {}, 2), "two\nthree\n");
  EXPECT_EQ(read("none"), refused("none", "No such file or directory"));
}

// Its directory may be writable by someone who wants the reader to see another file.
TEST_F(OwnFilesTest, RefusesWhatOthersCouldHavePutThere) {
  ASSERT_EQ(symlink("out", (dir_ + "/link").c_str()), 0);
  EXPECT_EQ(read("link"), refused("link", "it is a symbolic link, which is not followed"));
  ASSERT_EQ(mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(read("fifo"), refused("fifo", "it is not a regular file"));
  EXPECT_EQ(read(""), refused("", "it is not a regular file"));
  ASSERT_EQ(mkdir((dir_ + "/d").c_str(), 0700), 0);
  std::ofstream(dir_ + "/d/out") << "mine";
  ASSERT_EQ(symlink("d", (dir_ + "/way").c_str()), 0);
  EXPECT_EQ(read("way/out"), "mine");
  if (geteuid() == 0) {
    ASSERT_EQ(lchown((dir_ + "/way").c_str(), 1234, 1234), 0);
    EXPECT_NE(read("way/out").find("way is a symbolic link of "), std::string::npos);
  }
  const std::string text = read("out", geteuid() + 1);
  EXPECT_TRUE(text.starts_with(refused("out", "it belongs to "))) << text;
  EXPECT_NE(text.find(", but the pod's files to "), std::string::npos) << text;
}

}  // namespace
}  // namespace muster::cli
