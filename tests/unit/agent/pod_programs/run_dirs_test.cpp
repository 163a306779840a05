// The contents of a pod's run directory, and who may present its token.
#include "agent/pod_programs/run_dirs.hpp"

#include "agent/files/note.hpp"
#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::agent {
namespace {

constexpr PodId kLeader{7, 0, 0}, kWorker{7, 1, 2};

std::string text_in(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

mode_t permissions_of(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? found.st_mode & 0777 : 0;
}

std::string this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

class RunDirsTest : public testing::Test {
 protected:
  core::node::PodTemplatePtr job(const std::string& mpi) const {
    auto job = std::make_shared<core::node::PodTemplate>();
    job->job = 7;
    job->job_name = "train";
    job->job_uid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";
    job->indexed = true;
    job->completions = 3;
    job->parallelism = 3;
    job->mpi = mpi;
    return job;
  }
  RunDirs dirs(const std::string& secret = "secret") const { return {temp_.path(), secret}; }

  TempDir temp_;
};

TEST_F(RunDirsTest, HoldHostfilesAndShellsForLaunchers) {
  RunDirs run = dirs();
  ASSERT_TRUE(run.make(kLeader, getuid(), job("auto,slots=4")));
  const std::string dir = run.path(kLeader);
  EXPECT_EQ(text_in(dir + "/hostfile.openmpi"),
            this_host() + " slots=4\ntrain-1 slots=4\ntrain-2 slots=4\n");
  EXPECT_EQ(text_in(dir + "/hostfile.hydra"), this_host() + ":4\ntrain-1:4\ntrain-2:4\n");
  EXPECT_EQ(text_in(dir + "/hosts.running"), "");
  EXPECT_EQ(text_in(dir + "/peers.json"), "[]\n");
  EXPECT_EQ(access((dir + "/bin/muster-rsh").c_str(), X_OK), 0);
  EXPECT_EQ(access((dir + "/bin/muster-mpi-entry").c_str(), X_OK), 0);
  EXPECT_NE(access((dir + "/bin/ssh").c_str(), F_OK), 0);
  // In a worker's host file, its own line has the name of the machine.
  ASSERT_TRUE(run.make(kWorker, getuid(), job("auto,ssh-shim")));
  EXPECT_EQ(text_in(run.path(kWorker) + "/hostfile.hydra"),
            "train-0:1\n" + this_host() + ":1\ntrain-2:1\n");
  EXPECT_EQ(access((run.path(kWorker) + "/bin/ssh").c_str(), X_OK), 0);
  EXPECT_EQ(access((run.path(kWorker) + "/bin/rsh").c_str(), X_OK), 0);
}

TEST_F(RunDirsTest, AreRewrittenWhenHostsChange) {
  RunDirs run = dirs();
  ASSERT_TRUE(run.make(kLeader, getuid(), job("auto,slots=2")));
  const std::string dir = run.path(kLeader);
  run.set_hosts(7, {2, {{0, 0, "c1", "10.0.0.1", true}, {1, 2, "c\"2", "", false}}});
  EXPECT_EQ(text_in(dir + "/hostfile.hydra"), this_host() + ":2\ntrain-1:2\n");
  EXPECT_EQ(text_in(dir + "/hosts.running"), this_host() + ":2\n");
  EXPECT_EQ(text_in(dir + "/peers.json"),
            "[{\"index\": 0, \"attempt\": 0, \"host\": \"train-0\", \"node\": \"c1\", \"address\": "
            "\"10.0.0.1\", \"state\": \"Running\"},\n {\"index\": 1, \"attempt\": 2, \"host\": "
            "\"train-1\", \"node\": \"c\\\"2\", \"address\": \"\", \"state\": \"Pending\"}]\n");
  EXPECT_EQ(run.facts(kWorker).leader_address, "10.0.0.1");
  EXPECT_EQ(run.facts({8, 0, 0}).leader_address, "");
  run.set_hosts(7, {});  // no pod's host is known
  EXPECT_EQ(run.facts(kWorker).leader_address, "");
}

TEST_F(RunDirsTest, ArePrivateUnlessPodsRunAsUsers) {
  const mode_t before = umask(077);
  RunDirs run = dirs();
  ASSERT_TRUE(run.make(kLeader, getuid(), job("auto")));
  EXPECT_EQ(permissions_of(run.path(kLeader)), 0700u);
  EXPECT_EQ(permissions_of(run.path(kLeader) + "/token"), 0600u);
  run.open_to_users();
  ASSERT_TRUE(run.make(kWorker, 1001, job("auto")));
  umask(before);
  EXPECT_EQ(permissions_of(temp_.path()), 0711u);
  EXPECT_EQ(permissions_of(run.socket_dir()), 0711u);
  EXPECT_EQ(permissions_of(run.path(kWorker)), 0755u);
  EXPECT_EQ(permissions_of(run.path(kWorker) + "/token"), 0644u);
  EXPECT_EQ(permissions_of(run.path(kWorker) + "/discover_hosts.sh"), 0755u);
}

TEST_F(RunDirsTest, AreRemovedWithTheirPods) {
  RunDirs run = dirs();
  ASSERT_TRUE(run.make(kLeader, getuid(), job("auto")) && run.make(kWorker, getuid(), job("auto")));
  run.remove({7, 2, 0});  // has no run directory
  run.remove(kLeader);
  EXPECT_NE(access(run.path(kLeader).c_str(), F_OK), 0);
  // A restarted agent removes the directories of pods that its keeper does not have.
  ASSERT_TRUE(run.make(kLeader, getuid(), job("auto")));
  RunDirs next = dirs();
  next.adopt(kWorker, job("auto"));
  next.sweep();
  EXPECT_NE(access(run.path(kLeader).c_str(), F_OK), 0);
  EXPECT_EQ(access(run.path(kWorker).c_str(), F_OK), 0);
}

TEST_F(RunDirsTest, TokensAreValidOnlyOnTheirNode) {
  RunDirs run = dirs();
  ASSERT_TRUE(run.make(kWorker, 1001, job("auto")));
  const std::string token = text_in(run.path(kWorker) + "/token");
  const auto owner = run.owner_of(token);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pod, kWorker);
  EXPECT_EQ(owner->uid, 1001u);
  EXPECT_TRUE(dirs().owner_of(token)) << "an agent that was restarted";
  EXPECT_FALSE(dirs("another work-dir's").owner_of(token));
  for (size_t at = 0; at < token.size(); ++at) {
    std::string forged = token;
    forged[at] = forged[at] == '1' ? '2' : '1';
    EXPECT_FALSE(run.owner_of(forged)) << forged;
  }
  for (const char* none :
       {"", "-", "7-1-2-1001", "7-1-2-1001-", "----", "7-1-2-99999999999999999999-"})
    EXPECT_FALSE(run.owner_of(none)) << none;
  EXPECT_FALSE(run.owner_of(token + "0"));
  EXPECT_NE(run.name(kLeader), run.name(kWorker));
  EXPECT_NE(run.name(kWorker), dirs("another").name(kWorker));
}

TEST(NoteTest, NoteOfSessionHasSessionId) {
  Note note{5'000, "uid", "train-1-abcde", "main~3"};
  note.session = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(note.text(), "3 5000 uid train-1-abcde main~3 0123456789abcdef0123456789abcdef");
  const Note read = Note::parse(note.text());
  EXPECT_EQ(read.session, note.session);
  EXPECT_EQ(read.container, "main~3");
  EXPECT_FALSE(read.planned);
  EXPECT_EQ(Note::parse("3 5000 uid train-1-abcde main~3").job_uid, "") << "cut short";
  EXPECT_EQ(Note::parse("1 5000 uid pod main").session, "");
}

}  // namespace
}  // namespace muster::agent
