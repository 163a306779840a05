// Sessions in a real keeper: commands that join a running container.
#include "base/terminal_input.hpp"
#include "keeper/protocol.hpp"
#include "tests/unit/keeper/keeper_fixture.hpp"
#include "trust/permit/permit.hpp"

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
  // Starts a container that runs until it is killed.
  void start_pod(uint32_t index) {
    agent_->client->spawn({shell(index, "exec sleep 1000")});
    const ProcessKey key{{7, index, 0}, 0, 0};
    ASSERT_TRUE(wait_for([&] {
      return std::ranges::any_of(agent_->started, [&](const auto& s) { return key_of(s) == key; });
    }));
  }
  size_t place_of(const ProcessKey& key) const {
    for (size_t i = 0; i < agent_->ended.size(); ++i)
      if (key_of(agent_->ended[i]) == key) return i;
    return agent_->ended.size();
  }
  bool has_ended(const ProcessKey& key) const { return agent_->end_of(key) != nullptr; }
};

TEST_P(KeeperSessions, RunOnlyInRunningContainer) {
  ASSERT_TRUE(connect().client->abilities().sessions);
  EXPECT_EQ(run(session(0, 1, "true")).error, "its container does not run");
  start_pod(0);
  EXPECT_EQ(run(session(0, 2, "echo out; echo err >&2; exit 3")).exit_code, 3);
  EXPECT_EQ(read_file(root_ / "out0~2"), "out\n");
  EXPECT_EQ(read_file(root_ / "err0~2"), "err\n");
  EXPECT_EQ(run(session(0, 3, "kill -9 $$")).exit_code, 137);
  EXPECT_FALSE(has_ended({{7, 0, 0}, 0, 0}));
  // In a pod, or a container, that does not run.
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

TEST_P(KeeperSessions, EndWhenTheirContainerExits) {
  connect();
  agent_->client->spawn({shell(0, "while ! test -s p1; do :; done; exit 5")});
  ASSERT_TRUE(wait_for([this] { return !agent_->started.empty(); }));
  agent_->client->spawn({session(0, 1, "echo $$ > p1; exec sleep 1000")});
  ASSERT_TRUE(wait_for([&] { return has_ended({{7, 0, 0}, 0, 0}); }));
  EXPECT_EQ(agent_->end_of({{7, 0, 0}, 0, 0})->exit_code, 5);
  EXPECT_LT(place_of(key_of_session(0, 1)), place_of({{7, 0, 0}, 0, 0}));
  EXPECT_TRUE(pids_with(mark()).empty());
}

TEST_P(KeeperSessions, EndWithTheirDescendantsOnly) {
  connect();
  start_pod(0);
  // Like a rank of MPICH: in its own session, with another node's MUSTER_PROCESS.
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
  EXPECT_EQ(key_of(agent_->inventory.ended[0]), key_of_session(0, 2));
  EXPECT_EQ(agent_->inventory.ended[0].exit_code, 6);
  EXPECT_EQ(agent_->inventory.ended[0].note, "note 0");
  agent_->client->spawn({session(0, 1, "echo again >> p1")});
  std::ofstream(root_ / "go") << "go";
  ASSERT_TRUE(wait_for([&] { return has_ended(key_of_session(0, 1)); }));
  EXPECT_EQ(agent_->end_of(key_of_session(0, 1))->exit_code, 4);
  EXPECT_EQ(read_file(root_ / "p1"), std::to_string(pid) + "\n");
}

class KeeperInput : public KeeperSessions {
 protected:
  ~KeeperInput() noexcept override = default;

  SpawnOrder reading(uint16_t number, const std::string& script, bool terminal = false) {
    SpawnOrder what = session(0, number, script);
    what.reads = true;
    what.terminal = terminal;
    return what;
  }
  // Waits for the keeper's answer to the last write.
  InputTaken answer() {
    EXPECT_TRUE(wait_for([this] { return !agent_->taken.empty(); }));
    if (agent_->taken.empty()) return {};
    const InputTaken last = agent_->taken.back();
    agent_->taken.clear();
    return last;
  }
  // Repeats the write until there is room, or the session has started.
  InputTaken write(uint16_t number, uint64_t offset, const std::string& data, bool eof = false) {
    InputTaken last;
    do {
      agent_->client->write(key_of_session(0, number), offset, data, eof);
      last = answer();
    } while (last.taken == offset && !last.closed && (!data.empty() || eof) && !HasFailure());
    return last;
  }
  // Writes all of it, as an agent does.
  InputTaken write_all(uint16_t number, const std::string& data, bool eof = true) {
    InputTaken last;
    do last = write(number, last.taken, data.substr(last.taken, 64 << 10), false);
    while (!last.closed && last.taken < data.size());
    return eof ? write(number, data.size(), "", true) : last;
  }
  keeper::Ended end_of(uint16_t number) {
    EXPECT_TRUE(wait_for([&] { return has_ended(key_of_session(0, number)); }));
    const keeper::Ended* const end = agent_->end_of(key_of_session(0, number));
    return end == nullptr ? keeper::Ended{} : *end;
  }
  std::string out(int number) { return read_file(root_ / ("out0~" + std::to_string(number))); }
  static std::string frame(const TerminalInput& what) {
    std::string bytes;
    what.write(bytes);
    return bytes;
  }
  static std::string open_frame() { return frame({TerminalInput::Type::open, 12, 345, "vt100"}); }
};

TEST_P(KeeperInput, IsReadUntilItsEnd) {
  ASSERT_TRUE(connect().client->abilities().input);
  start_pod(0);
  std::string data;
  for (int i = 0; i < 300'000; ++i) data += static_cast<char>(i * 7 + i / 256);
  agent_->client->spawn({reading(1, "cat; exit 3")});
  const InputTaken last = write_all(1, data);
  EXPECT_EQ(last.taken, data.size());
  EXPECT_TRUE(last.closed);
  EXPECT_EQ(end_of(1).exit_code, 3);
  EXPECT_TRUE(out(1) == data);
  // A session without input takes none.
  agent_->client->spawn({session(0, 2, "cat; while ! test -e go; do sleep 0.01; done")});
  EXPECT_TRUE(write(2, 0, "x").closed);
  std::ofstream(root_ / "go") << "go";
  end_of(2);
  EXPECT_EQ(out(2), "");
  EXPECT_TRUE(write(2, 0, "x").closed) << "it has ended";
  EXPECT_TRUE(write(9, 0, "x").closed) << "there is no such session";
}

TEST_P(KeeperInput, IsTakenOnceByAnyAgent) {
  connect();
  start_pod(0);
  agent_->client->spawn({reading(1, "cat")});
  EXPECT_EQ(write(1, 0, "hello").taken, 5u);
  connect();
  EXPECT_EQ(write(1, 0, "hello").taken, 5u);
  EXPECT_EQ(write(1, 3, "lo world").taken, 11u);
  EXPECT_EQ(write(1, 40, "beyond").taken, 11u);
  EXPECT_EQ(write(1, UINT64_MAX, "beyond", true).taken, 11u);
  EXPECT_FALSE(write(1, 4, "o", true).closed) << "its end is elsewhere";
  EXPECT_TRUE(write(1, 11, "", true).closed);
  EXPECT_TRUE(write(1, 11, "", true).closed);
  EXPECT_TRUE(write(1, 11, "late").closed);
  EXPECT_EQ(end_of(1).exit_code, 0);
  EXPECT_EQ(out(1), "hello world");
}

TEST_P(KeeperInput, WaitsForRoom) {
  connect();
  start_pod(0);
  agent_->client->spawn({reading(1, "while ! test -e go; do sleep 0.01; done; exec cat"),
                         reading(2, "exec <&-; echo > closed; exec sleep 1000"),
                         reading(3, "exec sleep 1000")});
  const std::string data(1 << 20, 'x');
  const InputTaken some = write(1, 0, data);
  EXPECT_LE(some.taken, 64u << 10) << "as much as the pipe holds";
  agent_->client->write(key_of_session(0, 1), some.taken, data.substr(some.taken), true);
  // Another session's input continues meanwhile, so the next answer is for that session.
  ASSERT_TRUE(wait_for([this] { return fs::exists(root_ / "closed"); }));
  InputTaken unread;
  EXPECT_TRUE(wait_for([&] {
    unread = write(2, unread.taken, "x");
    return unread.closed;
  })) << "a process that is just being started may have its end of the pipe, until its exec";
  EXPECT_EQ(unread.key, key_of_session(0, 2));
  std::ofstream(root_ / "go") << "go";
  const InputTaken room = answer();
  EXPECT_EQ(room.key, key_of_session(0, 1));
  EXPECT_EQ(room.taken, some.taken) << "there is room: it is to be sent again";
  for (InputTaken now = room; !now.closed;) now = write(1, now.taken, data.substr(now.taken), true);
  EXPECT_EQ(end_of(1).exit_code, 0);
  EXPECT_EQ(out(1).size(), data.size());
  // A session that never reads is ended, and its writer is told so.
  const uint64_t taken = write(3, 0, data).taken;
  agent_->client->write(key_of_session(0, 3), taken, data, false);
  agent_->client->kill(key_of_session(0, 3), 0);
  EXPECT_TRUE(answer().closed || write(3, taken, data).closed);
}

TEST_P(KeeperInput, ReachesTerminalWithSizeAndType) {
  connect();
  start_pod(0);
  agent_->client->spawn(
      {reading(1,
               "test -t 0 && test -t 2 || exit 1; stty size; echo $TERM; read a; echo \"<$a>\"; "
               "stty size; exit 7",
               true)});
  std::string input = open_frame();
  EXPECT_EQ(write(1, 0, input).taken, input.size());
  ASSERT_TRUE(wait_for([this] { return out(1).find("vt100") != std::string::npos; }));
  EXPECT_EQ(out(1), "12 345\r\nvt100\r\n");
  const std::string more =
      frame({TerminalInput::Type::size, 50, 60, ""}) + frame({.bytes = "hi\r"});
  EXPECT_EQ(write(1, input.size(), more).taken, input.size() + more.size());
  EXPECT_EQ(end_of(1).exit_code, 7);
  EXPECT_EQ(out(1), "12 345\r\nvt100\r\nhi\r\n<hi>\r\n50 60\r\n");
}

TEST_P(KeeperInput, TerminalEndsWithAllItsProcesses) {
  connect();
  start_pod(0);
  auto run_in_terminal = [this](uint16_t number, const std::string& script) {
    agent_->client->spawn({reading(number, script, true)});
    write(number, 0, open_frame());
  };
  // Ctrl-C ends the foreground processes.
  run_in_terminal(1, "echo $$ > p1; exec sleep 1000");
  const int first = pid_in("p1");
  write(1, open_frame().size(), frame({.bytes = "\x03"}));
  EXPECT_EQ(end_of(1).exit_code, 130);
  EXPECT_FALSE(is_alive(first));
  // The end of the input hangs up the terminal.
  run_in_terminal(2, "trap '' TERM; echo $$ > p2; sleep 1000; sleep 1000");
  const int second = pid_in("p2");
  write(2, open_frame().size(), "", true);
  EXPECT_EQ(end_of(2).exit_code, 129);
  EXPECT_FALSE(is_alive(second));
  // Processes that ignore these signals end too, even one that has lost its environment.
  run_in_terminal(3,
                  "trap '' HUP TERM; env -i sh -c 'echo $$ > p3; sleep 1000' & "
                  "echo $$ > p4; wait; sleep 1000");
  const int third = pid_in("p3"), fourth = pid_in("p4");
  agent_->client->kill(key_of_session(0, 3), 50);
  end_of(3);
  EXPECT_FALSE(is_alive(third));
  EXPECT_FALSE(is_alive(fourth));
  // SIGTSTP would stop the command, and nothing would continue it.
  run_in_terminal(4, "echo $$ > p5; kill -STOP $$; exit 4");
  EXPECT_EQ(end_of(4).exit_code, 4);
  run_in_terminal(5, "kill -9 $$");
  EXPECT_EQ(end_of(5).exit_code, 137);
  SpawnOrder missing = reading(6, "", true);
  missing.argv = {"no-such-program"};
  agent_->client->spawn({missing});
  write(6, 0, open_frame());
  EXPECT_EQ(end_of(6).exit_code, 127);
  EXPECT_NE(out(6).find("exec no-such-program: No such file"), std::string::npos) << out(6);
  agent_->client->spawn({reading(7, "sleep 1000", true)});
  write(7, 0, "no frame");
  EXPECT_EQ(end_of(7).exit_code, 129);
  EXPECT_NE(read_file(root_ / "err0~7").find("malformed"), std::string::npos);
}

TEST_P(KeeperInput, OutputOfTerminalIsComplete) {
  connect();
  start_pod(0);
  agent_->client->spawn({reading(1, "stty -opost; seq 100000", true)});
  write(1, 0, open_frame());
  EXPECT_EQ(end_of(1).exit_code, 0);
  std::string expected;
  for (int i = 1; i <= 100'000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(out(1) == expected) << out(1).size();
}

INSTANTIATE_TEST_SUITE_P(Leftovers, KeeperInput, testing::Values("off", "on"), leftovers_by);

INSTANTIATE_TEST_SUITE_P(Leftovers, KeeperSessions, testing::Values("off", "on"), leftovers_by);

// A keeper that runs as root and starts only what the coordinator has signed.
class SignedSessions : public KeeperInput {
 protected:
  static constexpr uint32_t kUser = 2001, kAgent = 2000;
  static constexpr const char* kId = "0123456789abcdef0123456789abcdef";

  ~SignedSessions() noexcept override = default;
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can start processes of others";
    KeeperInput::SetUp();
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
    KeeperInput::TearDown();
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
  // A stolen permit is refused under another number, and on a new connection.
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

TEST_P(SignedSessions, NeedTheirOwnUnchangedPermit) {
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

// The permit decides about input and terminal, whatever the agent says.
TEST_P(SignedSessions, GetOnlySignedInputAndTerminal) {
  start_signed_pod(0);
  auto of = [this](const std::string& script, bool input, bool terminal) {
    PermitSession session = signed_session(std::string(31, 'a') + script.back());
    session.command = {"sh", "-c", script};
    session.input = input;
    session.terminal = terminal;
    return sign(permit(session));
  };
  auto output = [this](int number) {
    for (const auto& one : fs::directory_iterator(work_dir_ / "logs/uid"))
      if (one.path().string().find("~" + std::to_string(number) + ".stdout") != std::string::npos)
        return read_file(one.path());
    return std::string();
  };
  SpawnOrder none = order_of(key_of_session(0, 1), of("cat; exit 1", false, false));
  none.reads = none.terminal = true;
  agent_->client->spawn({none});
  EXPECT_EQ(end_of(1).exit_code, 1);
  EXPECT_EQ(output(1), "");
  agent_->client->spawn({order_of(key_of_session(0, 2), of("cat; exit 2", true, false))});
  write_all(2, "hello");
  EXPECT_EQ(end_of(2).exit_code, 2);
  EXPECT_EQ(output(2), "hello");
  agent_->client->spawn(
      {order_of(key_of_session(0, 3), of("id -u; stty size; exit 3", true, true))});
  write(3, 0, open_frame());
  EXPECT_EQ(end_of(3).exit_code, 3);
  EXPECT_EQ(output(3), std::to_string(kUser) + "\r\n12 345\r\n");
  // The last byte of the permit says whether there is a terminal.
  auto changed = *of("exit 4", true, false);
  changed.bytes.back() = 1;
  ASSERT_TRUE(read_permit(changed.bytes)->session->terminal);
  EXPECT_EQ(refusal(order_of(key_of_session(0, 4),
                             std::make_shared<const core::node::SignedPermit>(changed))),
            "its command is not signed");
}

INSTANTIATE_TEST_SUITE_P(Leftovers, SignedSessions, testing::Values("off", "on"), leftovers_by);

}  // namespace
}  // namespace muster::agent
