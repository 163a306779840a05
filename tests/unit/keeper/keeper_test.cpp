// The keeper and its client with real processes; leftovers are found by session and environment, or
// by cgroup.
#include "core/node/template_codec.hpp"
#include "keeper/protocol.hpp"
#include "tests/unit/keeper/keeper_fixture.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>

namespace muster::agent {
namespace {

using namespace keeping;

TEST_P(KeeperTest, ReportsExitCodesAndSignals) {
  connect();
  EXPECT_TRUE(agent_->inventory.living.empty());
  EXPECT_EQ(run(shell(0, "exit 0")).exit_code, 0);
  EXPECT_EQ(run(shell(1, "exit 42")).exit_code, 42);
  keeper::Ended end = run(shell(2, "kill -SEGV $$"));
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.exit_code, 128 + SIGSEGV);
  ASSERT_TRUE(end.start);
  EXPECT_GT(end.start->pid, 0);
  EXPECT_LE(end.start->at, end.ended_at);
  EXPECT_EQ(end.note, "note 2");
  EXPECT_EQ(agent_->started.size(), 3u);
}

TEST_P(KeeperTest, GivesEachItsEnvironmentAndFiles) {
  connect();
  SpawnOrder what =
      shell(0,
            "echo $A; pwd; cat; echo wrong >&2; ls /proc/self/fd | wc -l; "
            "grep -E 'Sig(Blk|Ign)' /proc/self/status; cut -d' ' -f5,6 /proc/self/stat; echo $$");
  EXPECT_EQ(run(what).exit_code, 0);
  std::string out = read_file(root_ / "out0");
  EXPECT_EQ(out.substr(0, 2), "b\n");
  EXPECT_NE(out.find(root_.string() + "\n4\n"), std::string::npos) << out;  // 0 1 2 and ls's own
  EXPECT_NE(out.find("SigBlk:\t0000000000000000\n"), std::string::npos) << out;
  EXPECT_NE(out.find("SigIgn:\t0000000000000000\n"), std::string::npos) << out;
  std::string pid = std::to_string(agent_->ended[0].start->pid);
  EXPECT_NE(out.find(pid + " " + pid + "\n" + pid + "\n"), std::string::npos) << out;
  EXPECT_EQ(read_file(root_ / "err0"), "wrong\n");
  struct stat info {};
  ASSERT_EQ(stat((root_ / "out0").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_P(KeeperTest, FailedStartHasExitCodeAndReason) {
  connect();
  keeper::Ended end = run(order(0, {"/no/such"}));
  EXPECT_EQ(end.exit_code, 127);
  EXPECT_FALSE(end.start);
  EXPECT_EQ(end.error, "exec /no/such: No such file or directory");
  EXPECT_EQ(run(order(1, {"no-such-program"})).exit_code, 127);
  EXPECT_EQ(run(order(2, {"/etc/passwd"})).exit_code, 126);
  EXPECT_EQ(run(order(3, {"/etc/passwd/x"})).exit_code, 127);
  std::ofstream(root_ / "text") << "neither ELF nor a script";
  chmod((root_ / "text").c_str(), 0755);
  EXPECT_EQ(run(order(4, {(root_ / "text").string()})).exit_code, 126);
  SpawnOrder what = order(5, {"true"});
  what.cwd = "/no/such";
  end = run(what);
  EXPECT_EQ(end.exit_code, core::kExitNotHere);
  EXPECT_FALSE(end.unstarted);
  EXPECT_EQ(end.error, "cwd /no/such: No such file or directory");
  what = order(6, {"true"});
  what.stdout_path = "/no/such/out";
  end = run(what);
  EXPECT_EQ(end.exit_code, core::kExitNotHere);
  EXPECT_TRUE(end.unstarted) << "no process has its output there";
  EXPECT_EQ(end.error, "open /no/such/out: No such file or directory");
  EXPECT_EQ(run(order(7, {})).exit_code, 127);
  EXPECT_EQ(run(order(8, {"true"})).exit_code, 0);
  EXPECT_EQ(agent_->started.size(), 1u);
}

TEST_P(KeeperTest, DropsPrivilegesOfConfinedProcess) {
  connect();
  ASSERT_TRUE(agent_->client->abilities().confines);
  constexpr uint64_t kNetRaw = uint64_t{1} << 13;
  auto value = [this](uint32_t index, const char* field) {
    const std::string text = read_file(root_ / ("status" + std::to_string(index)));
    const size_t at = text.find(std::string(field) + ":\t");
    return at == std::string::npos ? ~uint64_t{0}
                                   : std::stoull(text.substr(at + std::strlen(field) + 2), {}, 16);
  };
  auto status = [this](uint32_t index) {
    return shell(index, "cat /proc/self/status > status" + std::to_string(index));
  };
  EXPECT_EQ(run(status(0)).exit_code, 0);
  EXPECT_EQ(value(0, "NoNewPrivs"), 0u);
  SpawnOrder none_new = status(1);
  none_new.no_new_privileges = true;
  EXPECT_EQ(run(none_new).exit_code, 0);
  EXPECT_EQ(value(1, "NoNewPrivs"), 1u);
  EXPECT_EQ(value(1, "CapEff"), value(0, "CapEff"));
  SpawnOrder some = status(2), all = status(3);
  some.dropped_capabilities = kNetRaw;
  all.dropped_capabilities = ~uint64_t{0};
  EXPECT_EQ(run(some).exit_code, 0);
  EXPECT_EQ(run(all).exit_code, 0);
  EXPECT_EQ(value(2, "CapEff"), value(0, "CapEff") & ~kNetRaw);
  EXPECT_EQ(value(3, "CapEff"), 0u);
  // The bounding set is empty, or no program can gain capabilities.
  EXPECT_TRUE(value(3, "CapBnd") == 0 || value(3, "NoNewPrivs") == 1);
}

TEST_P(KeeperTest, StartsProcessWithItsSettings) {
  connect();
  const auto report = [this](uint32_t index, const core::ProcessSettings& settings) {
    SpawnOrder order = shell(index, "umask; nice; ulimit -Sn; ulimit -Sc; ulimit -Hc");
    order.settings = core::node::settings_bytes(settings);
    EXPECT_EQ(run(order).exit_code, 0);
    return read_file(root_ / ("out" + std::to_string(index)));
  };
  rlimit core{};
  getrlimit(RLIMIT_CORE, &core);
  const std::string hard =
      core.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(core.rlim_max / 512);
  const int own = getpriority(PRIO_PROCESS, 0);
  const auto text = [](int number) { return std::to_string(number) + "\n"; };
  // A soft limit is raised up to the hard limit at most, and the hard limit stays.
  EXPECT_EQ(report(0, {.nice = 2, .umask = 027, .soft_limits = {{"nofile", 99}, {"core", ~0ull}}}),
            "0027\n" + text(std::min(19, own + 2)) + "99\n" + hard + "\n" + hard + "\n");
  EXPECT_EQ(report(1, {.nice = 19, .umask = 0, .soft_limits = {{"nofile", 100}, {"core", 0}}}),
            "0000\n" + text(19) + "100\n0\n" + hard + "\n");
}

TEST_P(KeeperTest, JoinsStderrToStdoutInOrder) {
  connect();
  SpawnOrder order = shell(0, "for i in 1 2 3 4 5; do echo $i; echo $i >&2; done");
  order.settings = core::node::settings_bytes({.joined = true});
  EXPECT_EQ(run(order).exit_code, 0);
  EXPECT_EQ(read_file(root_ / "out0"), "1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n");
}

TEST_P(KeeperTest, WritesToFilesInPlaceOfLogs) {
  connect();
  const std::string file = (root_ / "file").string(), other = (root_ / "other").string();
  const auto write = [this](uint32_t index, uint16_t instance, core::ProcessSettings settings) {
    SpawnOrder order = shell(index, "echo out " + std::to_string(index) + "; echo err >&2");
    order.key.instance = instance;
    settings.umask = 027;
    order.settings = core::node::settings_bytes(settings);
    return run(order);
  };
  EXPECT_EQ(write(0, 0, {.out = file}).exit_code, 0);
  EXPECT_EQ(read_file(file), "out 0\nerr\n");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0640));
  EXPECT_EQ(read_file(root_ / "out0"), "") << "its log";
  EXPECT_EQ(write(1, 0, {.out = file, .err = other}).exit_code, 0);
  EXPECT_EQ(read_file(file), "out 1\n") << "begun anew";
  EXPECT_EQ(read_file(other), "err\n");
  EXPECT_EQ(write(2, 0, {.out = file, .append = true}).exit_code, 0);
  EXPECT_EQ(write(3, 1, {.out = file}).exit_code, 0);
  EXPECT_EQ(read_file(file), "out 1\nout 2\nerr\nout 3\nerr\n") << "after a restart in place, too";
  EXPECT_EQ(write(4, 0, {.err = other}).exit_code, 0);
  EXPECT_EQ(read_file(root_ / "out4"), "out 4\n");
  fs::create_symlink(file, root_ / "link");
  ASSERT_EQ(mkfifo((root_ / "fifo").c_str(), 0600), 0);  // without a reader
  for (const char* wrong : {"link", "none/file", ".", "fifo"}) {
    const std::string path = (root_ / wrong).string();
    const keeper::Ended end = write(5 + static_cast<uint32_t>(*wrong), 0, {.out = path});
    EXPECT_TRUE(end.not_here()) << end.exit_code;
    EXPECT_EQ(end.error.rfind("open " + path + ": ", 0), 0u) << end.error;
  }
  EXPECT_EQ(read_file(file), "out 1\nout 2\nerr\nout 3\nerr\n");
}

TEST_P(KeeperTest, SignalsProcessOrItsGroup) {
  connect();
  const auto met = [this](uint32_t index, bool first_only) {
    const std::string name = "met" + std::to_string(index), file = (root_ / name).string();
    SpawnOrder what =
        shell(index, "trap 'echo parent >>" + file + "' USR1; (trap 'echo child >>" + file +
                         "; exit' USR1; echo >>" + file + ".up; while :; do sleep 0.02; done) & " +
                         "while ! grep -q " + (first_only ? "parent" : "child") + " " + file +
                         "; do sleep 0.02; done; sleep 0.1");
    const ProcessKey key = what.key;
    agent_->client->spawn({std::move(what)});
    EXPECT_TRUE(wait_for([&] {
      return fs::exists(file + ".up") &&
             std::ranges::any_of(agent_->started, [&](const auto& s) { return key_of(s) == key; });
    }));
    agent_->client->signal(key, SIGUSR1, first_only);
    EXPECT_TRUE(wait_for([&] { return agent_->end_of(key) != nullptr; }));
    std::istringstream lines(read_file(file));
    return std::set<std::string>{std::istream_iterator<std::string>(lines), {}};
  };
  EXPECT_EQ(met(0, true), (std::set<std::string>{"parent"}));
  EXPECT_EQ(met(1, false), (std::set<std::string>{"child", "parent"}));
  agent_->client->signal({{7, 99, 0}, 0, 0}, SIGUSR1, false);  // nothing of that name runs
  EXPECT_EQ(run(shell(2, "exit 4")).exit_code, 4);
}

TEST_P(KeeperTest, SaysWhatProcessesHaveUsed) {
  connect();
  const auto used = [this](uint32_t index, const std::string& script) {
    return run(order(index, {"/usr/bin/python3", "-c", script})).used;
  };
  const core::Usage small = used(0, "pass");
  const core::Usage large = used(1, "x = bytearray(200 << 20)");
  const core::Usage busy = used(2, "import time\nwhile time.process_time() < 0.3: pass");
  EXPECT_GT(small.peak_bytes, 1u << 20);
  EXPECT_GT(large.peak_bytes, 200u << 20);
  EXPECT_LT(small.peak_bytes, 200u << 20);
  EXPECT_GE(busy.cpu_us(), 300'000u);
  EXPECT_EQ(run(order(3, {"/no/such"})).used, core::Usage{}) << "nothing ran";
  // It is kept until the end is forgotten.
  const core::Usage children = used(
      4, "import subprocess as s, sys\ns.run([sys.executable, '-c', 'x = bytearray(99 << 20)'])");
  EXPECT_GT(children.peak_bytes, 99u << 20) << "those that were waited for count";
  kill_keeper();
  connect();
  std::map<uint32_t, core::Usage> kept;
  for (const keeper::Ended& end : agent_->inventory.ended) kept[end.pod.index] = end.used;
  EXPECT_EQ(kept, (std::map<uint32_t, core::Usage>{
                      {0, small}, {1, large}, {2, busy}, {3, {}}, {4, children}}));
}

TEST_P(KeeperTest, PassesSecretsOnlyToProcess) {
  connect();
  const auto secret = [this](const std::string& name, const std::string& content, mode_t mode) {
    const fs::path path = root_ / name;
    std::ofstream(path) << content;
    chmod(path.c_str(), mode);
    return path.string();
  };
  const std::string value = "hunter" + std::to_string(getpid());
  SpawnOrder what = shell(0, "echo \"<$PASSWORD> <${MAYBE-unset}> <$TWO>\"");
  what.secrets = {{"MAYBE", (root_ / "missing").string(), true},
                  {"PASSWORD", secret("password", value + "\n", 0600), false},
                  {"TWO", secret("two", "a\nb\n\n", 0400), false}};
  EXPECT_EQ(run(what).exit_code, 0);
  EXPECT_EQ(read_file(root_ / "out0"), "<" + value + "> <unset> <a\nb\n>\n");
  for (const auto& entry : fs::recursive_directory_iterator(work_dir_)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(read_file(entry.path()).find(value), std::string::npos) << entry.path();
  }

  mkfifo((root_ / "pipe").c_str(), 0600);
  const std::vector<std::pair<std::string, std::string>> bad = {
      {(root_ / "missing").string(), "No such file or directory"},
      {secret("open", "x", 0640), "others can read or change it; chmod 600 it"},
      {(root_ / "pipe").string(), "it is not a regular file"},
      {root_.string(), "it is not a regular file"},
      {secret("null", std::string("a\0b", 3), 0600),
       "it has a null byte, which no variable can have"},
      {secret("long", std::string(128 << 10, 'x'), 0600),
       "it is longer than a variable can be (128 KiB)"}};
  uint32_t index = 1;
  for (const auto& [path, why] : bad) {
    what = shell(index++, "true");
    what.secrets = {{"PASSWORD", path, false}};
    const keeper::Ended end = run(what);
    EXPECT_EQ(end.exit_code, path.ends_with("missing") ? core::kExitNotHere : 126) << path;
    EXPECT_EQ(end.error, "variable PASSWORD: secret " + path + ": " + why);
  }
  what = shell(index, "echo ${#LONG}");  // the longest that the kernel accepts
  what.secrets = {{"LONG", secret("longest", std::string((128 << 10) - 6, 'x'), 0600), false}};
  EXPECT_EQ(run(what).exit_code, 0);
  EXPECT_EQ(read_file(root_ / ("out" + std::to_string(index))), "131066\n");
}

TEST_P(KeeperTest, KillsAtOnceOrAfterTheGrace) {
  connect();
  agent_->client->spawn({shell(0, "trap '' TERM; echo up > t0; while :; do sleep 0.01; done"),
                         shell(1, "trap 'exit 3' TERM; echo up > t1; while :; do sleep 0.01; done"),
                         shell(2, "exec sleep 1000"),
                         shell(3, "trap '' TERM; echo up > t3; while :; do sleep 0.01; done")});
  ASSERT_TRUE(wait_for([this] {
    return fs::exists(root_ / "t0") && fs::exists(root_ / "t1") && fs::exists(root_ / "t3");
  }));
  auto key = [](uint32_t index) { return ProcessKey{{7, index, 0}, 0, 0}; };
  agent_->client->kill(key(0), 50);
  agent_->client->kill(key(1), 600'000);
  agent_->client->kill(key(2), 0);
  agent_->client->kill(key(3), 600'000);
  agent_->client->kill(key(3), 700'000);
  agent_->client->kill(key(3), 60);  // the shorter grace counts
  agent_->client->kill(key(9), 0);   // unknown
  ASSERT_TRUE(wait_for([this] { return agent_->ended.size() == 4; }));
  EXPECT_EQ(agent_->end_of(key(0))->signal, SIGKILL);
  EXPECT_EQ(agent_->end_of(key(1))->exit_code, 3);
  EXPECT_EQ(agent_->end_of(key(2))->exit_code, 137);
  EXPECT_EQ(agent_->end_of(key(3))->signal, SIGKILL);
}

TEST_P(KeeperTest, AKillOutlivesTheAgent) {
  connect();
  agent_->client->spawn(
      {shell(0, "trap 'echo asked > k0' TERM; echo up > t0; while :; do sleep 0.01; done")});
  ASSERT_TRUE(wait_for([this] { return fs::exists(root_ / "t0"); }));
  agent_->client->kill({{7, 0, 0}, 0, 0}, 1'000);
  ASSERT_TRUE(wait_for([this] { return fs::exists(root_ / "k0"); }));
  connect();
  if (agent_->inventory.ended.empty()) {
    ASSERT_EQ(agent_->inventory.living.size(), 1u);
    EXPECT_TRUE(agent_->inventory.living[0].killing);
    ASSERT_TRUE(wait_for([this] { return !agent_->ended.empty(); }));
    EXPECT_EQ(agent_->ended[0].signal, SIGKILL);
  }
}

TEST_P(KeeperTest, KillsAllDescendantsWhenProcessEnds) {
  connect();
  // Processes that the commands leave behind: one in its process group; one in another session; an
  // orphaned session with a child; one that ignores SIGTERM and SIGHUP.
  const std::vector<std::string> scripts = {
      "sleep 1000 & echo $! > p0; exit 5",
      "setsid sh -c 'echo $$ > p1; exec sleep 1000' & while ! test -s p1; do :; done",
      "(setsid sh -c 'sleep 1000 & echo $! > p2; wait' &) ; while ! test -s p2; do :; done",
      "(trap '' TERM HUP; sleep 1000) & echo $! > p3",
  };
  for (uint32_t i = 0; i < scripts.size(); ++i) {
    agent_->client->spawn({shell(i, scripts[i])});
    ASSERT_TRUE(wait_for([&] {
      return agent_->end_of({{7, i, 0}, 0, 0}) != nullptr;
    })) << scripts[i];
    int pid = pid_in("p" + std::to_string(i));
    ASSERT_GT(pid, 0);
    EXPECT_FALSE(is_alive(pid)) << scripts[i];
  }
  EXPECT_EQ(agent_->end_of({{7, 0, 0}, 0, 0})->exit_code, 5);
  EXPECT_TRUE(pids_with(mark()).empty());
}

TEST_P(KeeperTest, EndOfOneContainerSparesProcessesOfOthers) {
  connect();
  // Two containers of one pod: the escaped child of the first survives the end of the second.
  SpawnOrder first =
      shell(0, "setsid sh -c 'echo $$ > p0; exec sleep 1000' & wait; exec sleep 1000");
  SpawnOrder second = shell(0, "setsid sleep 1000 & exit 0");
  second.key.container = 1;
  // The parent exits, so the child is reparented to the keeper.
  first.argv[2] = "(setsid sh -c 'echo $$ > p0; exec sleep 1000' &) ; exec sleep 1000";
  agent_->client->spawn({first});
  int pid = pid_in("p0");
  EXPECT_EQ(run(second).exit_code, 0);
  EXPECT_TRUE(is_alive(pid));
  agent_->client->kill(first.key, 0);
  ASSERT_TRUE(wait_for([&] { return agent_->end_of(first.key) != nullptr; }));
  EXPECT_FALSE(is_alive(pid));
}

// The cgroup of a process, relative to our own, or "".
std::string cgroup_of(int pid) {
  std::istringstream lines(read_file("/proc/" + std::to_string(pid) + "/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.find("/muster-");
    if (line.starts_with("0::") && at != std::string::npos) return line.substr(at);
  }
  return "";
}

TEST_P(KeeperTest, ReusesCgroupsExceptLimitedOrKilledOnes) {
  connect();
  if (!agent_->client->abilities().cgroups) GTEST_SKIP() << "no cgroup v2 that we may write to";
  std::vector<std::string> names;
  enum { plain, limited, killed };
  uint32_t index = 0;
  for (int kind : {plain, plain, limited, plain, killed, plain}) {
    SpawnOrder what =
        shell(index, "until test -e go" + std::to_string(index) + "; do sleep 0.01; done");
    if (kind == limited) what.memory_limit_bytes = 1u << 30;
    agent_->client->spawn({what});
    ASSERT_TRUE(wait_for([&] { return agent_->started.size() > index; }));
    names.push_back(cgroup_of(agent_->started.back().pid));
    if (kind == killed) {
      agent_->client->kill(what.key, 0);
    } else {
      std::ofstream(root_ / ("go" + std::to_string(index)));
    }
    ASSERT_TRUE(wait_for([&] { return agent_->end_of(what.key) != nullptr; }));
    EXPECT_EQ(agent_->end_of(what.key)->exit_code, kind == killed ? 137 : 0);
    ++index;
  }
  EXPECT_NE(names[0], "");
  EXPECT_EQ(names[1], names[0]);
  EXPECT_EQ(names[2] != names[0], agent_->client->abilities().memory_limit);
  EXPECT_EQ(names[3], names[0]);
  EXPECT_EQ(names[4], names[0]);
  EXPECT_NE(names[5], names[0]) << "that one was killed";
}

TEST_P(KeeperTest, SpeaksEachSupportedProtocolVersion) {
  for (uint32_t version = keeper::kOldestVersion; version < keeper::kVersion; ++version) {
    SCOPED_TRACE(version);
    speak(version);
  }
}

TEST_P(KeeperTest, OutlivesAgentAndReportsMissedEnds) {
  connect();
  SpawnOrder large = shell(1, "exec sleep 1000");
  large.note = std::string(1u << 20, 'n') + "end";
  agent_->client->spawn({shell(0, "while ! test -f go; do sleep 0.01; done; exit 9"), large});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 2; }));
  agent_.reset();
  std::ofstream(root_ / "go") << "go";
  ASSERT_TRUE(wait_for([this] { return pids_with(mark()).size() == 1; }));
  ASSERT_TRUE(wait_for([this] { return !connect().inventory.ended.empty(); }));
  ASSERT_EQ(agent_->inventory.ended.size(), 1u);
  EXPECT_EQ(agent_->inventory.ended[0].exit_code, 9);
  EXPECT_EQ(agent_->inventory.ended[0].note, "note 0");
  ASSERT_EQ(agent_->inventory.living.size(), 1u);
  EXPECT_EQ(agent_->inventory.living[0].note, large.note);
  EXPECT_TRUE(agent_->inventory.living[0].start);
  agent_->client->forget({agent_->inventory.ended[0].entry.value()});
  connect();
  EXPECT_TRUE(agent_->inventory.ended.empty());
  EXPECT_EQ(agent_->inventory.living.size(), 1u);
}

TEST_P(KeeperTest, RepeatedOrderStartsProcessOnce) {
  connect();
  SpawnOrder what = shell(0, "echo ran >> runs; while ! test -f go; do sleep 0.01; done");
  agent_->client->spawn({what, what});
  agent_->client->spawn({what});
  ASSERT_TRUE(wait_for([this] { return fs::exists(root_ / "runs"); }));
  std::ofstream(root_ / "go") << "go";
  ASSERT_TRUE(wait_for([this] { return !agent_->ended.empty(); }));
  agent_->client->spawn({what});  // its end is reported again
  ASSERT_TRUE(wait_for([this] { return agent_->ended.size() == 2; }));
  EXPECT_EQ(agent_->ended[0].entry, agent_->ended[1].entry);
  EXPECT_EQ(read_file(root_ / "runs"), "ran\n");
}

TEST_P(KeeperTest, ReportsProcessesOfKilledKeeperAsLost) {
  connect();
  EXPECT_EQ(run(shell(0, "exit 4")).exit_code, 4);
  EXPECT_EQ(run(shell(1, "exit 5")).exit_code, 5);
  agent_->client->forget({agent_->end_of({{7, 1, 0}, 0, 0})->entry.value()});
  agent_->client->spawn({shell(2, "sleep 1000 & exec sleep 1000"),
                         shell(3, "(setsid sleep 1000 &) ; exec env -i sleep 1000"),
                         shell(4, "trap '' TERM HUP; while :; do sleep 0.01; done")});
  ASSERT_TRUE(
      wait_for([this] { return agent_->started.size() == 5 && pids_with(mark()).size() >= 4; }));
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 5; }));
  kill_keeper();
  std::vector<int> pids;
  for (const auto& started : agent_->started) pids.push_back(started.pid);
  connect();
  EXPECT_TRUE(pids_with(mark()).empty());
  for (int pid : pids) EXPECT_FALSE(is_alive(pid));
  auto ended = [this] {
    auto all = agent_->inventory.ended;
    all.insert(all.end(), agent_->ended.begin(), agent_->ended.end());
    return all;
  };
  ASSERT_TRUE(wait_for([&] { return ended().size() == 4; }));
  EXPECT_TRUE(agent_->inventory.living.empty());
  for (const auto& end : ended()) {
    EXPECT_EQ(end.lost, end.pod.index != 0);
    EXPECT_EQ(end.exit_code, end.lost ? 137 : 4);
    EXPECT_EQ(end.note, "note " + std::to_string(end.pod.index));
  }
  kill_keeper();
  connect();
  EXPECT_EQ(agent_->inventory.ended.size(), 4u);  // lost for good, and reported until forgotten
}

TEST_P(KeeperTest, CutsATornTail) {
  connect();
  EXPECT_EQ(run(shell(0, "exit 4")).exit_code, 4);
  kill_keeper();
  std::string bytes = read_file(last_segment());
  size_t end = bytes.find_last_not_of('\0') + 1;
  std::ofstream(last_segment(), std::ios::binary | std::ios::in)
          .seekp(static_cast<std::streamoff>((end + 7) / 8 * 8 + 16))
      << "MUSP torn";
  connect();
  ASSERT_EQ(agent_->inventory.ended.size(), 1u);
  EXPECT_EQ(agent_->inventory.ended[0].exit_code, 4);
  EXPECT_FALSE(agent_->inventory.ended[0].lost);
}

TEST_P(KeeperTest, RefusesASpoolDamagedInTheMiddle) {
  connect();
  EXPECT_EQ(run(shell(0, "exit 4")).exit_code, 4);
  EXPECT_EQ(run(shell(1, "exit 5")).exit_code, 5);
  agent_->client->spawn({shell(2, "exec sleep 1000")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 3; }));
  kill_keeper();
  std::string bytes = read_file(last_segment());
  size_t at = bytes.find("note 0");  // what follows it is written as differences
  ASSERT_NE(at, std::string::npos);
  std::ofstream(last_segment(), std::ios::binary | std::ios::in)
          .seekp(static_cast<std::streamoff>(at))
      << "N";
  agent_.reset();
  Agent agent;
  auto client = try_connect(agent);
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, Errc::invalid);
  EXPECT_NE(client.error().message.find("damaged"), std::string::npos) << client.error().message;
  EXPECT_TRUE(pids_with(mark()).empty());
}

