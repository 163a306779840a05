// Who is served on the socket for programs of pods, and what each may make the agent hold.
#include "agent/pod_programs/local_server.hpp"

#include "agent/pod_programs/bounded_stream.hpp"
#include "agent/pod_programs/local_client.hpp"
#include "tests/unit/agent/temp_dir.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace muster::agent {
namespace {

constexpr uid_t kAlice = 61'001, kBob = 61'002;
constexpr PodId kPodOfAlice{7, 0, 0};

class NoAgent final : public LocalServer::Agent {
 public:
  bool runs(PodId pod) const override { return pod == kPodOfAlice; }
  kj::Maybe<wire::Session::Client> session() override { return nullptr; }
  kj::Promise<void> session_changes() override { return kj::NEVER_DONE; }
  void give_up(PodId, const std::string& why, bool) override { given_up.push_back(why); }
  std::vector<std::string> given_up;
};

class P10LocalServer : public testing::Test {
 protected:
  P10LocalServer() : it_(new Parts(temp_.path())) {}
  ~P10LocalServer() override { delete it_; }

  void listen(const LocalServer::Limits& limits) {
    chmod(temp_.path().c_str(), 0711);
    it_->server.emplace(it_->io, it_->run_dirs, it_->agent, limits);
    const Status listening = it_->server->listen(true);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    chmod(it_->run_dirs.socket_dir().c_str(), 0711);
  }
  void start_pod_of(uint32_t uid) {
    auto job = std::make_shared<core::node::PodTemplate>();
    job->job = kPodOfAlice.job;
    job->job_uid = "2f6b7c1e-8f6e-4c1a-9b1e-0c9d8e7f6a5b";
    job->mpi = "auto";
    job->owner_uid = uid;
    it_->run_dirs.adopt(kPodOfAlice, job);
  }

  kj::Own<kj::AsyncIoStream> connect() {
    const std::string at = "unix:" + it_->run_dirs.socket_dir() + "/agent.sock";
    auto address = it_->io.provider->getNetwork().parseAddress(at.c_str()).wait(it_->io.waitScope);
    return address->connect().wait(it_->io.waitScope);
  }
  kj::Own<kj::AsyncIoStream> connect_as(uid_t uid) {
    EXPECT_EQ(seteuid(uid), 0);
    auto stream = connect();
    EXPECT_EQ(seteuid(0), 0);
    return stream;
  }
  // The head of a message of `whole` bytes, and the first ones of it.
  void send_part(kj::AsyncIoStream& stream, uint32_t whole, size_t part) {
    uint32_t head[2] = {0, whole / 8};  // one segment
    auto bytes = kj::heapArray<kj::byte>(part);
    memset(bytes.begin(), 0, part);
    // The other end stops reading once it has given up the connection.
    kj::runCatchingExceptions([&] {
      stream.write(head, sizeof head).wait(it_->io.waitScope);
      stream.write(bytes.begin(), part).wait(it_->io.waitScope);
    });
  }
  // Whether the other end closes the connection.
  bool closes(kj::AsyncIoStream& stream) {
    bool late = false;
    auto deadline =
        it_->io.provider->getTimer().afterDelay(20 * kj::SECONDS).then([&late] { late = true; });
    end_of(stream)
        .catch_([](kj::Exception&&) {})
        .exclusiveJoin(kj::mv(deadline))
        .wait(it_->io.waitScope);
    return !late;
  }
  // Whether a caller on this connection is answered.
  bool is_served(kj::Own<kj::AsyncIoStream> stream, size_t message = 0) {
    bool done = false;
    kj::runCatchingExceptions([&] {
      LocalClient::Connection connection(kj::mv(stream));
      auto request = connection.local().giveUpRequest();
      request.setToken("nobody's");
      request.setMessage(std::string(message, 'x'));
      request.send().ignoreResult().wait(it_->io.waitScope);
      done = true;
    });
    return done;
  }

  // The server may not have noticed yet that another connection was closed.
  bool is_served_soon(size_t message = 0) {
    kj::Timer& timer = it_->io.provider->getTimer();
    const auto deadline = timer.now() + 20 * kj::SECONDS;
    while (timer.now() < deadline) {
      if (is_served(connect(), message)) return true;
      timer.afterDelay(1 * kj::MILLISECONDS).wait(it_->io.waitScope);
    }
    return false;
  }

  // KJ's destructors may throw and a fixture's may not, so it is held by pointer.
  struct Parts {
    explicit Parts(const std::string& dir) : run_dirs(dir, "secret") {}
    kj::AsyncIoContext io = kj::setupAsyncIo();
    RunDirs run_dirs;
    NoAgent agent;
    std::optional<LocalServer> server;
  };
  TempDir temp_;
  Parts* const it_;

 private:
  kj::Promise<void> end_of(kj::AsyncIoStream& stream) {
    return stream.tryRead(bytes_, 1, sizeof bytes_)
        .then([this, &stream](size_t n) -> kj::Promise<void> {
          if (n == 0) return kj::READY_NOW;
          return end_of(stream);
        });
  }
  char bytes_[1024];
};

TEST_F(P10LocalServer, ServesOnlyUsersWithPodOnThisNode) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  listen({});
  EXPECT_TRUE(is_served(connect())) << "the agent's own user";
  EXPECT_TRUE(closes(*connect_as(kAlice)));
  start_pod_of(kAlice);
  EXPECT_TRUE(is_served(connect_as(kAlice)));
  EXPECT_TRUE(closes(*connect_as(kBob)));
  it_->run_dirs.remove(kPodOfAlice);
  EXPECT_TRUE(closes(*connect_as(kAlice)));
}

TEST_F(P10LocalServer, LimitsConnectionsOfOneUser) {
  listen({.connections = 3, .user_connections = 2});
  std::vector<kj::Own<kj::AsyncIoStream>> held;
  for (int i = 0; i < 2; ++i) held.push_back(connect());
  EXPECT_TRUE(closes(*connect()));
  held.clear();
  EXPECT_TRUE(is_served_soon()) << "once they are closed";
}

TEST_F(P10LocalServer, LimitsTheConnectionsOfAllUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  listen({.connections = 3, .user_connections = 2});
  start_pod_of(kAlice);
  std::vector<kj::Own<kj::AsyncIoStream>> held;
  for (int i = 0; i < 2; ++i) held.push_back(connect());
  held.push_back(connect_as(kAlice));
  EXPECT_TRUE(closes(*connect_as(kAlice)));
}

TEST_F(P10LocalServer, LimitsTheBytesOfUnfinishedMessages) {
  listen({.bytes = 2 << 20, .user_bytes = 1 << 20});
  auto held = connect();
  send_part(*held, 2 << 20, 800 << 10);
  auto more = connect();
  send_part(*more, 2 << 20, 800 << 10);
  EXPECT_TRUE(closes(*more));
  EXPECT_TRUE(is_served(connect())) << "short messages still fit";
  EXPECT_FALSE(is_served(connect(), 800 << 10));
  held = nullptr;
  EXPECT_TRUE(is_served_soon(800 << 10)) << "once it is closed";
}

TEST_F(P10LocalServer, RefusesMessageAboveMaximumLength) {
  listen({});
  auto stream = connect();
  send_part(*stream, kLocalMessageMax + 8, 8);
  EXPECT_TRUE(closes(*stream));
}

}  // namespace
}  // namespace muster::agent
