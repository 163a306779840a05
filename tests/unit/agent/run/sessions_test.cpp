// Sessions, with an executor that starts nothing.
#include "agent/run/sessions.hpp"

#include "core/pod_name.hpp"
#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace muster::agent {
namespace {

constexpr PodId kPod{7, 1, 0};
const std::string kId(32, 'a'), kOther(32, 'b');

struct FakeExecutor final : Executor {
  ~FakeExecutor() noexcept override = default;
  Result<Inventory> connect(Executor::Listener&) override { return Inventory{}; }
  Limits limits() const override { return {}; }
  void start(const std::vector<Start>&) override {}
  void kill(const std::vector<core::node::KillOrder>&) override {}
  void forget(const std::vector<uint64_t>& entries) override {
    forgotten.insert(forgotten.end(), entries.begin(), entries.end());
  }
  void end_all() override {}
  void listen(SessionListener& one) override { listener = &one; }
  Status start_session(SessionStart start) override {
    if (!refuse.empty()) return Error{Errc::invalid, refuse, {}};
    started.push_back(std::move(start));
    return Nothing{};
  }
  void kill_session(const SessionKey& key, Millis) override { killed.push_back(key); }
  void write_session(const SessionKey&, uint64_t offset, std::string_view data, bool eof) override {
    written.push_back({offset, std::string(data), eof});
  }

  SessionListener* listener = nullptr;
  std::string refuse;
  std::vector<SessionStart> started;
  std::vector<SessionKey> killed;
  std::vector<uint64_t> forgotten;
  struct Written {
    uint64_t offset = 0;
    std::string data;
    bool eof = false;
    bool operator==(const Written&) const = default;
  };
  std::vector<Written> written;
};

struct Answer {
  std::string out, err, message;
  bool ended = false;
  int exit_code = 0;
};

class SessionsTest : public testing::Test {
 protected:
  ~SessionsTest() noexcept override = default;

  static core::node::PodTemplatePtr job() {
    auto job = std::make_shared<core::node::PodTemplate>();
    job->job = 7;
    job->job_name = "train";
    job->job_uid = "uid";
    job->indexed = true;
    job->containers.emplace_back().what.name = "main";
    return job;
  }
  wire::Process::Client join(const std::string& id = kId) {
    auto process = sessions.join(job(), kPod, id, {{"sh"}}, nullptr);
    EXPECT_TRUE(process.ok());
    return kj::mv(*process);
  }
  void write(const std::string& stream, const std::string& text, size_t session = 0) {
    const auto& start = executor.started[session];
    const auto files = logs.open("uid", start.pod_name, start.log);
    std::ofstream(stream == "out" ? files->out : files->err, std::ios::app) << text;
  }
  kj::Promise<Answer> read(wire::Process::Client& process, uint64_t out, uint64_t err,
                           uint32_t limit = 100) {
    auto request = process.readRequest();
    request.setStdout(out);
    request.setStderr(err);
    request.setLimit(limit);
    return request.send().then([](auto&& got) {
      auto text = [](capnp::Data::Reader data) {
        return std::string(reinterpret_cast<const char*>(data.begin()), data.size());
      };
      return Answer{text(got.getStdout()), text(got.getStderr()),
                    std::string(got.getMessage().cStr()), got.getEnded(), got.getExitCode()};
    });
  }
  Answer now(wire::Process::Client& process, uint64_t out, uint64_t err, uint32_t limit = 100) {
    return read(process, out, err, limit).wait(io.waitScope);
  }
  using Taken = std::pair<uint64_t, bool>;
  kj::Promise<Taken> feed(wire::Process::Client& process, uint64_t offset, const std::string& data,
                          bool eof = false) {
    auto request = process.writeRequest();
    request.setOffset(offset);
    request.setData({reinterpret_cast<const kj::byte*>(data.data()), data.size()});
    request.setEof(eof);
    return request.send()
        .then([](auto&& got) {
          return Taken{got.getTaken(), got.getClosed()};
        })
        .eagerlyEvaluate(nullptr);
  }
  void take(uint64_t bytes, bool closed = false) {
    executor.listener->on_session_input(executor.started[0].key, bytes, closed);
  }
  void end(size_t session, int exit_code, const std::string& error = "", bool unstarted = false) {
    executor.listener->on_session_ended(
        {executor.started[session].key, 40 + session, exit_code, 0, false, error, unstarted});
  }
  void check(int times, bool connected) {
    for (int i = 0; i < times; ++i) sessions.check(connected);
  }
  static constexpr int kMinute = Sessions::kUnheldMs / Sessions::kCheckMs;