TEST_P(KeeperTest, P33ASpoolThatLostItsTailIsDamaged) {
  for (const bool all : {false, true}) {
    connect();
    EXPECT_EQ(run(shell(0, "exit 4")).exit_code, 4);
    const size_t before = read_file(last_segment()).find_last_not_of('\0');
    EXPECT_EQ(run(shell(1, "exit 5")).exit_code, 5);
    kill_keeper();
    if (all)
      fs::remove(last_segment());
    else
      fs::resize_file(last_segment(), before + 1);
    agent_.reset();
    Agent agent;
    const auto client = try_connect(agent);
    ASSERT_FALSE(client.ok());
    EXPECT_EQ(client.error().code, Errc::invalid);
    EXPECT_NE(client.error().message.find(all ? "is missing" : "ends at byte"), std::string::npos)
        << client.error().message;
    fs::remove_all(work_dir_ / "keeper");  // as the agent does
  }
}

TEST_P(KeeperTest, DropsOldSegmentsAndCarriesRunningProcesses) {
  setenv("MUSTER_KEEPER_SEGMENT_BYTES", "65536", 1);
  connect();
  SpawnOrder living = shell(0, "exec sleep 1000");
  agent_->client->spawn({living});
  constexpr uint32_t kCount = 400;
  for (uint32_t i = 1; i <= kCount; ++i) {
    SpawnOrder what = order(i, {"true"});
    what.note = long_note(4000, i);
    agent_->client->spawn({what});
  }
  ASSERT_TRUE(wait_for([&] { return agent_->ended.size() == kCount; }));
  std::vector<uint64_t> entries;
  for (const auto& end : agent_->ended) entries.push_back(end.entry.value());
  agent_->client->forget(entries);
  ASSERT_TRUE(wait_for([this] {
    auto files = fs::directory_iterator(work_dir_ / "keeper/spool");
    return std::distance(begin(files), end(files)) <= 12;  // with spares; it would be 30 otherwise
  }));
  kill_keeper();
  connect();
  std::vector<keeper::Ended> all = agent_->inventory.ended;
  ASSERT_TRUE(wait_for([&] { return !all.empty() || !agent_->ended.empty(); }));
  all.insert(all.end(), agent_->ended.begin(), agent_->ended.end());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(key_of(all[0]), living.key);
  EXPECT_TRUE(all[0].lost);
  EXPECT_EQ(all[0].note, "note 0");
}

