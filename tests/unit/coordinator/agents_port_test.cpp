// The agents' port of a complete coordinator, seen by a client that speaks the protocol but breaks
// its rules.
#include "agents_port.hpp"

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace muster::coordinator {
namespace {

using Why = wire::Refusal::Why;

class P02StrangersHello : public AgentsPortTest {};

TEST_F(P02StrangersHello, WithPodOfUnknownJobIsRefusedAndCoordinatorServesOn) {
  for (const char* cluster : {"", "0123456789abcdef"}) {
    auto answer = call("n1", [cluster](wire::Hello::Builder hello) {
      hello.setClusterId(cluster);
      hello.initRunning(1)[0].setJob(77);
    });
    ASSERT_TRUE(answer.getResult().isRefused());
    EXPECT_EQ(answer.getResult().getRefused().getWhy(), Why::OTHER_CLUSTER);
    EXPECT_EQ(answer.getResult().getRefused().getEnd().size(), 0u);
  }
  EXPECT_TRUE(call("n1").getResult().isWelcome());
}

class P03NodeName : public AgentsPortTest {};

TEST_F(P03NodeName, IsRefusedWithoutItsSecret) {
  Caller holder = caller();
  auto secret = [](const char* text) {
    return [text](wire::Hello::Builder hello) { hello.setSecret(text); };
  };
  auto welcome = call(holder, "n1", secret("abc"));
  ASSERT_TRUE(welcome.getResult().isWelcome());
  EXPECT_EQ(welcome.getResult().getWelcome().getWelcome().getClusterKey().size(), 64u);
  for (const char* other : {"", "abd"}) {
    auto answer = call("n1", secret(other));
    ASSERT_TRUE(answer.getResult().isRefused());
    EXPECT_EQ(answer.getResult().getRefused().getWhy(), Why::NAME_TAKEN);
    std::string message = answer.getResult().getRefused().getMessage();
    EXPECT_EQ(message.find("dir of n1"), std::string::npos) << message;
  }
  EXPECT_TRUE(call("n1", secret("abc")).getResult().isWelcome());
}

class P08AgentsPort : public AgentsPortTest {
 protected:
  // Sends `part` bytes of a message that announces `whole` bytes.
  void send_part(kj::AsyncIoStream& stream, uint32_t whole, size_t part) {
    uint32_t head[2] = {0, whole / 8};  // one segment
    stream.write(head, sizeof head).wait(io_.waitScope);
    auto bytes = kj::heapArray<kj::byte>(part);
    memset(bytes.begin(), 0, part);
    // The other end stops reading once it has given up the connection.
    kj::runCatchingExceptions([&] { stream.write(bytes.begin(), part).wait(io_.waitScope); });
  }
  kj::Own<kj::AsyncIoStream> connect() {
    auto address =
        io_.provider->getNetwork().parseAddress(coordinator_->listen_address()).wait(io_.waitScope);
    return address->connect().wait(io_.waitScope);
  }
  // Whether the other end closes the connection; anything it sends before is ignored.
  bool closes(kj::AsyncIoStream& stream) {
    bool late = false;
    auto deadline =
        io_.provider->getTimer().afterDelay(20 * kj::SECONDS).then([&late] { late = true; });
    end_of(stream)
        .catch_([](kj::Exception&&) {})  // reset by the other end
        .exclusiveJoin(kj::mv(deadline))
        .wait(io_.waitScope);
    return !late;
  }

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

TEST_F(P08AgentsPort, RefusesInvalidHello) {
  const std::function<void(wire::Hello::Builder)> edits[] = {
      [](wire::Hello::Builder hello) { hello.setNode("not\na name"); },
      [](wire::Hello::Builder hello) { hello.setNode(std::string(100'000, 'a')); },
      [](wire::Hello::Builder hello) { hello.setWorkDirId(std::string(1'000, 'a')); },
      [](wire::Hello::Builder hello) { hello.initLabels(1)[0].setKey("a b"); },
      [](wire::Hello::Builder hello) { hello.initLabels(100'000); },
      [](wire::Hello::Builder hello) { hello.setClusterId(std::string(1'000, 'a')); },
      [](wire::Hello::Builder hello) { hello.initRunning(1'000'001); },
  };
  for (const auto& edit : edits) {
    auto answer = call("n1", edit);
    ASSERT_TRUE(answer.getResult().isRefused());
    EXPECT_EQ(answer.getResult().getRefused().getWhy(), Why::INVALID);
    EXPECT_LT(answer.getResult().getRefused().getMessage().size(), 500u);
  }
  auto many = call("n1", [](wire::Hello::Builder hello) { hello.initRunning(100'000); });
  EXPECT_EQ(many.getResult().getRefused().getWhy(), Why::OTHER_CLUSTER) << "a large one is read";
}

TEST_F(P08AgentsPort, RefusesOtherProtocolVersionsByName) {
  for (const uint32_t protocol : {wire::PROTOCOL_VERSION - 1, wire::PROTOCOL_VERSION + 1}) {
    auto answer = call("n1", [&](wire::Hello::Builder hello) { hello.setProtocol(protocol); });
    ASSERT_TRUE(answer.getResult().isRefused());
    auto refused = answer.getResult().getRefused();
    EXPECT_EQ(refused.getWhy(), Why::PROTOCOL);
    EXPECT_EQ(std::string(refused.getMessage()), "it uses protocol " + std::to_string(protocol) +
                                                     ", this coordinator uses " +
                                                     std::to_string(wire::PROTOCOL_VERSION));
    EXPECT_EQ(refused.getEnd().size(), 0u) << "its pods go on";
  }
  EXPECT_TRUE(call("n1").getResult().isWelcome());
}

TEST_F(P08AgentsPort, AllowsOneRegistrationAndFewRefusalsPerConnection) {
  Caller one = caller();
  ASSERT_TRUE(call(one, "n1").getResult().isWelcome());
  EXPECT_ANY_THROW(call(one, "n2"));
  Caller other = caller();
  auto wrong = [](wire::Hello::Builder hello) { hello.setNode("WRONG"); };
  int refused = 0;
  auto failed = kj::runCatchingExceptions([&] {
    for (; refused < 100; ++refused) ASSERT_TRUE(call(other, "n3", wrong).getResult().isRefused());
  });
  EXPECT_TRUE(failed != nullptr);
  EXPECT_GE(refused, 4);
  EXPECT_LE(refused, 5);
}

TEST_F(P08AgentsPort, ListsOfAReportAreBounded) {
  Caller one = caller();
  auto session = call(one, "n1").getResult().getWelcome().getSession();
  for (unsigned size : {512u, 513u}) {
    auto request = session.reportRequest();
    request.initStarts(size);
    auto sent = kj::runCatchingExceptions([&] { request.send().wait(io_.waitScope); });
    EXPECT_EQ(sent == nullptr, size == 512) << size;
  }
}

TEST_F(P08AgentsPort, BoundsUnfinishedMessagesBeforeRegistration) {
  std::vector<kj::Own<kj::AsyncIoStream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(connect());
    send_part(*streams.back(), 60 << 20, 20 << 20);
  }
  // 60 of the 64 MiB for all connections are in use: another 20 MiB do not fit.
  streams.push_back(connect());
  send_part(*streams.back(), 60 << 20, 20 << 20);
  EXPECT_TRUE(closes(*streams.back()));
  streams.clear();  // frees them; a single connection still may not exceed 32 MiB
  auto alone = connect();
  send_part(*alone, 60 << 20, 40 << 20);
  EXPECT_TRUE(closes(*alone));
  EXPECT_TRUE(call("n1").getResult().isWelcome());
}

}  // namespace
}  // namespace muster::coordinator
