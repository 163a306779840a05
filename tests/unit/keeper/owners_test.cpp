#include "keeper/owners.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

const PermitKey& key() {
  static const PermitKey one = *PermitKey::of_private(std::string(64, '7'));
  return one;
}

Permit allowed() {
  Permit permit{"c", "n1", 2'000, {1001, 100, "alice", {100}, "/home/alice"}, {}};
  permit.job.job = 7;
  permit.job.job_name = "j";
  permit.job.job_uid = "uid";
  permit.job.ns = "default";
  permit.job.indexed = true;
  auto& container = permit.job.containers.emplace_back();
  container.what.name = "main";
  container.what.command = {"echo", "$(MUSTER_NODE_NAME)", "$(JOB_COMPLETION_INDEX)"};
  return permit;
}

class OwnersTest : public ::testing::Test {
 protected:
  OwnersTest() {
    char pattern[] = "/tmp/muster-owners-XXXXXX";
    dir_ = mkdtemp(pattern);
    std::filesystem::create_directories(dir_ + "/logs/uid");
    work_fd_ = open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~OwnersTest() override {
    close(work_fd_);
    std::filesystem::remove_all(dir_);
  }
  Owners owners() const {
    return Owners({.agent_uid = 999,
                   .agent_gid = getgid(),
                   .key = key().public_hex(),
                   .node = "n1",
                   .work_fd = work_fd_});
  }
  std::string refusal(const Permit& permit) const {
    const std::string bytes = permit_bytes(permit);
    const auto accepted = owners().accept(bytes, key().sign(bytes));
    return accepted.ok() ? "" : accepted.error().message;
  }

  std::string dir_;
  int work_fd_ = -1;
};

TEST_F(OwnersTest, HonourSignedPermitsForThisNodeAndRealUsers) {
  EXPECT_EQ(refusal(allowed()), "");
  const std::string bytes = permit_bytes(allowed());
  EXPECT_EQ(owners().accept(bytes, std::string(64, 'x')).error().message,
            "the permit is not signed by this node's coordinator");
  Permit elsewhere = allowed();
  elsewhere.node = "n2";
  EXPECT_EQ(refusal(elsewhere), "the permit is for node n2, and this is n1");
  for (const uint32_t uid : {0u, 1u, 999u}) {
    Permit system = allowed();
    system.owner.uid = uid;
    EXPECT_NE(refusal(system).find("nothing runs as uid"), std::string::npos) << uid;
  }
  Permit wheel = allowed();
  wheel.owner.gid = 0;
  EXPECT_NE(refusal(wheel).find("nothing runs as uid"), std::string::npos);
  Permit escape = allowed();
  escape.job.containers[0].what.name = "../../etc/cron.d/x";
  EXPECT_EQ(refusal(escape), "a container's name is not valid");
  escape = allowed();
  escape.job.job_uid = "..";
  EXPECT_EQ(refusal(escape), "the job's name or uid is not valid");
}

TEST_F(OwnersTest, HoldPermitsToTheirTime) {
  EXPECT_FALSE(owners().refuses(allowed(), 1'999));
  EXPECT_TRUE(owners().refuses(allowed(), 2'000));
}

TEST_F(OwnersTest, BuildTheCommandFromThePermit) {
  const auto permit = std::make_shared<const Permit>(allowed());
  const auto command = owners().command({permit, {}}, {7, 3, 0}, 0);
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_EQ(command->argv, (std::vector<std::string>{"echo", "n1", "3"}));
  EXPECT_EQ(command->cwd, "/home/alice");
  EXPECT_TRUE(command->home);
  auto has = [&command](const char* variable) {
    return std::find(command->env.begin(), command->env.end(), variable) != command->env.end();
  };
  EXPECT_TRUE(has("HOME=/home/alice"));
  EXPECT_TRUE(has("USER=alice"));
  EXPECT_TRUE(has("JOB_COMPLETION_INDEX=3"));
  // A pod of another job, or a container that there is not.
  EXPECT_FALSE(owners().command({permit, {}}, {8, 3, 0}, 0).ok());
  EXPECT_FALSE(owners().command({permit, {}}, {7, 3, 0}, 1).ok());
}

TEST_F(OwnersTest, OpenOnlyPlainFilesOfTheOwner) {
  Permit permit = allowed();
  permit.owner.uid = getuid();  // no other can be given a file unless we are root
  permit.owner.gid = getgid();
  const auto fd = owners().open_output(permit, {7, 0, 0}, 0, false);
  ASSERT_TRUE(fd.ok()) << fd.error().message;
  close(*fd);
  const auto file = *std::filesystem::directory_iterator(dir_ + "/logs/uid");
  struct stat found {};
  ASSERT_EQ(stat(file.path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0640u);
  // Again, as after a restart in place.
  const auto again = owners().open_output(permit, {7, 0, 0}, 0, false);
  ASSERT_TRUE(again.ok());
  close(*again);
  // A second name of the file, a link, a pipe, a link in the middle.
  std::filesystem::create_hard_link(file.path(), dir_ + "/other");
  EXPECT_FALSE(owners().open_output(permit, {7, 0, 0}, 0, false).ok());
  std::filesystem::remove(file.path());
  std::filesystem::create_symlink(dir_ + "/other", file.path());
  EXPECT_FALSE(owners().open_output(permit, {7, 0, 0}, 0, false).ok());
  std::filesystem::remove(file.path());
  ASSERT_EQ(mkfifo(file.path().c_str(), 0600), 0);
  EXPECT_FALSE(owners().open_output(permit, {7, 0, 0}, 0, false).ok());
  std::filesystem::rename(dir_ + "/logs", dir_ + "/moved");
  std::filesystem::create_symlink(dir_ + "/moved", dir_ + "/logs");
  EXPECT_FALSE(owners().open_output(permit, {7, 1, 0}, 0, false).ok());
}

}  // namespace
}  // namespace muster::keeper