TEST_P(KeeperTest, WorksInALongPath) {
  for (int i = 0; i < 4; ++i) work_dir_ /= std::string(60, 'd');
  fs::create_directories(work_dir_);
  connect();
  EXPECT_EQ(run(shell(0, "exit 6")).exit_code, 6);
}

TEST_P(KeeperTest, ANewAgentReplacesTheOld) {
  connect();
  std::unique_ptr<Agent> old = std::move(agent_);
  connect();
  EXPECT_TRUE(wait_for([&] { return !old->gone.empty(); }));
  EXPECT_EQ(run(shell(0, "exit 6")).exit_code, 6);
}

TEST_P(KeeperTest, ExitsWhenItsWorkDirIsRemoved) {
  connect();
  agent_->client->spawn({shell(0, "exec sleep 1000")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 1; }));
  fs::remove_all(work_dir_);
  EXPECT_TRUE(wait_for([this] { return !agent_->gone.empty(); }));
  EXPECT_TRUE(pids_with(mark()).empty());
  agent_.reset();
}

TEST_P(KeeperTest, ExitsWithoutAgentAndProcesses) {
  connect();
  EXPECT_EQ(run(shell(0, "exit 6")).exit_code, 6);
  agent_.reset();
  EXPECT_TRUE(wait_for([this] { return keeper_pid() == 0; }));
  connect();  // a new keeper, which knows the end
  ASSERT_EQ(agent_->inventory.ended.size(), 1u);
  EXPECT_EQ(agent_->inventory.ended[0].exit_code, 6);
}

