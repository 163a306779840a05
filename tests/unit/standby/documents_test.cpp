// What coordinators write about each other, and what they keep of the journal.
#include "standby/documents.hpp"

#include "standby/own_dir.hpp"
#include "standby/recent_batches.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::standby {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

core::standby::Configuration two() {
  core::standby::Configuration configuration{
      "c0ffee", 7, "a:1", {{"a:1", "s1"}, {"b:1", "s2"}}, {}};
  configuration.members["a:1"] = {"a:1",    "127.0.0.1:7117", "a:7443", "127.0.0.1:7118",
                                  "a:7444", "0.1.0"};
  configuration.members["b:1"].peers = "b:1";
  return configuration;
}

TEST(StandbyDocuments, ConfigurationIsReadAsItWasWritten) {
  const auto read = read_configuration(configuration_text(two()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, two());
}

TEST(StandbyDocuments, OtherTextsAreRefused) {
  for (const char* text :
       {"", "null", "[]", "{}", R"({"format":2,"term":1,"inSync":{},"members":{}})",
        R"({"format":1,"inSync":{},"members":{}})", R"({"format":1,"term":1,"members":{}})",
        R"({"format":1,"term":1,"inSync":{"a":1},"members":{}})", "/muster/configuration"}) {
    const auto read = read_configuration(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.error().message, HasSubstr("choose another one"));
  }
  EXPECT_FALSE(read_holder("{}").ok());
  EXPECT_EQ(*read_holder(holder_text({"a:1", "boot:1:2"})), (Holder{"a:1", "boot:1:2"}));
}

class StandbyDir : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/muster-standby-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    dir_ = path;
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string dir_;
};

TEST_F(StandbyDir, NoteIsKept) {
  auto none = read_note(dir_);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  OwnNote written{"c0ffee", "a:1", {"s2", "s1"}, {}};
  EXPECT_TRUE(written.learn(two()));
  EXPECT_FALSE(written.learn(two()));
  ASSERT_TRUE(write_note(dir_, written).ok());
  auto note = read_note(dir_);
  ASSERT_TRUE(note.ok() && note->has_value());
  EXPECT_EQ((*note)->cluster, "c0ffee");
  EXPECT_EQ((*note)->member, "a:1");
  EXPECT_THAT((*note)->seats, ElementsAre("s2", "s1"));
  EXPECT_THAT((*note)->peers, ElementsAre(std::pair("b:1", "b:1")));
}

TEST_F(StandbyDir, NoteOfAnEarlierVersionNamesNoPeers) {
  std::ofstream(dir_ + "/standby") << R"({"cluster":"c0ffee","member":"a:1","seats":["s1"]})";
  chmod((dir_ + "/standby").c_str(), 0600);
  const auto note = read_note(dir_);
  ASSERT_TRUE(note.ok() && note->has_value());
  EXPECT_TRUE((*note)->peers.empty());
}

TEST_F(StandbyDir, DamagedNoteIsNotGuessed) {
  std::ofstream(dir_ + "/standby") << "{";
  chmod((dir_ + "/standby").c_str(), 0600);
  const auto note = read_note(dir_);
  ASSERT_FALSE(note.ok());
  EXPECT_THAT(note.error().message, HasSubstr("is damaged"));
}

TEST_F(StandbyDir, ProcessIsThatOfTheDirectory) {
  fs::create_directory(dir_ + "/a");
  fs::copy(dir_ + "/a", dir_ + "/b");
  EXPECT_EQ(process_of(dir_ + "/a"), process_of(dir_ + "/a"));
  EXPECT_NE(process_of(dir_ + "/a"), process_of(dir_ + "/b"));
  EXPECT_EQ(process_of(dir_ + "/none"), "");
}

storage::Replication::Batch batch_of(size_t bytes) {
  return std::make_shared<const std::vector<storage::Row>>(
      std::vector<storage::Row>{{"k", std::string(bytes, 'x')}});
}

TEST(RecentBatchesTest, ReachesOnlyWhatItHasWithoutAGap) {
  RecentBatches recent;
  EXPECT_TRUE(recent.reaches(5, 5));  // nothing is lacking
  EXPECT_FALSE(recent.reaches(4, 5));
  for (uint64_t commit : {6, 7, 8}) recent.add(commit, batch_of(1));
  EXPECT_TRUE(recent.reaches(5, 8));
  EXPECT_TRUE(recent.reaches(7, 8));
  EXPECT_FALSE(recent.reaches(4, 8));
  EXPECT_FALSE(recent.reaches(5, 9));
  recent.add(20, batch_of(1));  // another sequence
  EXPECT_FALSE(recent.reaches(7, 20));
  EXPECT_TRUE(recent.reaches(19, 20));
}

TEST(RecentBatchesTest, OldestGoUnlessSomebodyCopies) {
  constexpr size_t kMost = RecentBatches::kBytesMax / 2;
  RecentBatches recent;
  recent.keep();
  for (uint64_t commit = 1; commit <= 4; ++commit) recent.add(commit, batch_of(kMost));
  EXPECT_TRUE(recent.reaches(0, 4));
  recent.release();
  recent.add(5, batch_of(kMost));
  EXPECT_FALSE(recent.reaches(0, 5));
  EXPECT_TRUE(recent.reaches(4, 5));
}

}  // namespace
}  // namespace muster::standby
