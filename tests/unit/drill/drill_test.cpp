// The parts of a drill: witness lines, schedules and their replay, a client's memory, pinned
// processes, the relay, reports.
#include "drill/observer.hpp"
#include "drill/process/process.hpp"
#include "drill/process/question.hpp"
#include "drill/process/relay.hpp"
#include "drill/process/silence.hpp"
#include "drill/process/standbys.hpp"
#include "drill/proof/report.hpp"
#include "drill/proof/witness.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::cli::drill {
namespace {

TEST(Witness, LinesRoundTripAndTornLastLineIsIgnored) {
  WitnessLine start{false, {3, 1}, "uid", "n1", "boot", 12, 34, 56, 78, 0};
  WitnessLine end{true, {3, 1}, "uid", "n1", "boot", 13, 35, 56, 0, 7};
  EXPECT_EQ(to_text(start), "1 start 3 1 uid n1 boot 12 34 56 78\n");
  EXPECT_EQ(to_text(end), "1 end 3 1 uid n1 boot 13 35 56 7\n");
  const Testimony testimony = parse_testimony({to_text(end), to_text(start) + "1 start 4 0 torn"});
  EXPECT_EQ(testimony.lines, (std::vector{start, end})) << "by time";
  EXPECT_EQ(testimony.unreadable, 0u) << "the last line of a file may be torn";
}

TEST(Witness, MalformedLinesAreCountedAsUnreadable) {
  for (const char* text :
       {"\n", "2 start 3 1 uid n1 boot 12 34 56 78\n", "1 begin 3 1 uid n1 boot 12 34 56 78\n",
        "1 start 3 1 uid n1 boot 12 34 56\n", "1 start x 1 uid n1 boot 12 34 56 78\n",
        "1 end 3 1 uid n1 boot 12 34 56 7 8\n", "1 start 3 -1 uid n1 boot 12 34 56 78\n"})
    EXPECT_EQ(parse_testimony({text}).unreadable, 1u) << text;
}

Plan plan_for(const std::string& scenario, uint64_t seed) {
  Plan plan;
  plan.scenario = scenario;
  plan.seed = plan.canary.seed = seed;
  plan.times = 30;
  plan.steps = schedule(*find_scenario(scenario), plan, 0, 3'000);
  return plan;
}

TEST(Schedule, DependsOnlyOnSeed) {
  EXPECT_EQ(plan_for("storm", 7), plan_for("storm", 7));
  EXPECT_NE(plan_for("storm", 7).steps, plan_for("storm", 8).steps);
  const Plan plan = plan_for("storm", 7);
  EXPECT_NE(schedule(*find_scenario("storm"), plan, 1, 3'000), plan.steps) << "the next round";
  uint32_t before = 0;
  for (const Step& step : plan.steps) {
    EXPECT_GE(step.at_ends, before);
    EXPECT_LT(step.at_ends, expected_ends(plan.canary));
    EXPECT_LT(step.node, plan.nodes);
    before = step.at_ends;
  }
}

TEST(Schedule, IsReplayedFromAReport) {
  for (const Scenario& scenario : scenarios()) {
    Report report;
    report.id = "abc";
    report.plan = plan_for(scenario.name, 5);
    report.plan.coordinators = 3;
    const auto again = plan_of(to_json(report));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, report.plan);
  }
}

TEST(Schedule, InvalidReportIsRefusedWithMemberName) {
  Report report;
  report.plan = plan_for("storm", 5);
  const Json good = to_json(report);
  const auto refused = [](const Json& json) {
    const auto plan = plan_of(json);
    return plan ? "" : plan.error().message;
  };
  EXPECT_NE(refused(Json()).find("no plan"), std::string::npos);
  Json bad = good;
  bad["plan"]["scenario"] = "calm";
  EXPECT_NE(refused(bad).find("`calm`"), std::string::npos);
  bad = good;
  bad["plan"]["times"] = 0;
  EXPECT_NE(refused(bad).find("steps"), std::string::npos);
  bad = good;
  bad["plan"]["canary"]["indexes"] = 1'000'000'000;
  EXPECT_NE(refused(bad).find("indexes: must be"), std::string::npos);
  bad = good;
  bad["plan"]["steps"][0]["node"] = 3;
  EXPECT_NE(refused(bad).find("node: must be"), std::string::npos);
  bad["plan"]["steps"][0]["fault"] = "fire";
  EXPECT_NE(refused(bad).find("`fire`"), std::string::npos);
}

Json status(int succeeded, const char* completed, const char* condition = nullptr) {
  Json job = {{"metadata", {{"resourceVersion", "7"}}},
              {"status",
               {{"succeeded", succeeded},
                {"completedIndexes", completed},
                {"startTime", "2026-01-01T00:00:00Z"}}}};
  if (condition != nullptr)
    job["status"]["conditions"] = Json::array({Json{{"type", condition}, {"status", "True"}}});
  return job;
}

TEST(Memory, NoticesStatusThatGoesBack) {
  Memory memory;
  EXPECT_TRUE(memory.compare(status(1, "0")).empty());
  EXPECT_TRUE(memory.compare(status(3, "0-2", "FailureTarget")).empty());
  EXPECT_EQ(memory.compare(status(2, "0,2", "FailureTarget")),
            (std::vector<std::string>{"succeeded went from 3 to 2",
                                      "completedIndexes went from 0-2 to 0,2"}));
  EXPECT_EQ(memory.compare(status(2, "0,2")),
            std::vector<std::string>{"condition FailureTarget was withdrawn"});
  Json later = status(2, "0,2");
  later["status"]["startTime"] = "2026-01-01T00:00:01Z";
  later["metadata"]["resourceVersion"] = "6";
  EXPECT_EQ(memory.compare(later).size(), 2u);
  memory.forget();
  EXPECT_TRUE(memory.compare(status(0, "")).empty());
}

TEST(Memory, IsSharedByClientsOfSeveralCoordinators) {
  Memory shared;
  Memory first = shared, second = shared;  // both ask before either is answered
  EXPECT_TRUE(first.compare(status(3, "0-2")).empty());
  ASSERT_TRUE(first.knows(shared));
  shared = first;
  Json older = status(1, "0");
  older["metadata"]["resourceVersion"] = "5";
  EXPECT_TRUE(second.compare(older).empty()) << "it was asked at the same time";
  EXPECT_FALSE(second.knows(shared));
  Memory third = shared;
  EXPECT_FALSE(third.compare(older).empty()) << "it was asked later";
}

// Stays until it is killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

TEST(DrillProcess, IsPinnedToOneProcess) {
  const Child child;
  auto process = Process::open(child.pid());
  ASSERT_TRUE(process.ok()) << process.error().message;
  EXPECT_EQ(process->start_ticks(), facts_of(child.pid())->start_ticks);
  EXPECT_EQ(process->owner(), geteuid());
  EXPECT_EQ(process->executable(), std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_FALSE(process->gone());
  {
    const Frozen frozen(*process);
    EXPECT_TRUE(process->wait_state('T', 5'000));
  }
  EXPECT_TRUE(process->wait_state('S', 5'000)) << "it goes on afterwards";
  const auto below = descendants(getpid());
  EXPECT_TRUE(std::any_of(below.begin(), below.end(),
                          [&](const Process& one) { return one.pid() == child.pid(); }));
  ASSERT_TRUE(process->send(SIGKILL).ok());
  EXPECT_TRUE(process->wait_gone(5'000));
  EXPECT_EQ(process->state(), 0);
  EXPECT_FALSE(Process::open(child.pid()).ok()) << "a zombie is no live process";
}

TEST(DrillProcess, OtherProcessInPidFileIsRefused) {
  char path[] = "/tmp/muster-drill-test-XXXXXX";
  close(mkstemp(path));
  const auto refused = [&path](const std::string& text) {
    std::ofstream(path) << text;
    const auto process = process_in_file(path, "coordinator");
    return process ? "" : process.error().message;
  };
  EXPECT_NE(refused("").find("has no pid"), std::string::npos);
  EXPECT_NE(refused("-5\n").find("has no pid"), std::string::npos);
  EXPECT_NE(refused("1\n").find("has no pid"), std::string::npos);
  EXPECT_NE(refused("999999999\n").find("no process"), std::string::npos);
  EXPECT_NE(refused(std::to_string(getpid())).find("not `muster coordinator`"), std::string::npos);
  EXPECT_NE(refused("{\"pid\": " + std::to_string(getpid()) + "}").find("not `muster"),
            std::string::npos);
  unlink(path);
  EXPECT_NE(process_in_file(path, "coordinator").error().message.find("no file"),
            std::string::npos);
}

int connected(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

struct Listener {
  Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  uint16_t port = 0;
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket.get(), 4), 0);
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  Fd accepted() const { return Fd(accept(socket.get(), nullptr, nullptr)); }
};

bool arrives(const Fd& socket) {
  pollfd ready{socket.get(), POLLIN, 0};
  return poll(&ready, 1, 300) == 1;
}

TEST(DrillQuestion, ReturnsTheFirstLineOfALateAnswer) {
  const Listener server;
  const std::string address = "127.0.0.1:" + std::to_string(server.port);
  const auto late = Question::ask(address, "/x"), closed = Question::ask(address, "/x");
  ASSERT_TRUE(late && closed);
  {
    const Fd first = server.accepted(), second = server.accepted();
    ASSERT_GT(write(first.get(), "HTTP/1.1 200 OK\r\nA: b\r\n", 23), 0);
  }
  EXPECT_EQ(late->answer(5'000), "HTTP/1.1 200 OK");
  EXPECT_EQ(closed->answer(5'000), "");
  EXPECT_FALSE(Question::ask("nowhere", "/x"));
}

TEST(DrillStandbys, EtcdIsAFileInThePath) {
  namespace fs = std::filesystem;
  char path[] = "/tmp/muster-drill-XXXXXX";
  ASSERT_NE(mkdtemp(path), nullptr);
  const fs::path dir = path;
  fs::create_directories(dir / "a/etcd");
  fs::create_directories(dir / "b");
  const std::string before = getenv("PATH") == nullptr ? "" : getenv("PATH");
  const auto found = [&] {
    setenv("PATH", ((dir / "a").string() + ":" + (dir / "b").string()).c_str(), 1);
    std::string program = etcd_program();
    setenv("PATH", before.c_str(), 1);
    return program;
  };
  EXPECT_EQ(found(), "");
  std::ofstream(dir / "b/etcd") << "#!/bin/sh\n";
  EXPECT_EQ(found(), "") << "it cannot be executed";
  fs::permissions(dir / "b/etcd", fs::perms::owner_all);
  EXPECT_EQ(found(), (dir / "b/etcd").string());
  fs::remove_all(dir);
}

TEST(DrillSilence, DropsWhatArrivesOnBothSidesUntilItEnds) {
  const Listener server;
  const Fd client(connected(server.port)), served = server.accepted();
  auto own = Process::open(getpid());
  ASSERT_TRUE(own.ok());
  auto silence = Silence::begin(*own, server.port, {&*own});
  if (!silence) GTEST_SKIP() << silence.error().message;
  for (const Fd* from : {&client, &served}) ASSERT_EQ(write(from->get(), "a", 1), 1);
  EXPECT_FALSE(arrives(client) || arrives(served));
  const Fd late(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_NE(connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_FALSE(arrives(server.socket)) << "a new connection gets no answer";
  ASSERT_TRUE(silence->refresh().ok());
  EXPECT_GE(silence->dropped(), 3u);
  { const Silence over = std::move(*silence); }
  pollfd ready[] = {{client.get(), POLLIN, 0}, {served.get(), POLLIN, 0}};
  for (pollfd& one : ready) EXPECT_EQ(poll(&one, 1, 10'000), 1) << "it is sent again";
}

TEST(DrillRelay, HoldsAndForwardsBytesOfEachDirection) {
  const Listener server_end;
  auto relay = Relay::start(server_end.port);
  ASSERT_TRUE(relay.ok()) << relay.error().message;
  const Fd agent(connected((*relay)->port()));
  const Fd server = server_end.accepted();
  char byte = 0;
  ASSERT_EQ(write(agent.get(), "a", 1), 1);
  ASSERT_EQ(read(server.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'a');
  EXPECT_EQ((*relay)->held(), 0u);

  (*relay)->hold(true);
  // Bytes in flight when the hold began may still pass.
  int sent = 0;
  while ((*relay)->held() == 0 && sent < 1'000) {
    ASSERT_EQ(write(agent.get(), "b", 1), 1);
    ++sent;
    usleep(5'000);
  }
  EXPECT_GT((*relay)->held(), 0u);
  (*relay)->hold(false);
  for (int i = 0; i < sent; ++i) {
    ASSERT_EQ(read(server.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'b');
  }
  shutdown(agent.get(), SHUT_WR);
  EXPECT_EQ(read(server.get(), &byte, 1), 0) << "an end is passed on";
}

TEST(DrillReport, SaysHowLongATakeoverTook) {
  Report report;
  Round round;
  for (const Millis took : {300, 500, 400}) {
    Injected fault{Fault::takeover, "", 1, 2, true, "", 3, took};
    fault.accepted_ms = took + 10;
    fault.counted_ms = took + 20;
    round.faults.push_back(fault);
  }
  report.rounds.push_back(round);
  const std::string text = summary(report);
  EXPECT_NE(text.find("down 0.40 s median, 0.50 s worst"), std::string::npos) << text;
  EXPECT_NE(text.find("down 0.41 s median, 0.51 s worst"), std::string::npos) << text;
  EXPECT_NE(text.find("counted after 0.42 s median, 0.52 s worst"), std::string::npos) << text;
  EXPECT_NE(text.find("two leaders"), std::string::npos) << text;
  EXPECT_EQ(to_json(report)["accepting"]["worstMs"], 510);
  EXPECT_EQ(to_json(report)["counting"]["medianMs"], 420);
  report.rounds[0].faults = {{Fault::coordinator_kill, "", 1, 2, true, "", 3, 310}};
  EXPECT_EQ(summary(report).find("two leaders"), std::string::npos) << "there is only one";
}

TEST(DrillReport, NamesBrokenPromiseInEveryFormat) {
  Report report;
  report.id = "abc123";
  report.plan = plan_for("coordinator-kill", 5);
  report.place = "a scratch cluster of 3 nodes";
  Round round;
  round.job = "drill-abc123-0";
  round.faults.push_back({Fault::coordinator_kill, "", 1, 2, true, "pid 1 became pid 2", 3, 310});
  round.judgement.verdict = Verdict::broken;
  round.judgement.findings.push_back(
      {Promise::counted_once, 1, "1 attempt started or counted more than once", {"a < b & \"c\""}});
  report.rounds.push_back(round);
  EXPECT_EQ(report.verdict(), Verdict::broken);
  const std::string text = summary(report);
  EXPECT_EQ(text.find("VERDICT   BROKEN: 1 attempt started"), 0u) << text;
  EXPECT_NE(text.find("a < b"), std::string::npos);
  EXPECT_NE(text.find("down 0.31 s median, 0.31 s worst"), std::string::npos) << text;
  EXPECT_NE(markdown(report).find("| coordinator-kill |"), std::string::npos);
  const std::string xml = junit(report);
  EXPECT_NE(xml.find("failures=\"1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos) << xml;
  EXPECT_EQ(to_json(report)["verdict"], "BROKEN");
  report.rounds[0].judgement = {};
  EXPECT_EQ(report.verdict(), Verdict::inconclusive);
  EXPECT_NE(junit(report).find("skipped=\"" + std::to_string(kPromises) + "\""), std::string::npos);
  report.rounds.clear();
  EXPECT_EQ(report.verdict(), Verdict::inconclusive) << "nothing was done";
}

}  // namespace
}  // namespace muster::cli::drill
