// Sessions in a real keeper: commands that join a container that runs.
#include "keeper/protocol.hpp"
#include "permit/permit.hpp"
#include "tests/unit/keeper/keeper_fixture.hpp"

#include <grp.h>
#include <spawn.h>
#include <sys/wait.h>

namespace muster::agent {
namespace {

using namespace keeping;

class KeeperSessions : public KeeperTest {
 protected:
  ~KeeperSessions() noexcept override = default;

  static ProcessKey key_of_session(uint32_t index, uint16_t number) {
    return {{7, index, 0}, keeper::kSessionBit, number};
  }
  SpawnOrder session(uint32_t index, uint16_t number, const std::string& script) {
    SpawnOrder what = shell(index, script);
    what.key = key_of_session(index, number);
    what.stdout_path += "~" + std::to_string(number);
    what.stderr_path += "~" + std::to_string(number);
    return what;
  }
  // A container that runs until it is killed.
  void start_pod(uint32_t index) {
    agent_->client->spawn({shell(index, "exec sleep 1000")});
    const ProcessKey key{{7, index, 0}, 0, 0};
    ASSERT_TRUE(wait_for([&] {
      return std::ranges::any_of(agent_->started, [&](const auto& s) { return s.key == key; });
    }));
  }
  size_t place_of(const ProcessKey& key) const {
    for (size_t i = 0; i < agent_->ended.size(); ++i)
      if (agent_->ended[i].key == key) return i;
    return agent_->ended.size();
  }
  bool has_ended(const ProcessKey& key) const { return agent_->end_of(key) != nullptr; }
};

TEST_P(KeeperSessions, RunInAContainerThatRuns) {
  ASSERT_TRUE(connect().client->abilities().sessions);
  EXPECT_EQ(run(session(0, 1, "true")).error, "its container does not run");
  start_pod(0);
  EXPECT_EQ(run(session(0, 2, "echo out; echo err >&2; exit 3")).exit_code, 3);
  EXPECT_EQ(read_file(root_ / "out0~2"), "out\n");
  EXPECT_EQ(read_file(root_ / "err0~2"), "err\n");
  EXPECT_EQ(run(session(0, 3, "kill -9 $$")).exit_code, 137);
  EXPECT_FALSE(has_ended({{7, 0, 0}, 0, 0}));
  // Of another pod, of another container.
  EXPECT_EQ(run(session(1, 1, "true")).error, "its container does not run");
  SpawnOrder other = session(0, 4, "true");
  other.key.container |= 1;
  EXPECT_EQ(run(other).error, "its container does not run");
}

TEST_P(KeeperSessions, EndBeforeTheirContainer) {
  connect();
  start_pod(0);
  start_pod(1);
  agent_->client->spawn({session(0, 1, "trap '' TERM; echo $$ > p1; sleep 1000 & wait; sleep 1000"),
                         session(0, 2, "echo $$ > p2; exec sleep 1000"),
                         session(1, 1, "echo $$ > p3; exec sleep 1000")});
  const int stubborn = pid_in("p1"), plain = pid_in("p2"), other = pid_in("p3");
  agent_->client->kill({{7, 0, 0}, 0, 0}, 0);
  ASSERT_TRUE(wait_for([&] { return has_ended({{7, 0, 0}, 0, 0}); }));
  EXPECT_LT(place_of(key_of_session(0, 1)), place_of({{7, 0, 0}, 0, 0}));
  EXPECT_LT(place_of(key_of_session(0, 2)), place_of({{7, 0, 0}, 0, 0}));
  EXPECT_FALSE(is_alive(stubborn));
  EXPECT_FALSE(is_alive(plain));
  EXPECT_TRUE(is_alive(other));
  EXPECT_FALSE(has_ended(key_of_session(1, 1)));
  EXPECT_EQ(run(session(0, 3, "true")).error, "its container does not run");
}

TEST_P(KeeperSessions, EndWithAContainerThatEndsByItself) {
  connect();
  agent_->client->spawn({shell(0, "while ! test -s p1; do :; done; exit 5")});
  ASSERT_TRUE(wait_for([this] { return !agent_->started.empty(); }));
  agent_->client->spawn({session(0, 1, "echo $$ > p1; exec sleep 1000")});
  ASSERT_TRUE(wait_for([&] { return has_ended({{7, 0, 0}, 0, 0}); }));
  EXPECT_EQ(agent_->end_of({{7, 0, 0}, 0, 0})->exit_code, 5);
  EXPECT_LT(place_of(key_of_session(0, 1)), place_of({{7, 0, 0}, 0, 0}));
  EXPECT_TRUE(pids_with(mark()).empty());
}

TEST_P(KeeperSessions, EndAloneWithAllThatTheyStarted) {
  connect();
  start_pod(0);
  // As MPICH's ranks: in a session of their own, with another node's MUSTER_PROCESS.
  agent_->client->spawn({session(
      0, 1,
      "MUSTER_PROCESS=00000000000000aa-1 setsid sh -c 'echo $$ > p1; exec sleep 1000' & wait")});
  const int rank = pid_in("p1");
  agent_->client->kill(key_of_session(0, 1), 0);
  ASSERT_TRUE(wait_for([&] { return has_ended(key_of_session(0, 1)); }));
  EXPECT_FALSE(is_alive(rank));
  EXPECT_FALSE(has_ended({{7, 0, 0}, 0, 0}));
}

TEST_P(KeeperSessions, OutliveTheAgentAndAreStartedOnce) {
  connect();
  start_pod(0);
  agent_->client->spawn({session(0, 1, "echo $$ >> p1; while ! test -e go; do :; done; exit 4"),
                         session(0, 2, "exit 6")});
  const int pid = pid_in("p1");
  ASSERT_TRUE(wait_for([&] { return has_ended(key_of_session(0, 2)); }));
  connect();
  EXPECT_TRUE(is_alive(pid));
  EXPECT_EQ(agent_->inventory.living.size(), 2u);
  ASSERT_EQ(agent_->inventory.ended.size(), 1u);
  EXPECT_EQ(agent_->inventory.ended[0].key, key_of_session(0, 2));
  EXPECT_EQ(agent_->inventory.ended[0].exit_code, 6);
  EXPECT_EQ(agent_->inventory.ended[0].note, "note 0");
  agent_->client->spawn({session(0, 1, "echo again >> p1")});
  std::ofstream(root_ / "go") << "go";
  ASSERT_TRUE(wait_for([&] { return has_ended(key_of_session(0, 1)); }));
  EXPECT_EQ(agent_->end_of(key_of_session(0, 1))->exit_code, 4);
  EXPECT_EQ(read_file(root_ / "p1"), std::to_string(pid) + "\n");
}

INSTANTIATE_TEST_SUITE_P(Leftovers, KeeperSessions, testing::Values("off", "on"), leftovers_by);

// A keeper that runs as root, and starts what the coordinator has signed.
class SignedSessions : public KeeperSessions {
 protected:
  static constexpr uint32_t kUser = 2001, kAgent = 2000;
  static constexpr const char* kId = "0123456789abcdef0123456789abcdef";

