#include "keeper/users/owners.hpp"

#include "core/node/template_codec.hpp"
#include "core/pod_name.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace muster::keeper {
namespace {

constexpr gid_t kAgentGid = 999;

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
                   .agent_gid = kAgentGid,
                   .mark_gid = root() ? 0 : getgid(),
                   .uid_min = std::min(1000u, owner()),
                   .key = key().public_hex(),
                   .node = "n1",
                   .work_fd = work_fd_});
  }
  // Unless we are root, we can give files only to ourselves.
  static bool root() { return getuid() == 0; }
  static uid_t owner() { return root() ? 1001 : getuid(); }
  static Permit permit() {
    Permit permit = allowed();
    permit.owner.uid = owner();
    return permit;
  }
  // Opens the standard output of a pod.
  Result<int> open_output(bool agent_reads = false) const {
    return owners().open_output(permit(), {7, 0, 0}, 0, false, agent_reads);
  }
  static OutputName name() { return {"uid", core::pod_name("j", "uid", true, {0, 0}), "main"}; }
  std::string output() const { return dir_ + "/logs/uid/" + name().pod_name + ".main.stdout"; }
  static struct stat status(const std::string& path) {
    struct stat found {};
    EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
    return found;
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

TEST_F(OwnersTest, RefuseOtherTemplatesThanTheSignedOne) {
  const std::string job = core::node::template_bytes(allowed().job);
  const std::string bytes = permit_bytes(allowed(), job), signature = key().sign(bytes + job);
  const auto accepted = owners().accept(bytes, signature, job);
  ASSERT_TRUE(accepted.ok()) << accepted.error().message;
  EXPECT_EQ((*accepted)->job.job_name, "j");
  Permit other = allowed();
  other.job.containers[0].what.command[0] = "evil";
  std::string forged = core::node::template_bytes(other.job);
  ASSERT_EQ(forged.size(), job.size());
  EXPECT_EQ(owners().accept(bytes, signature, forged).error().message,
            "the permit is not signed by this node's coordinator");
  EXPECT_FALSE(owners().accept(bytes, key().sign(bytes), job).ok()) << "the template is not signed";
  EXPECT_FALSE(owners().accept(bytes + job, signature, "").ok());
}

TEST_F(OwnersTest, RefuseExpiredPermits) {
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
  // A pod of another job, and a container that does not exist.
  EXPECT_FALSE(owners().command({permit, {}}, {8, 3, 0}, 0).ok());
  EXPECT_FALSE(owners().command({permit, {}}, {7, 3, 0}, 1).ok());
}

TEST_F(OwnersTest, P12OnlyMpiJobsAreServedThroughADirectoryOfTheAgent) {
  const std::string run(32, 'a');
  const auto path = [&](const Permit& permit) {
    const auto command = owners().command(
        {.permit = std::make_shared<const Permit>(permit), .run = run}, {7, 3, 0}, 0);
    EXPECT_TRUE(command.ok());
    for (const std::string& variable : command->env)
      if (variable.starts_with("PATH=")) return variable;
    return std::string();
  };
  EXPECT_EQ(path(allowed()), "PATH=/usr/local/bin:/usr/bin:/bin");
  Permit mpi = allowed();
  mpi.job.mpi = "auto";
  EXPECT_NE(path(mpi).find("/run/" + run + "/bin:"), std::string::npos);
}

TEST_F(OwnersTest, OutputsArePrivate) {
  const auto fd = open_output();
  ASSERT_TRUE(fd.ok()) << fd.error().message;
  close(*fd);
  const struct stat found = status(output());
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_EQ(found.st_uid, owner());
  // Opens it again, as after a restart in place.
  const auto again = open_output();
  ASSERT_TRUE(again.ok()) << again.error().message;
  close(*again);
}

// An earlier agent reads outputs itself. An output made for it stays usable, and becomes private.
TEST_F(OwnersTest, OutputsAreReadableForAnEarlierAgent) {
  if (!root()) GTEST_SKIP() << "only root can give files away";
  for (const bool agent_reads : {true, false, true}) {
    const auto fd = open_output(agent_reads);
    ASSERT_TRUE(fd.ok()) << fd.error().message;
    close(*fd);
    const struct stat found = status(output());
    EXPECT_EQ(found.st_mode & 07777, agent_reads ? 0640u : 0600u);
    EXPECT_EQ(found.st_gid, agent_reads ? kAgentGid : 0u);
  }
}

TEST_F(OwnersTest, OutputsAreOpenedForReadingByName) {
  EXPECT_EQ(*owners().read_output(name()), -1) << "there is none yet";
  const auto fd = open_output();
  ASSERT_TRUE(fd.ok()) << fd.error().message;
  ASSERT_EQ(write(*fd, "text", 4), 4);
  close(*fd);
  const auto reads = owners().read_output(name());
  ASSERT_TRUE(reads.ok()) << reads.error().message;
  char text[8] = {};
  EXPECT_EQ(read(*reads, text, sizeof text), 4);
  EXPECT_LT(write(*reads, "x", 1), 0);
  close(*reads);
  std::ofstream(dir_ + "/secret.main.stdout") << "s";
  for (const auto& [job, pod, container] :
       {std::array{"..", "secret", "main"}, std::array{"uid", "../../secret", "main"},
        std::array{"uid/..", "secret", "main"}, std::array{"", "secret", "main"},
        std::array{".", "secret", "main"}, std::array{"uid", "x", "../../secret.main"}}) {
    const auto refused = owners().read_output({job, pod, container, false});
    ASSERT_FALSE(refused.ok()) << job << " " << pod << " " << container;
    EXPECT_TRUE(refused.error().message.starts_with("not the name of an output"));
  }
}

// The agent owns the folders, so it can replace an output with any file it can get hold of.
TEST_F(OwnersTest, OpensOnlyOutputFiles) {
  const std::string secret = dir_ + "/secret";
  auto file_of = [this](uid_t uid, gid_t gid) {
    std::ofstream(output()) << "s3cr3t";
    ASSERT_EQ(chown(output().c_str(), uid, gid), 0);
    chmod(output().c_str(), 0600);
  };
  struct Trap {
    const char* what;
    bool needs_root;
    std::function<void()> plant;
    bool readable = false;  // the agent may read every output, under any name
  };
  const std::vector<Trap> traps = {
      {"a link", false, [&] { std::filesystem::create_symlink(secret, output()); }},
      {"a second name", false, [&] { std::filesystem::create_hard_link(secret, output()); }},
      {"a pipe", false, [&] { ASSERT_EQ(mkfifo(output().c_str(), 0600), 0); }},
      {"a directory", false, [&] { std::filesystem::create_directory(output()); }},
      {"another file of the owner's", true, [&] { file_of(owner(), 1001); }},
      {"the same, of the agent's group", true, [&] { file_of(owner(), kAgentGid); }},
      {"a file of another user", true, [&] { file_of(1002, 1002); }},
      {"an output of another user", true, [&] { file_of(1002, 0); }, true},
      {"a file of the agent's", true, [&] { file_of(999, kAgentGid); }},
      {"a file of root's", true, [&] { file_of(0, 0); }},
      {"a link in the middle", false,
       [&] {
         std::filesystem::rename(dir_ + "/logs", dir_ + "/moved");
         std::filesystem::create_symlink(dir_ + "/moved", dir_ + "/logs");
       }},
  };
  for (const Trap& trap : traps) {
    if (trap.needs_root && !root()) continue;
    SCOPED_TRACE(trap.what);
    std::ofstream(secret) << "s3cr3t";
    ASSERT_EQ(chown(secret.c_str(), owner(), root() ? 0 : getgid()), 0);
    trap.plant();
    const auto reads = owners().read_output(name());
    EXPECT_EQ(reads.ok(), trap.readable);
    if (reads.ok()) close(*reads);
    EXPECT_FALSE(open_output().ok());
    std::filesystem::remove_all(output());
  }
}

}  // namespace
}  // namespace muster::keeper
