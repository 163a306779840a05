// Replacement: a database takes the place of another one as a whole or not at all.
#include "storage/replica/replacement.hpp"

#include "storage/journal/rocksdb_journal.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace muster::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ReplacementTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/muster-replacement-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    top_ = path;
    make(top_ + "/old", 3, "old");
    make(top_ + "/new", 1, "new");
  }
  void TearDown() override { fs::remove_all(top_); }

  static void make(const std::string& dir, int commits, const std::string& value) {
    auto journal = RocksdbJournal::open(dir);
    ASSERT_TRUE(journal.ok());
    for (int i = 0; i < commits; ++i) ASSERT_TRUE((*journal)->commit({{"a", value}}).ok());
  }
  void fetch(Replacement& replacement) const {
    for (const auto& entry : fs::directory_iterator(top_ + "/new/db")) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      ASSERT_TRUE(replacement.next_file(entry.path().filename().string()).ok());
      ASSERT_TRUE(replacement.write(bytes).ok());
    }
  }
  // The value and the commit that the data-dir has, once what was interrupted is finished.
  std::pair<std::string, uint64_t> found() const {
    EXPECT_TRUE(finish_replacement(top_ + "/old").ok());
    for (const char* left : {"/incoming", "/replaced", "/replacing"})
      EXPECT_FALSE(fs::exists(top_ + "/old" + left)) << left;
    auto journal = RocksdbJournal::open(top_ + "/old");
    if (!journal) return {journal.error().message, 0};
    const auto value = (*journal)->get("a");
    return {value.ok() ? value->value_or("(none)") : "(error)", (*journal)->last_commit()};
  }

  std::string top_;
};

TEST_F(ReplacementTest, NewDatabaseTakesThePlace) {
  auto replacement = Replacement::begin(top_ + "/old");
  ASSERT_TRUE(replacement.ok());
  fetch(*replacement);
  ASSERT_TRUE(replacement->finish().ok());
  // Its watermark is its own: the old one would say that commits are missing.
  EXPECT_EQ(found(), std::make_pair(std::string("new"), uint64_t{1}));
}

TEST_F(ReplacementTest, IncompleteOneChangesNothing) {
  {
    auto replacement = Replacement::begin(top_ + "/old");
    ASSERT_TRUE(replacement.ok());
    fetch(*replacement);
  }
  EXPECT_EQ(found(), std::make_pair(std::string("old"), uint64_t{3}));
}

TEST_F(ReplacementTest, DecidedOneIsFinishedWhereverItWasInterrupted) {
  for (int step = 0; step < 4; ++step) {
    TearDown();
    SetUp();
    {
      auto replacement = Replacement::begin(top_ + "/old");
      ASSERT_TRUE(replacement.ok());
      fetch(*replacement);
    }
    std::ofstream(top_ + "/old/replacing").close();
    if (step > 0) fs::remove(top_ + "/old/commit");
    if (step > 1) fs::rename(top_ + "/old/db", top_ + "/old/replaced");
    if (step > 2) fs::rename(top_ + "/old/incoming", top_ + "/old/db");
    EXPECT_EQ(found(), std::make_pair(std::string("new"), uint64_t{1})) << step;
  }
}

TEST_F(ReplacementTest, NamesStayInTheDirectory) {
  auto replacement = Replacement::begin(top_ + "/old");
  ASSERT_TRUE(replacement.ok());
  for (const char* name : {"", ".", "..", "../CURRENT", "a/b", "/etc/passwd"}) {
    const Status refused = replacement->next_file(name);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_THAT(refused.error().message, HasSubstr("a file with the name"));
  }
  const Status incomplete = replacement->finish();
  ASSERT_FALSE(incomplete.ok());
  EXPECT_THAT(incomplete.error().message, HasSubstr("without the file CURRENT"));
  EXPECT_EQ(found(), std::make_pair(std::string("old"), uint64_t{3}));
}

}  // namespace
}  // namespace muster::storage