  ~SignedSessions() noexcept override = default;
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can start processes of others";
    KeeperSessions::SetUp();
    fs::permissions(root_, fs::perms(0755));
    ASSERT_EQ(chown(work_dir_.c_str(), kAgent, kAgent), 0);
    fs::create_directories(work_dir_ / "logs/uid");
    for (const char* dir : {"logs", "logs/uid"})
      ASSERT_EQ(chown((work_dir_ / dir).c_str(), kAgent, kAgent), 0);
    const std::string program = fs::read_symlink("/proc/self/exe").parent_path() / "muster-keeper";
    std::vector<std::string> words = {program, work_dir_, "c1"};
    std::vector<std::string> variables = {"MUSTER_KEEPER_AGENT=" + std::to_string(kAgent),
                                          "MUSTER_KEEPER_PERMIT_KEY=" + key_.public_hex(),
                                          "MUSTER_KEEPER_NODE=n1",
                                          std::string("MUSTER_KEEPER_CGROUP=") + GetParam()};
    auto pointers = [](std::vector<std::string>& list) {
      std::vector<char*> all;
      for (std::string& one : list) all.push_back(one.data());
      all.push_back(nullptr);
      return all;
    };
    ASSERT_EQ(posix_spawn(&pid_, program.c_str(), nullptr, nullptr, pointers(words).data(),
                          pointers(variables).data()),
              0);
    ASSERT_TRUE(wait_for([this] { return fs::exists(work_dir_ / "keeper/socket"); }));
    connect();
  }
  void TearDown() override {
    if (pid_ == 0) return;
    KeeperSessions::TearDown();
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Permit permit(std::optional<PermitSession> session = {}) const {
    Permit permit{"c1", "n1", wall_now() + 600'000, {kUser, kUser, "u", {kUser}, "/"}, {}};
    permit.job.job = 7;
    permit.job.job_name = "j";
    permit.job.job_uid = "uid";
    permit.job.indexed = true;
    auto& container = permit.job.containers.emplace_back();
    container.what.name = "main";
    container.what.command = {"sleep", "1000"};
    container.what.working_dir = "/";
    permit.session = std::move(session);
    return permit;
  }
  core::node::SignedPermitPtr sign(const Permit& permit) const {
    const std::string bytes = permit_bytes(permit);
    return std::make_shared<const core::node::SignedPermit>(
        core::node::SignedPermit{bytes, key_.sign(bytes)});
  }
  static PermitSession signed_session(const std::string& id = kId) {
    return {0, 0, 0, id, {"sh", "-c", "id -u"}};
  }
  static SpawnOrder order_of(ProcessKey key, core::node::SignedPermitPtr permit) {
    SpawnOrder order;
    order.key = key;
    order.note = "note";
    order.permit = std::move(permit);
    return order;
  }
  void start_signed_pod(uint32_t index) {
    agent_->client->spawn({order_of({{7, index, 0}, 0, 0}, sign(permit()))});
    ASSERT_TRUE(wait_for([&] { return agent_->started.size() == index + 1; }));
  }
  std::string refusal(const SpawnOrder& what) { return run(what).error; }

  const PermitKey key_ = *PermitKey::of_private(std::string(64, '7'));
  pid_t pid_ = 0;
};

TEST_P(SignedSessions, RunOnceAndAsTheOwner) {
  start_signed_pod(0);
  const auto once = sign(permit(signed_session()));
  EXPECT_EQ(run(order_of(key_of_session(0, 1), once)).exit_code, 0);
  std::string out;
  for (const auto& one : fs::directory_iterator(work_dir_ / "logs/uid"))
    if (one.path().string().find("~1.stdout") != std::string::npos) out = read_file(one.path());
  EXPECT_EQ(out, std::to_string(kUser) + "\n");
  // A stolen permit: under another number, also on a new connection.
  EXPECT_EQ(refusal(order_of(key_of_session(0, 2), once)), "its command was started before");
  connect();
  EXPECT_EQ(refusal(order_of(key_of_session(0, 3), once)), "its command was started before");
}

TEST_P(SignedSessions, RunInThePodThatTheyAreSignedFor) {
  start_signed_pod(0);
  start_signed_pod(1);
  const auto for_first = sign(permit(signed_session()));
  EXPECT_EQ(refusal(order_of(key_of_session(1, 1), for_first)),
            "its command is signed for another pod");
  auto elsewhere = signed_session();
  elsewhere.attempt = 1;
  EXPECT_EQ(refusal(order_of(key_of_session(0, 1), sign(permit(elsewhere)))),
            "its command is signed for another pod");
  EXPECT_EQ(refusal(order_of(key_of_session(2, 1), for_first)), "its container does not run");
}

TEST_P(SignedSessions, APermitForOneStartsNothingElse) {
  start_signed_pod(0);
  EXPECT_NE(refusal(order_of({{7, 0, 1}, 0, 0}, sign(permit(signed_session())))), "");
  EXPECT_EQ(refusal(order_of(key_of_session(0, 1), sign(permit()))), "its command is not signed");
  auto changed = *sign(permit(signed_session()));
  changed.bytes.back() = static_cast<char>(changed.bytes.back() ^ 1);
  EXPECT_EQ(refusal(order_of(key_of_session(0, 2),
                             std::make_shared<const core::node::SignedPermit>(changed))),
            "its command is not signed");
  // A plain order has no permit at all.
  EXPECT_EQ(refusal(session(0, 3, "id")), "this keeper starts nothing without a permit");
}

INSTANTIATE_TEST_SUITE_P(Leftovers, SignedSessions, testing::Values("off", "on"), leftovers_by);

}  // namespace
}  // namespace muster::agent