  TempDir temp;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  LogStore logs{temp / "logs"};
  FakeExecutor executor;
  Sessions sessions{io.unixEventPort, io.provider->getTimer(), executor, logs};
};

TEST_F(SessionsTest, ReadReturnsOutputFromAnyOffset) {
  auto process = join();
  write("out", "hello world");
  write("err", "oops");
  auto got = now(process, 0, 0);
  EXPECT_EQ(got.out, "hello world");
  EXPECT_EQ(got.err, "oops");
  EXPECT_FALSE(got.ended);
  EXPECT_EQ(now(process, 6, 4).out, "world");
  got = now(process, 0, 0, 3);
  EXPECT_EQ(got.out, "hel");
  EXPECT_EQ(got.err, "oop");
}

TEST_F(SessionsTest, CommandsJoinTheChosenContainer) {
  auto two = std::make_shared<core::node::PodTemplate>(*job());
  two->containers.emplace_back().what.name = "side";
  two->init_containers = 1;
  const auto join_in = [&](char id, std::optional<uint16_t> container) {
    Sessions::Command command{.words = {"sh"}, .container = container};
    return sessions.join(two, kPod, std::string(32, id), std::move(command), nullptr).ok();
  };
  EXPECT_TRUE(join_in('a', std::nullopt));
  EXPECT_TRUE(join_in('b', 0));
  EXPECT_TRUE(join_in('c', 1));
  EXPECT_FALSE(join_in('d', 2));
  ASSERT_EQ(executor.started.size(), 3u);
  EXPECT_EQ(executor.started[0].key.container, 1) << "the first that is no init container";
  EXPECT_EQ(executor.started[0].log, "side~1");
  EXPECT_EQ(executor.started[1].key.container, 0);
  EXPECT_EQ(executor.started[1].log, "main~2");
  EXPECT_EQ(executor.started[2].key.container, 1);
}

TEST_F(SessionsTest, AReadWaitsForMore) {
  auto process = join();
  write("out", "one");
  auto waiting = read(process, 3, 0).eagerlyEvaluate(nullptr);
  EXPECT_FALSE(waiting.poll(io.waitScope));
  write("out", "two");
  EXPECT_EQ(waiting.wait(io.waitScope).out, "two");
}

TEST_F(SessionsTest, OutputOfPodIsNotOutputOfSession) {
  auto process = join();
  auto waiting = read(process, 0, 0).eagerlyEvaluate(nullptr);
  EXPECT_FALSE(waiting.poll(io.waitScope));
  const auto pod = logs.open("uid", executor.started[0].pod_name, "main");
  std::ofstream(pod->out) << "beside it";
  EXPECT_FALSE(waiting.poll(io.waitScope));
  write("err", "oops");
  const Answer got = waiting.wait(io.waitScope);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(got.err, "oops");
}

TEST_F(SessionsTest, TheEndComesAfterAllOutput) {
  auto process = join();
  write("out", "abcdef");
  end(0, 3);
  auto got = now(process, 0, 0, 4);
  EXPECT_EQ(got.out, "abcd");
  EXPECT_FALSE(got.ended);
  got = now(process, 4, 0, 4);
  EXPECT_EQ(got.out, "ef");
  EXPECT_TRUE(got.ended);
  EXPECT_EQ(got.exit_code, 3);
  EXPECT_TRUE(now(process, 6, 0).ended) << "it may be asked again";
  EXPECT_TRUE(executor.forgotten.empty());
  process.endRequest().send().wait(io.waitScope);
  EXPECT_EQ(executor.forgotten, std::vector<uint64_t>{40});
  EXPECT_EQ(now(process, 6, 0).message, "the session is over");
}

TEST_F(SessionsTest, EndAnswersWaitingRead) {
  auto process = join();
  auto waiting = read(process, 0, 0).eagerlyEvaluate(nullptr);
  EXPECT_FALSE(waiting.poll(io.waitScope));
  end(0, 255, "its container does not run", true);
  const auto got = waiting.wait(io.waitScope);
  EXPECT_TRUE(got.ended);
  EXPECT_EQ(got.exit_code, 255);
  EXPECT_EQ(got.message, "its container does not run");
}

TEST_F(SessionsTest, WriteRepeatsInputUntilSomeIsTaken) {
  auto process = join();
  auto some = feed(process, 3, "hello");
  EXPECT_FALSE(some.poll(io.waitScope));
  ASSERT_EQ(executor.written.size(), 1u);
  EXPECT_EQ(executor.written[0], (FakeExecutor::Written{3, "hello", false}));
  take(5);
  EXPECT_EQ(some.wait(io.waitScope), Taken(5, false));
  // Input that found no room is sent again when there is room.
  auto full = feed(process, 5, "lo", true);
  EXPECT_FALSE(full.poll(io.waitScope));
  take(5);
  EXPECT_FALSE(full.poll(io.waitScope));
  ASSERT_EQ(executor.written.size(), 3u);
  EXPECT_EQ(executor.written[2], (FakeExecutor::Written{5, "lo", true}));
  take(7, true);
  EXPECT_EQ(full.wait(io.waitScope), Taken(7, true));
}

TEST_F(SessionsTest, SecondWriteAnswersFirstOneThatWaits) {
  auto process = join();
  auto first = feed(process, 0, "a"), second = feed(process, 0, "a");
  EXPECT_EQ(first.wait(io.waitScope), Taken(0, false)) << "nothing is known to have been taken";
  EXPECT_FALSE(second.poll(io.waitScope));
  take(1);
  EXPECT_EQ(second.wait(io.waitScope), Taken(1, false));
}

TEST_F(SessionsTest, EndAnswersWaitingAndLaterWrites) {
  auto process = join();
  auto waits = feed(process, 4, "a");
  EXPECT_FALSE(waits.poll(io.waitScope));
  end(0, 0);
  EXPECT_EQ(waits.wait(io.waitScope), Taken(4, true));
  EXPECT_EQ(feed(process, 4, "a").wait(io.waitScope), Taken(4, true));
  process.endRequest().send().wait(io.waitScope);
  EXPECT_EQ(feed(process, 4, "a").wait(io.waitScope), Taken(4, true));
  EXPECT_EQ(executor.written.size(), 1u);
}

TEST_F(SessionsTest, WriteTakesNoInputAboveMaximumOrBeyondOffset) {
  auto process = join();
  auto huge = feed(process, 0, std::string(1 << 20, 'x'), true);
  EXPECT_FALSE(huge.poll(io.waitScope));
  EXPECT_EQ(executor.written[0].data.size(), 64u << 10);
  EXPECT_FALSE(executor.written[0].eof) << "it is not the rest";
  take(100);
  EXPECT_EQ(huge.wait(io.waitScope), Taken(100, false));
  auto early = feed(process, uint64_t{1} << 63, "x");
  EXPECT_FALSE(early.poll(io.waitScope));
  take(100);
  EXPECT_EQ(early.wait(io.waitScope), Taken(100, false)) << "not asked for again";
}

TEST_F(SessionsTest, NewKeeperConnectionMakesWriterTryAgain) {
  auto process = join();
  auto waits = feed(process, 4, "a");
  EXPECT_FALSE(waits.poll(io.waitScope));
  sessions.on_sessions(
      {{executor.started[0].key, kId, "uid", executor.started[0].pod_name, "main~1"}});
  EXPECT_EQ(waits.wait(io.waitScope), Taken(4, false));
}

TEST_F(SessionsTest, JoinStartsSameSessionOnce) {
  auto one = join(), again = join(), other = join(kOther);
  ASSERT_EQ(executor.started.size(), 2u);
  EXPECT_EQ(executor.started[0].log, "main~1");
  EXPECT_EQ(executor.started[1].log, "main~2");
  EXPECT_EQ(sessions.join(job(), kPod, "short", {{"sh"}}, nullptr).error().message,
            "the id of a session is malformed");
  executor.refuse = "not here";
  EXPECT_EQ(sessions.join(job(), kPod, std::string(32, 'c'), {{"sh"}}, nullptr).error().message,
            "not here");
}

// All that is known of an earlier agent's session is its files.
TEST_F(SessionsTest, JoinSkipsLogNumbersOfEarlierSessions) {
  ASSERT_TRUE(logs.open("uid", core::pod_name("train", "uid", true, kPod.key()), "main~1"));
  std::ofstream(temp / "logs/uid/" + core::pod_name("train", "uid", true, kPod.key()) +
                ".main~1.stdout")
      << "x";
  auto process = join();
  EXPECT_EQ(executor.started[0].log, "main~2");
}

TEST_F(SessionsTest, JoinIsRefusedAfterLastLogNumber) {
  const Executor::SessionKey last{kPod, 0, 65'535};
  const std::string pod_name = core::pod_name("train", "uid", true, kPod.key());
  sessions.on_sessions({{last, kOther, "uid", pod_name, "main~65535"}});
  EXPECT_EQ(sessions.join(job(), kPod, kId, {{"sh"}}, nullptr).error().message,
            "the pod has reached its limit of 65535 commands");
}

// A client that comes back late must not start its command a second time.
TEST_F(SessionsTest, JoinWithoutCommandNeverStartsSession) {
  { auto process = join(); }
  EXPECT_TRUE(sessions.join(job(), kPod, kId, {}, nullptr).ok());
  const auto over = sessions.join(job(), kPod, kOther, {}, nullptr);
  EXPECT_EQ(over.error().code, Errc::conflict);
  EXPECT_EQ(over.error().message, "the session is over");
  EXPECT_EQ(executor.started.size(), 1u);
}

TEST_F(SessionsTest, SessionIsKilledAfterMinuteWithoutReader) {
  {
    auto process = join();
    check(2 * kMinute, true);
    EXPECT_TRUE(executor.killed.empty()) << "it is held";
  }
  check(kMinute - 1, true);
  EXPECT_TRUE(executor.killed.empty());
  check(10 * kMinute, false);
  EXPECT_TRUE(executor.killed.empty()) << "nobody could come";
  check(1, true);
  ASSERT_EQ(executor.killed.size(), 1u);
  end(0, 143);
  EXPECT_EQ(executor.forgotten, std::vector<uint64_t>{40});
}

TEST_F(SessionsTest, ReturningReaderRestartsTheMinute) {
  { auto process = join(); }
  check(kMinute - 1, true);
  { auto process = join(); }
  check(kMinute - 1, true);
  EXPECT_TRUE(executor.killed.empty());
}

TEST_F(SessionsTest, SessionIsFoundAgainOrLostAfterKeeperReconnects) {
  auto process = join(), lost = join(kOther);
  const Executor::SessionKey key = executor.started[0].key;
  sessions.on_sessions({{key, kId, "uid", executor.started[0].pod_name, "main~1"}});
  const auto got = now(lost, 0, 0);
  EXPECT_TRUE(got.ended);
  EXPECT_EQ(got.exit_code, 255);
  EXPECT_EQ(got.message, "its keeper died");
  write("out", "on");
  EXPECT_EQ(now(process, 0, 0).out, "on");
  // A session that this agent did not start is found by its id, and its number is taken.
  sessions.on_sessions(
      {{{kPod, 0, 9}, std::string(32, 'd'), "uid", executor.started[0].pod_name, "main~9"}});
  EXPECT_EQ(executor.started.size(), 2u);
  auto found = join(std::string(32, 'd'));
  EXPECT_EQ(executor.started.size(), 2u);
  auto next = join(std::string(32, 'e'));
  EXPECT_EQ(executor.started[2].log, "main~10");
}

}  // namespace
}  // namespace muster::agent