TEST_P(KeeperTest, EndAllKillsAllProcessesAndExits) {
  connect();
  agent_->client->spawn(
      {shell(0, "trap '' TERM; sleep 1000 & sleep 1000"), shell(1, "exec sleep 1000")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 2; }));
  agent_->client->end_all();
  ASSERT_TRUE(wait_for([this] { return !agent_->gone.empty(); }));
  EXPECT_EQ(agent_->ended.size(), 2u);
  EXPECT_TRUE(pids_with(mark()).empty());
  agent_.reset();
}

class P12NotAfter : public KeeperTest {
 protected:
  ~P12NotAfter() noexcept override {}
  bool reported_unstarted(uint32_t index, uint16_t instance = 0) {
    return wait_for([&] {
      const keeper::Ended* end = agent_->end_of({{7, index, 0}, 0, instance});
      return end != nullptr && end->unstarted && !end->start;
    });
  }
};

TEST_P(P12NotAfter, KeeperRefusesALateStart) {
  connect();
  SpawnOrder what = shell(0, "echo ran > ran; exit 0");
  what.not_after = boot_now() - 1;
  agent_->client->spawn({what});
  EXPECT_TRUE(reported_unstarted(0));
  EXPECT_FALSE(fs::exists(root_ / "ran"));
  kill_keeper();
  connect();
  EXPECT_TRUE(agent_->inventory.ended.empty()) << "pods that never ran are not reported as lost";
  EXPECT_TRUE(agent_->inventory.living.empty());
  what.not_after = boot_now() + 60'000;
  EXPECT_EQ(run(what).exit_code, 0) << "it is like new";
  EXPECT_TRUE(fs::exists(root_ / "ran"));
}

