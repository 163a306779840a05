// Who a node is, as its work-dir is opened again, copied, shared and damaged.
#include "agent/work_dir.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

TEST(WorkDir, KeepsIdNameAndWhatItWasTold) {
  TempDir temp;
  std::string id;
  {
    auto dir = WorkDir::open(temp / "a/b", "n1");
    ASSERT_TRUE(dir.ok());
    id = dir->id();
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(dir->cluster_id(), "");
    ASSERT_TRUE(dir->told("c1", {4, 99}).ok());
    dir->told_commit(1234);
    dir->told_commit(1000);
  }
  auto dir = WorkDir::open(temp / "a/b", "");
  ASSERT_TRUE(dir.ok());
  EXPECT_EQ(dir->id(), id);
  EXPECT_EQ(dir->node_name(), "n1");
  EXPECT_EQ(dir->cluster_id(), "c1");
  EXPECT_EQ(dir->term(), (core::node::Term{4, 99}));
  EXPECT_EQ(dir->commit(), 1234u);
  struct stat st {};
  ASSERT_EQ(stat((temp / "a/b").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST(P03NodeName, TheWorkDirKeepsASecretThatACopyDoesNotHave) {
  TempDir temp;
  std::string secret, id;
  {
    auto dir = WorkDir::open(temp / "one", "n1");
    ASSERT_TRUE(dir.ok());
    secret = dir->secret();
    id = dir->id();
    EXPECT_EQ(secret.size(), 64u);
    ASSERT_TRUE(dir->told("c1", {1, 2}, "key of c1").ok());
    ASSERT_TRUE(dir->told("c1", {2, 3}).ok());
  }
  struct stat st {};
  ASSERT_EQ(stat((temp / "one/identity").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  std::filesystem::copy(temp / "one", temp / "two");
  auto copy = WorkDir::open(temp / "two", "n2");
  ASSERT_TRUE(copy.ok());
  EXPECT_NE(copy->secret(), secret);
  EXPECT_EQ(copy->cluster_key(), "");
  {
    auto dir = WorkDir::open(temp / "one", "");
    ASSERT_TRUE(dir.ok());
    EXPECT_EQ(dir->secret(), secret);
    EXPECT_EQ(dir->cluster_key(), "key of c1");
    ASSERT_TRUE(dir->told("c2", {1, 1}).ok());
    EXPECT_EQ(dir->cluster_key(), "") << "another cluster's";
  }
  // One of an earlier version gets a secret and stays the same node.
  std::ifstream in(temp / "one/identity");
  std::string kept;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("secret ") && !line.starts_with("cluster-key ")) kept += line + "\n";
  std::ofstream(temp / "one/identity") << kept;
  std::string given;
  {
    auto dir = WorkDir::open(temp / "one", "");
    ASSERT_TRUE(dir.ok());
    EXPECT_EQ(dir->id(), id);
    given = dir->secret();
    EXPECT_EQ(given.size(), 64u);
  }
  EXPECT_EQ(WorkDir::open(temp / "one", "")->secret(), given);
}

TEST(WorkDir, RefusesAnotherName) {
  TempDir temp;
  ASSERT_TRUE(WorkDir::open(temp.path(), "n1").ok());
  auto other = WorkDir::open(temp.path(), "n2");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Errc::conflict);
  EXPECT_THAT(other.error().message, HasSubstr("belongs to node n1, not n2"));
  EXPECT_TRUE(WorkDir::open(temp.path(), "n1").ok());
}

TEST(WorkDir, OneAgentAtATime) {
  TempDir temp;
  auto first = WorkDir::open(temp.path(), "n1");
  ASSERT_TRUE(first.ok());
  auto second = WorkDir::open(temp.path(), "n1");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::conflict);
  EXPECT_THAT(second.error().message, HasSubstr(std::filesystem::canonical(temp.path()).string()));
}

TEST(WorkDir, ACopyIsAnotherNode) {
  TempDir temp;
  std::string id;
  {
    auto dir = WorkDir::open(temp / "one", "n1");
    ASSERT_TRUE(dir.ok());
    id = dir->id();
    ASSERT_TRUE(dir->told("c1", {4, 99}).ok());
  }
  std::filesystem::create_directory(temp / "one/keeper");
  std::ofstream(temp / "one/keeper/spool") << "ends of n1";
  std::filesystem::copy(temp / "one", temp / "two", std::filesystem::copy_options::recursive);
  auto copy = WorkDir::open(temp / "two", "n2");
  ASSERT_TRUE(copy.ok());
  EXPECT_NE(copy->id(), id);
  EXPECT_EQ(copy->node_name(), "n2");
  EXPECT_EQ(copy->cluster_id(), "");
  EXPECT_EQ(copy->term(), core::node::Term{});
  EXPECT_FALSE(std::filesystem::exists(temp / "two/keeper")) << "it speaks for n1's processes";
  auto original = WorkDir::open(temp / "one", "n1");
  ASSERT_TRUE(original.ok());
  EXPECT_EQ(original->id(), id);
}

TEST(WorkDir, ARenamedOneIsTheSameNode) {
  TempDir temp;
  std::string id = WorkDir::open(temp / "one", "n1")->id();
  std::filesystem::rename(temp / "one", temp / "two");
  EXPECT_EQ(WorkDir::open(temp / "two", "n1")->id(), id);
}

TEST(WorkDir, DamagedSpoolMakesANewId) {
  TempDir temp;
  auto dir = WorkDir::open(temp.path(), "n1");
  ASSERT_TRUE(dir.ok());
  std::string id = dir->id();
  std::filesystem::create_directory(temp / "keeper");
  ASSERT_TRUE(dir->renew_id().ok());
  EXPECT_NE(dir->id(), id);
  EXPECT_FALSE(std::filesystem::exists(temp / "keeper"));
  ASSERT_TRUE(dir->renew_id().ok()) << "there may be no keeper folder";
}

TEST(WorkDir, UnknownFormatIsRefused) {
  TempDir temp;
  std::ofstream(temp / "identity") << "muster-node 9\nid x\n";
  auto dir = WorkDir::open(temp.path(), "n1");
  ASSERT_FALSE(dir.ok());
  EXPECT_EQ(dir.error().code, Errc::invalid);
}

}  // namespace
}  // namespace muster::agent
