// A node's identity when its work-dir is reopened, copied, shared or damaged.
#include "agent/files/work_dir.hpp"

#include "tests/unit/agent/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::agent {
namespace {

using testing::HasSubstr;

TEST(WorkDir, KeepsIdNameClusterTermAndCommit) {
  TempDir temp;
  std::string id;
  {
    auto dir = WorkDir::open(temp / "a/b", "n1");
    ASSERT_TRUE(dir.ok());
    id = dir->id();
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(dir->cluster_id(), "");
    ASSERT_TRUE(dir->learn("c1", {4, 99}).ok());
    dir->learn_commit(1234);
    dir->learn_commit(1000);
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
    ASSERT_TRUE(dir->learn("c1", {1, 2}, "key of c1").ok());
    ASSERT_TRUE(dir->learn("c1", {2, 3}).ok());
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
    ASSERT_TRUE(dir->learn("c2", {1, 1}).ok());
    EXPECT_EQ(dir->cluster_key(), "") << "another cluster's";
  }
  // A work-dir from an earlier version gets a secret and stays the same node.
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

TEST(P02WorkDir, KeepsLatestSealedHistory) {
  TempDir temp;
  const std::string one(64, '1'), two(64, '2'), three(64, '3'), four(64, '4');
  const auto kept = [&] {
    const SealedHistory sealed = WorkDir::open(temp / "one", "n1")->sealed();
    return std::to_string(sealed.term.epoch) + " " + std::to_string(sealed.term.nonce) + " " +
           std::to_string(sealed.commit) + " " + sealed.seal.substr(0, 1);
  };
  const auto with = [&](const auto& change) {
    auto dir = WorkDir::open(temp / "one", "n1");
    ASSERT_TRUE(dir.ok());
    change(*dir);
  };
  with([&](WorkDir& dir) { ASSERT_TRUE(dir.learn("c1", {1, 2}, "", 10, one).ok()); });
  EXPECT_EQ(kept(), "1 2 10 1") << "as durable as the term";
  with([&](WorkDir& dir) {
    dir.learn_commit(12, two);
    dir.learn_commit(11, three);
    ASSERT_TRUE(dir.learn("c1", {1, 2}, "", 12, three).ok());
  });
  EXPECT_EQ(kept(), "1 2 12 2");
  with([&](WorkDir& dir) { ASSERT_TRUE(dir.learn("c1", {2, 3}, "", 13, three).ok()); });
  EXPECT_EQ(kept(), "2 3 13 3") << "the file with the commit still has the one of the old term";
  with([&](WorkDir& dir) { dir.learn_commit(14); });
  EXPECT_EQ(kept(), "2 3 13 3") << "a coordinator without seals";
  with([&](WorkDir& dir) { dir.learn_commit(15, four); });
  EXPECT_EQ(kept(), "2 3 15 4");
  std::ofstream(temp / "one/commit") << "00000000000000000016\n9 9 9 " << std::string(64, 'x');
  EXPECT_EQ(kept(), "2 3 13 3") << "that is no seal";
  with([&](WorkDir& dir) { ASSERT_TRUE(dir.learn("c2", {1, 1}).ok()); });
  std::filesystem::remove(temp / "one/commit");
  EXPECT_EQ(kept(), "0 0 0 ") << "another cluster's";
}

mode_t mode_of(const std::string& path) {
  struct stat st {};
  EXPECT_EQ(lstat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  return text;
}

TEST(P07WorkDir, FollowsNoLinkThatWasPutThere) {
  TempDir temp;
  for (const char* name : {"identity", "identity.new", "lock", "commit"}) {
    std::string dir = temp / std::string("of-") + name, victim = temp / "victim";
    std::filesystem::create_directory(dir);
    std::ofstream(victim) << "precious";
    std::filesystem::create_symlink(victim, dir + "/" + name);
    auto opened = WorkDir::open(dir, "n1");
    EXPECT_EQ(opened.ok(), std::string(name) == "identity.new") << name;
    EXPECT_EQ(text_of(victim), "precious") << name;
  }
  std::filesystem::create_directory(temp / "real");
  std::filesystem::create_directory_symlink(temp / "real", temp / "link");
  for (const char* path : {"link", "link/", "link//"}) {
    auto opened = WorkDir::open(temp / path, "n1");
    ASSERT_FALSE(opened.ok()) << path;
    EXPECT_THAT(opened.error().message, HasSubstr("is a symbolic link"));
  }
}

TEST(P07WorkDir, IsPrivateWhateverTheUmaskAndTheModeBefore) {
  TempDir temp;
  mode_t before = umask(0);
  std::filesystem::create_directory(temp / "one");
  ASSERT_EQ(chmod((temp / "one").c_str(), 0777), 0);
  std::ofstream(temp / "one/commit") << "1";
  {
    auto dir = WorkDir::open(temp / "one", "n1");
    ASSERT_TRUE(dir.ok()) << dir.error().message;
    ASSERT_TRUE(dir->learn("c1", {1, 2}).ok());
    dir->learn_commit(5);
  }
  umask(before);
  EXPECT_EQ(mode_of(temp / "one"), 0700u);
  for (const auto& file : std::filesystem::directory_iterator(temp / "one"))
    EXPECT_EQ(mode_of(file.path().string()), 0600u) << file.path();
}

TEST(P07WorkDir, WithFilesOfAnotherOwnerIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  TempDir temp;
  constexpr uid_t kNobody = 65534;
  std::filesystem::create_directory(temp / "one");
  ASSERT_EQ(chown((temp / "one").c_str(), kNobody, kNobody), 0);
  auto theirs = WorkDir::open(temp / "one", "n1");
  ASSERT_FALSE(theirs.ok());
  EXPECT_THAT(theirs.error().message, HasSubstr("belongs to user 65534"));
  std::filesystem::create_directories(temp / "two/templates");
  ASSERT_EQ(chmod((temp / "two").c_str(), 0777), 0);
  ASSERT_EQ(chown((temp / "two/templates").c_str(), kNobody, kNobody), 0);
  auto open = WorkDir::open(temp / "two", "n1");
  ASSERT_FALSE(open.ok());
  EXPECT_THAT(open.error().message, HasSubstr("was accessible to other users, and "));
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

TEST(WorkDir, RefusesSecondAgent) {
  TempDir temp;
  auto first = WorkDir::open(temp.path(), "n1");
  ASSERT_TRUE(first.ok());
  auto second = WorkDir::open(temp.path(), "n1");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::conflict);
  EXPECT_THAT(second.error().message, HasSubstr(std::filesystem::canonical(temp.path()).string()));
}

TEST(WorkDir, P33RefusesSecondAgentThoughLockFileIsRemoved) {
  TempDir dir;
  auto first = WorkDir::open(dir / "w", "n1");
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(unlink((dir / "w/lock").c_str()), 0);
  auto second = WorkDir::open(dir / "w", "n1");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::conflict);
}

TEST(WorkDir, ACopyIsAnotherNode) {
  TempDir temp;
  std::string id;
  {
    auto dir = WorkDir::open(temp / "one", "n1");
    ASSERT_TRUE(dir.ok());
    id = dir->id();
    ASSERT_TRUE(dir->learn("c1", {4, 99}).ok());
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

TEST(WorkDir, RenewIdMakesNewIdAndRemovesKeeperFolder) {
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