TEST_P(P12NotAfter, AFrozenKeeperStartsNothingLate) {
  connect();
  EXPECT_EQ(run(shell(9, "exit 0")).exit_code, 0);
  int keeper = keeper_pid();
  ASSERT_GT(keeper, 0);
  ::kill(keeper, SIGSTOP);
  std::vector<SpawnOrder> orders;
  for (uint32_t i = 0; i < 4; ++i) {
    orders.push_back(shell(i, "echo ran > ran; exit 0"));
    orders.back().not_after = boot_now() + 50;
  }
  agent_->client->spawn(orders);
  Millis until = orders.back().not_after.value();
  EXPECT_TRUE(wait_for([&] { return boot_now() >= until; }));
  ::kill(keeper, SIGCONT);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(reported_unstarted(i)) << i;
  EXPECT_FALSE(fs::exists(root_ / "ran"));
}

// A worker that hangs in the file system, here on a pipe without a reader.
TEST_P(P12NotAfter, AWorkerThatHungStartsNothingLate) {
  connect();
  SpawnOrder what = shell(0, "echo ran > ran; exit 0");
  what.key.instance = 1;  // after a restart in place, so the file may exist
  ASSERT_EQ(mkfifo(what.stdout_path.c_str(), 0600), 0);
  what.not_after = boot_now() + 50;
  agent_->client->spawn({what});
  EXPECT_TRUE(wait_for([&] { return boot_now() >= what.not_after; }));
  EXPECT_TRUE(agent_->ended.empty());
  int reader = open(what.stdout_path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_TRUE(reported_unstarted(0, 1));
  close(reader);
  EXPECT_FALSE(fs::exists(root_ / "ran"));
}

// Every worker hangs in the file system, so only the main thread can notice ends.
TEST_P(KeeperTest, EndsAreNoticedWhileStartsHang) {
  connect();
  const auto workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<SpawnOrder> living, hanging;
  for (uint32_t i = 0; i < 2 * workers; ++i)
    living.push_back(shell(i, "while ! test -f go; do sleep 0.01; done; exit 3"));
  agent_->client->spawn(living);
  ASSERT_TRUE(wait_for([&] { return agent_->started.size() == living.size(); }));
  for (uint32_t i = 0; i < workers; ++i) {
    hanging.push_back(shell(1000 + i, "exit 0"));
    hanging.back().key.instance = 1;  // after a restart in place, so the file may exist
    ASSERT_EQ(mkfifo(hanging.back().stdout_path.c_str(), 0600), 0);
  }
  agent_->client->spawn(hanging);
  agent_->client->settled().wait(io_.waitScope);
  std::ofstream(root_ / "go").put('\n');
  EXPECT_TRUE(wait_for([&] { return agent_->ended.size() == living.size(); }));
  for (const SpawnOrder& one : living) {
    const keeper::Ended* end = agent_->end_of(one.key);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->exit_code, 3);
  }
  std::vector<kj::AutoCloseFd> readers;
  for (const SpawnOrder& one : hanging)
    readers.emplace_back(open(one.stdout_path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(wait_for([&] { return agent_->ended.size() == living.size() + hanging.size(); }));
  for (const SpawnOrder& one : hanging) EXPECT_EQ(agent_->end_of(one.key)->exit_code, 0);
}

// A starting child holds the lock, so that another keeper notices it, and has no output open.
TEST_P(KeeperTest, StartingChildHoldsLockAndNoOtherDescriptors) {
  connect();
  EXPECT_EQ(run(shell(1, "echo out; echo err >&2")).exit_code, 0);
  EXPECT_EQ(run(shell(2, "ls -l /proc/self/fd | grep -c -- '->' ")).exit_code, 0);
  EXPECT_EQ(read_file(root_ / "out2"), "4\n") << "0, 1, 2, and the directory that ls reads";
  EXPECT_EQ(run(shell(3, "echo x 2>/dev/null >&0 && exit 9; exit 0")).exit_code, 0)
      << "stdin is for reading";
  const fs::path fds = "/proc/" + std::to_string(keeper_pid()) + "/fd";
  EXPECT_EQ(fs::read_symlink(fds / "3"), "/dev/null");
  EXPECT_EQ(fs::read_symlink(fds / "4"), work_dir_ / "keeper/lock");
  for (int fd = 5; fd < 21; ++fd)
    EXPECT_EQ(fs::read_symlink(fds / std::to_string(fd)), "/dev/null") << fd;
}

class FenceAfter : public P12NotAfter {
 protected:
  ~FenceAfter() noexcept override {}
  SpawnOrder fenced(uint32_t index, Millis after_ms) {
    SpawnOrder what = shell(index, "echo $$ > pid" + std::to_string(index) + "; sleep 1000");
    what.fence_after_ms = after_ms;
    what.fence_grace_ms = 60'000;
    return what;
  }
  bool lives(uint32_t index) {
    const int pid = pid_in("pid" + std::to_string(index));
    return pid > 0 && ::kill(pid, 0) == 0;
  }
};

TEST_P(FenceAfter, KeeperEndsAndLogsProcessesWithoutContact) {
  connect();
  agent_->client->contact(boot_now());
  agent_->client->spawn({fenced(0, 300), fenced(1, 600'000), shell(2, "exec sleep 1000")});
  ASSERT_TRUE(lives(1));
  agent_.reset();  // no more contacts
  ASSERT_TRUE(wait_for([this] {
    const auto log = read_file(work_dir_ / "keeper/keeper.log");
    return log.find("without contact: note 0") != std::string::npos;
  }));
  connect();
  ASSERT_TRUE(wait_for([this] {
    return !agent_->inventory.ended.empty() || agent_->end_of({{7, 0, 0}, 0, 0}) != nullptr;
  }));
  kill_keeper();  // the spool has it too
  connect();
  std::map<uint32_t, bool> fenced_now;
  for (const keeper::Ended& end : agent_->inventory.ended) fenced_now[end.pod.index] = end.fenced;
  EXPECT_EQ(fenced_now, (std::map<uint32_t, bool>{{0, true}, {1, false}, {2, false}}));
}

TEST_P(FenceAfter, OnlyTheNewestContactCounts) {
  connect();
  agent_->client->contact(boot_now() - 90'000);
  agent_->client->spawn({fenced(0, 600'000), fenced(1, 60'000)});
  const ProcessKey second{{7, 1, 0}, 0, 0};
  ASSERT_TRUE(wait_for([&] { return agent_->end_of(second) != nullptr; }));
  EXPECT_TRUE(agent_->end_of(second)->fenced);
  agent_->client->contact(boot_now());
  agent_->client->contact(boot_now() - 700'000);
  agent_->client->contact(boot_now() + 100'000'000);  // a wrong clock delays nothing
  EXPECT_EQ(run(shell(9, "exit 0")).exit_code, 0);    // all of these have arrived
  EXPECT_TRUE(lives(0));
  agent_->client->spawn({fenced(3, 50)});
  const ProcessKey third{{7, 3, 0}, 0, 0};
  EXPECT_TRUE(wait_for([&] { return agent_->end_of(third) != nullptr; }));
}

TEST_P(FenceAfter, FrozenKeeperFencesOnceContinued) {
  connect();
  agent_->client->contact(boot_now());
  agent_->client->spawn({fenced(0, 200)});
  const Millis until = boot_now() + 300;
  if (!lives(0)) GTEST_SKIP() << "too slow to freeze it in time";
  ::kill(keeper_pid(), SIGSTOP);
  EXPECT_TRUE(wait_for([&] { return boot_now() >= until; }));
  ::kill(keeper_pid(), SIGCONT);
  const ProcessKey key{{7, 0, 0}, 0, 0};
  ASSERT_TRUE(wait_for([&] { return agent_->end_of(key) != nullptr; }));
  EXPECT_TRUE(agent_->end_of(key)->fenced);
}

class P13Keeper : public KeeperTest {
 protected:
  ~P13Keeper() noexcept override {}
  // Polls until the keeper reports this trouble.
  bool wait_for_trouble(const std::string& reason) {
    auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      trouble_ = agent_->client->check();
      if (trouble_.reason == reason) return true;
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.provider->getTimer().afterDelay(100 * kj::MILLISECONDS).wait(io_.waitScope);
    }
  }
  // Limits the size of the keeper's files: writes beyond it fail.
  void limit_files(rlim_t bytes) {
    rlimit limit{};
    ASSERT_EQ(prlimit(keeper_pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
    limit.rlim_cur = bytes;
    ASSERT_EQ(prlimit(keeper_pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  }
  core::node::Trouble trouble_;
};

TEST_P(P13Keeper, EndsThatCannotBeWrittenAreReportedWhenTheyCan) {
  connect();
  agent_->client->spawn({shell(0, "while ! test -f go; do sleep 0.01; done; exit 0"),
                         shell(1, "while ! test -f go; do sleep 0.01; done; exit 3")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 2; }));
  EXPECT_TRUE(wait_for_trouble(""));
  limit_files(0);
  std::ofstream(root_ / "go") << "go";
  EXPECT_TRUE(wait_for_trouble("SpoolNotWritable"));
  EXPECT_NE(trouble_.message.find("spool: write: File too large"), std::string::npos)
      << trouble_.message;
  EXPECT_TRUE(wait_for([this] { return pids_with(mark()).empty(); }));
  SpawnOrder late = shell(2, "echo ran > ran");
  late.not_after = boot_now() + 50;
  agent_->client->spawn({late});
  EXPECT_TRUE(wait_for([&] { return boot_now() >= late.not_after; }));
  ::kill(keeper_pid(), SIGTERM);  // ignored while ends are only in memory
  connect();                      // a new agent sees the same
  EXPECT_TRUE(wait_for_trouble("SpoolNotWritable"));
  EXPECT_TRUE(agent_->inventory.ended.empty());
  EXPECT_EQ(agent_->inventory.living.size(), 3u);
  EXPECT_TRUE(agent_->ended.empty());
  limit_files(RLIM_INFINITY);
  EXPECT_TRUE(wait_for_trouble(""));
  ASSERT_TRUE(wait_for([this] { return agent_->ended.size() == 3; }));
  EXPECT_EQ(agent_->end_of({{7, 0, 0}, 0, 0})->exit_code, 0);
  EXPECT_EQ(agent_->end_of({{7, 1, 0}, 0, 0})->exit_code, 3);
  EXPECT_FALSE(agent_->end_of({{7, 0, 0}, 0, 0})->lost);
  EXPECT_TRUE(agent_->end_of({{7, 2, 0}, 0, 0})->unstarted);
  EXPECT_FALSE(fs::exists(root_ / "ran"));
}

TEST_P(P13Keeper, StartsNothingWithoutRoomForItsEnd) {
  setenv("MUSTER_KEEPER_SEGMENT_BYTES", "65536", 1);
  connect();
  EXPECT_EQ(run(shell(9, "exit 0")).exit_code, 0);
  limit_files(65'000);  // there is room for entries, but not for another segment
  std::vector<SpawnOrder> orders;
  for (uint32_t i = 0; i < 4; ++i) {
    orders.push_back(shell(i, "while ! test -f go; do sleep 0.01; done; exit 0"));
    orders.back().note = long_note(20'000, i);
  }
  agent_->client->spawn(orders);
  auto end_of = [this](uint32_t index) { return agent_->end_of({{7, index, 0}, 0, 0}); };
  ASSERT_TRUE(wait_for([&] { return end_of(3) != nullptr; }));
  EXPECT_TRUE(end_of(3)->unstarted);
  EXPECT_EQ(end_of(3)->error, "spool: File too large");
  EXPECT_TRUE(wait_for_trouble("SpoolNotWritable"));
  EXPECT_NE(trouble_.message.find("no room"), std::string::npos) << trouble_.message;
  std::ofstream(root_ / "go") << "go";
  ASSERT_TRUE(wait_for([&] { return end_of(0) && end_of(1) && end_of(2); })) << "as before";
  EXPECT_EQ(end_of(2)->exit_code, 0);
  limit_files(RLIM_INFINITY);
  EXPECT_TRUE(wait_for_trouble(""));
  connect();
  EXPECT_EQ(run(orders[3]).exit_code, 0);
}

TEST_P(P13Keeper, AFrozenKeeperIsNoticed) {
  connect();
  EXPECT_TRUE(wait_for_trouble(""));
  int keeper = keeper_pid();
  ::kill(keeper, SIGSTOP);
  EXPECT_TRUE(wait_for_trouble("KeeperNotResponding"));
  ::kill(keeper, SIGCONT);
  EXPECT_TRUE(wait_for_trouble(""));
}

// The question is asked before the agent has read the keeper's messages.
TEST_P(KeeperTest, EndsSeenByKeeperAreKnownOnceSettled) {
  connect();
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string go = "go" + std::to_string(i);
    agent_->client->spawn({shell(i, "while ! test -f " + go + "; do sleep 0.01; done; exit 3")});
    ASSERT_TRUE(wait_for([&] { return agent_->started.size() == i + 1; }));
    std::ofstream(root_ / go) << "";
    const int pid = agent_->started.back().pid;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (::kill(pid, 0) == 0) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    if (i == 1) (void)agent_->client->check();  // the ping is answered first
    agent_->client->settled().wait(io_.waitScope);
    const ProcessKey key{{7, i, 0}, 0, 0};
    ASSERT_TRUE(agent_->end_of(key)) << i;
    EXPECT_EQ(agent_->end_of(key)->exit_code, 3);
  }
}

TEST_P(KeeperTest, ConcurrentSettledCallsAreAllAnswered) {
  connect();
  std::vector<kj::Promise<void>> asked;
  for (int i = 0; i < 5; ++i) asked.push_back(agent_->client->settled());
  for (auto& one : asked)
    io_.provider->getTimer()
        .timeoutAfter(kPatience.count() * kj::SECONDS, kj::mv(one))
        .wait(io_.waitScope);
}

TEST_P(KeeperTest, P30EndsOnSigtermWhenNothingRuns) {
  connect();
  agent_->client->spawn({shell(0, "while ! test -f go; do sleep 0.01; done; exit 6")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 1; }));
  int keeper = keeper_pid();
  ::kill(keeper, SIGTERM);
  fs::path log = work_dir_ / "keeper/keeper.log";
  EXPECT_TRUE(wait_for([&] {
    return read_file(log).find("ignoring SIGTERM: 1 processes are running") != std::string::npos;
  }));
  EXPECT_EQ(run(shell(1, "exit 0")).exit_code, 0) << "it goes on";
  std::ofstream(root_ / "go") << "go";
  ASSERT_TRUE(wait_for([this] { return agent_->ended.size() == 2; }));
  EXPECT_EQ(keeper_pid(), keeper);
  ::kill(keeper, SIGTERM);
  EXPECT_TRUE(wait_for([this] { return !agent_->gone.empty() && keeper_pid() == 0; }));
  size_t begun = 0;
  for (const auto& file : fs::directory_iterator(work_dir_ / "keeper/spool")) {
    const std::string bytes = read_file(file.path());
    if (bytes.find_first_not_of('\0') == std::string::npos) continue;
    ++begun;
    EXPECT_EQ(bytes[13], 1) << "version 1, which the previous release can read too";
  }
  EXPECT_EQ(begun, 1u);
  connect();
  EXPECT_EQ(agent_->inventory.ended.size(), 2u) << "the next keeper knows what was not forgotten";
}

TEST_P(KeeperTest, P33StraySignalsEndNothing) {
  connect();
  agent_->client->spawn({shell(0, "while ! test -f go; do sleep 0.01; done; exit 6")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 1; }));
  const int keeper = keeper_pid();
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const bool fault = signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS ||
                       signal == SIGFPE || signal == SIGILL || signal == SIGTRAP ||
                       signal == SIGSYS;
    if (fault || signal == SIGKILL || signal == SIGSTOP || signal == SIGTERM) continue;
    ::kill(keeper, signal);
  }
  EXPECT_EQ(run(shell(1, "grep -E 'SigIgn|SigBlk' /proc/self/status")).exit_code, 0);
  EXPECT_EQ(keeper_pid(), keeper);
  EXPECT_EQ(read_file(root_ / "out1"), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  std::ofstream(root_ / "go") << "go";
  ASSERT_TRUE(wait_for([this] { return agent_->ended.size() == 2; }));
  EXPECT_EQ(agent_->end_of({{7, 0, 0}, 0, 0})->exit_code, 6);
}

TEST_P(KeeperTest, P33NoSecondKeeperStartsThoughLockFileIsRemoved) {
  connect();
  const int keeper = keeper_pid();
  for (const char* name : {"keeper/lock", "keeper/socket"}) fs::remove(work_dir_ / name);
  Agent second;
  const auto connected = try_connect(second);
  // Another keeper cannot start; the one that runs makes its socket anew.
  if (!connected.ok()) {
    EXPECT_NE(connected.error().message.find("another keeper has locked the work-dir"),
              std::string::npos)
        << connected.error().message;
    EXPECT_TRUE(wait_for([this] { return fs::exists(work_dir_ / "keeper/socket"); }));
  }
  EXPECT_EQ(keeper_pid(), keeper);
}

class KeepersQueue : public P13Keeper {
 protected:
  ~KeepersQueue() noexcept override {}
  SpawnOrder queued(uint32_t index, const std::string& script) {
    SpawnOrder order = shell(index, script);
    order.queued = true;
    return order;
  }
  const keeper::Ended* end_of(uint32_t index) {
    const keeper::Ended* end = nullptr;
    wait_for([&] { return (end = agent_->end_of({{7, index, 0}, 0, 0})) != nullptr; });
    return end;
  }
  std::string waits_for(const std::string& file) {
    return "while ! test -f " + file + "; do sleep 0.01; done";
  }
};

TEST_P(KeepersQueue, RunsAsManyAsThereIsRoomForInTheirOrder) {
  connect();
  ASSERT_TRUE(agent_->client->abilities().queue);
  std::vector<SpawnOrder> orders;
  for (uint32_t i = 0; i < 40; ++i)
    orders.push_back(queued(i, "echo + " + std::to_string(i) + " >> log; echo - >> log"));
  agent_->client->spawn(orders);
  agent_->client->spawn({shell(99, "exit 0")});
  ASSERT_NE(end_of(99), nullptr) << "others need no room";
  EXPECT_FALSE(fs::exists(root_ / "log"));
  agent_->client->set_room(1);
  ASSERT_TRUE(wait_for([&] { return agent_->ended.size() == 41; }));
  std::string expected;
  for (uint32_t i = 0; i < 40; ++i) expected += "+ " + std::to_string(i) + "\n-\n";
  EXPECT_EQ(read_file(root_ / "log"), expected);
  for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(end_of(i)->exit_code, 0);
}

TEST_P(KeepersQueue, JobsTakeTurns) {
  connect();
  std::vector<SpawnOrder> orders;
  for (uint64_t job : {7, 7, 7, 7, 9, 8, 8}) {
    const auto index = static_cast<uint32_t>(orders.size());
    orders.push_back(queued(index, "echo " + std::to_string(job) + " >> log"));
    orders.back().key.pod.job = job;
  }
  agent_->client->spawn(orders);
  agent_->client->set_room(1);
  ASSERT_TRUE(wait_for([&] { return agent_->ended.size() == orders.size(); }));
  EXPECT_EQ(read_file(root_ / "log"), "7\n8\n9\n7\n8\n7\n7\n");
}

TEST_P(KeepersQueue, APlaceIsFreeOnceAllDescendantsAreGone) {
  connect();
  agent_->client->set_room(1);
  agent_->client->spawn(
      {queued(0, "(trap '' TERM HUP; setsid sleep 1000 &) ; (sleep 1000 &) ; exit 0"),
       queued(1, "ls /proc > /dev/null; exit 0"), queued(2, "exit 127"), queued(3, "exit 0")});
  for (uint32_t i = 0; i < 4; ++i) ASSERT_NE(end_of(i), nullptr);
  EXPECT_TRUE(pids_with(mark()).empty());
}

// With this many processes, ends are handled in lists, so what leaves a session lives on for a
// while after its process.
TEST_P(KeepersQueue, ProcessOutsideItsSessionCannotWriteToNextOutput) {
  connect();
  std::vector<SpawnOrder> orders;
  for (uint32_t i = 0; i < 60; i += 2) {
    const std::string up = "up" + std::to_string(i), go = "go" + std::to_string(i);
    orders.push_back(queued(i, "setsid sh -c 'echo > " + up + "; while ! test -e " + go +
                                   "; do :; done; echo escaped' & while ! test -e " + up +
                                   "; do :; done; exit 0"));
    orders.push_back(queued(i + 1, "echo > " + go + "; sleep 0.01; exit 0"));
  }
  agent_->client->spawn(orders);
  agent_->client->set_room(1);
  ASSERT_TRUE(wait_for([&] { return agent_->ended.size() == orders.size(); }));
  for (uint32_t i = 1; i < 60; i += 2)
    for (const char* stream : {"out", "err"})
      EXPECT_EQ(read_file(root_ / (stream + std::to_string(i))), "") << i;
}

TEST_P(KeepersQueue, FailedOrLateStartFreesItsPlace) {
  connect();
  agent_->client->set_room(1);
  SpawnOrder missing = queued(0, "");
  missing.argv = {"/no/such/program"};
  SpawnOrder late = queued(1, "echo ran > ran");
  late.not_after = boot_now() - 1;
  agent_->client->spawn({missing, late, queued(2, "exit 5")});
  EXPECT_EQ(end_of(0)->exit_code, 127);
  EXPECT_TRUE(end_of(1)->unstarted);
  EXPECT_EQ(end_of(2)->exit_code, 5);
  EXPECT_FALSE(fs::exists(root_ / "ran"));
}

TEST_P(KeepersQueue, WithdrawnOrKilledOrderNeverRuns) {
  connect();
  agent_->client->set_room(1);
  agent_->client->spawn({queued(0, waits_for("go") + "; exit 4"), queued(1, "echo ran > ran"),
                         queued(2, "echo ran > ran"), queued(3, "exit 6")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 1; }));
  agent_->client->withdraw({{7, 1, 0}, 0, 0});
  agent_->client->kill({{7, 2, 0}, 0, 0}, 30'000);
  agent_->client->withdraw({{7, 0, 0}, 0, 0});  // too late
  EXPECT_TRUE(end_of(1)->unstarted);
  EXPECT_TRUE(end_of(2)->unstarted);
  std::ofstream(root_ / "go") << "go";
  EXPECT_EQ(end_of(0)->exit_code, 4);
  EXPECT_EQ(end_of(3)->exit_code, 6);
  EXPECT_FALSE(fs::exists(root_ / "ran"));
  agent_->client->set_room(0);
  agent_->client->spawn({queued(1, "exit 0")});
  agent_->client->set_room(1);
  EXPECT_TRUE(wait_for([&] { return agent_->ended.size() == 5; })) << "it may be ordered again";
}

TEST_P(KeepersQueue, GoesOnWithoutAnAgent) {
  connect();
  agent_->client->set_room(1);
  agent_->client->spawn({queued(0, waits_for("go")), queued(1, "exit 7"),
                         queued(2, waits_for("more")), queued(3, "exit 8")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 1; }));
  connect();
  ASSERT_EQ(agent_->inventory.living.size(), 4u);
  for (const auto& living : agent_->inventory.living) {
    EXPECT_TRUE(living.queued);
    EXPECT_EQ(living.start.has_value(), living.key.pod.index == 0);
  }
  agent_.reset();
  std::ofstream(root_ / "go") << "go";
  EXPECT_TRUE(wait_for([&] {
    connect();
    return agent_->inventory.ended.size() == 2;
  }));
  std::ofstream(root_ / "more") << "go";
  EXPECT_EQ(end_of(3)->exit_code, 8) << "the room is remembered";
}

TEST_P(KeepersQueue, KilledKeeperLosesOnlyStartedProcesses) {
  connect();
  agent_->client->set_room(1);
  agent_->client->spawn({queued(0, waits_for("never")), queued(1, "echo ran > ran")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 1; }));
  kill_keeper();
  connect();
  ASSERT_EQ(agent_->inventory.ended.size(), 1u);
  EXPECT_TRUE(agent_->inventory.ended[0].lost);
  EXPECT_EQ(agent_->inventory.ended[0].pod.index, 0u);
  EXPECT_TRUE(agent_->inventory.living.empty());
  EXPECT_FALSE(fs::exists(root_ / "ran"));
}

TEST_P(KeepersQueue, StartsNothingWhileSpoolIsNotWritable) {
  connect();
  agent_->client->set_room(1);
  agent_->client->spawn({queued(0, waits_for("go")), queued(1, "echo ran > ran; exit 3")});
  ASSERT_TRUE(wait_for([this] { return agent_->started.size() == 1; }));
  limit_files(0);
  std::ofstream(root_ / "go") << "go";
  EXPECT_TRUE(wait_for_trouble("SpoolNotWritable"));
  EXPECT_TRUE(wait_for([this] { return pids_with(mark()).empty(); }));
  EXPECT_FALSE(fs::exists(root_ / "ran"));
  limit_files(RLIM_INFINITY);
  EXPECT_EQ(end_of(0)->exit_code, 0);
  EXPECT_EQ(end_of(1)->exit_code, 3);
  EXPECT_TRUE(fs::exists(root_ / "ran"));
}

INSTANTIATE_TEST_SUITE_P(Leftovers, KeeperTest, testing::Values("off", "on"), leftovers_by);
INSTANTIATE_TEST_SUITE_P(Leftovers, P13Keeper, testing::Values("off", "on"), leftovers_by);
INSTANTIATE_TEST_SUITE_P(Leftovers, KeepersQueue, testing::Values("off", "on"), leftovers_by);
INSTANTIATE_TEST_SUITE_P(Leftovers, FenceAfter, testing::Values("off"), leftovers_by);
INSTANTIATE_TEST_SUITE_P(Leftovers, P12NotAfter, testing::Values("off", "on"), leftovers_by);

}  // namespace
}  // namespace muster::agent
