// ApiClient and the code that uses it, against a small server with canned answers.
#include "client/connect/http.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"
#include "core/pod_name.hpp"
#include "core/trust.hpp"
#include "tests/unit/client/fake_server.hpp"
#include "trust/tls/certificates.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace muster::cli {
namespace {

std::string job_text(const std::string& name, const std::string& more = "") {
  return R"({"kind":"Job","apiVersion":"batch/v1","metadata":{"name":")" + name +
         R"(","namespace":"default","uid":"u1"})" + more + "}";
}

TEST(Http, GetsAndPosts) {
  FakeServer server;
  server.answer("GET /a", 200, "{}");
  server.answer("POST /b", 201, R"({"y":2})");
  ApiClient client(server.address());
  EXPECT_EQ(client.get("/a", kTable)->body, "{}");
  EXPECT_EQ(client.get("/nothing")->status, 404);
  auto made = client.post("/b", R"({"x":1})");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->status, 201);
  EXPECT_EQ(made->json, Json({{"y", 2}}));
  const auto requests = server.requests();
  EXPECT_NE(requests[0].find("Accept: application/json;as=Table"), std::string::npos);
  EXPECT_NE(requests[0].find("Host: " + server.address()), std::string::npos);
  EXPECT_NE(requests[2].find("Content-Type: application/json"), std::string::npos);
  EXPECT_NE(requests[2].find("\r\n\r\n{\"x\":1}"), std::string::npos);
}

TEST(Http, DateOfTheServer) {
  FakeServer server;
  server.answer("GET /a", 200, "{}", "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  server.answer("GET /b", 200, "{}", "Date: today\r\n");
  server.answer("GET /c", 200, "{}");
  ApiClient client(server.address());
  EXPECT_EQ(client.get("/a")->date_ms, 784'111'777'000);
  EXPECT_EQ(client.get("/b")->date_ms, std::nullopt);
  EXPECT_EQ(client.get("/c")->date_ms, std::nullopt);
}

TEST(Http, WarningsOfTheServerArePrinted) {
  FakeServer server;
  server.answer("POST /apis/batch/v1/namespaces/default/jobs", 201, job_text("j"),
                "Warning: 299 - \"unknown \\\"a\\\"\"\r\nWarning: 299 - \"two\"\r\n");
  ApiClient client(server.address());
  testing::internal::CaptureStderr();
  EXPECT_TRUE(create_job(client, "default", "{}", false).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "muster: warning: unknown \"a\"\nmuster: warning: two\n");
}

TEST(Http, RequestOnClosedConnectionIsRetried) {
  FakeServer server;
  server.answer("GET /a", 200, "{}");
  server.close_each = true;
  ApiClient client(server.address());
  for (int i = 0; i < 3; ++i) {
    auto answer = client.get("/a");
    ASSERT_TRUE(answer.ok()) << answer.error().message;
  }
}

// A coordinator that restarts closes what waits in its backlog, and then its socket is gone.
TEST(Http, P32ACoordinatorThatRestartsIsWaitedFor) {
  std::string path = "/tmp/muster-http-XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  const std::string socket_path = path + "/api.sock";
  const auto listening = [&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd, 4), 0);
    return fd;
  };
  int fd = listening();
  std::thread server([&] {
    for (int i = 0; i < 2; ++i) close(accept(fd, nullptr, nullptr));
    close(fd);
    unlink(socket_path.c_str());
    fd = listening();
    const int connection = accept(fd, nullptr, nullptr);
    char request[4096];
    EXPECT_GT(recv(connection, request, sizeof request, 0), 0);
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
    EXPECT_EQ(send(connection, answer.data(), answer.size(), 0), ssize_t(answer.size()));
    close(connection);
  });
  ApiClient client("unix:" + socket_path);
  client.set_patience(30'000);
  const auto answer = client.get("/healthz", "*/*");
  server.join();
  close(fd);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  std::filesystem::remove_all(path);
}

TEST(Http, ReportsConnectionRefused) {
  std::string address;
  {
    FakeServer server;
    address = server.address();
  }
  ApiClient client(address, "from --api");
  auto answer = client.get("/a");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Errc::unavailable);
  EXPECT_TRUE(answer.error().message.starts_with("cannot reach the coordinator at " + address +
                                                 ": connection refused (from --api)\n"));
}

TEST(Http, TimesOutWithoutAnswer) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // listens but never answers
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ApiClient client("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  client.set_timeout(50);
  auto answer = client.get("/a");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("no answer"), std::string::npos);
  close(fd);
}

// --- several addresses

constexpr char kNotLeading[] =
    R"({"kind":"Status","status":"Failure","reason":"NotLeader","message":"b leads","code":503})";

std::string closed_address() {
  return FakeServer().address();
}

// A socket whose queue of connections is full: like a machine that is gone, it answers nothing.
class SilentMachine {
 public:
  SilentMachine() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(fds_[0], reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(listen(fds_[0], 0), 0);
    EXPECT_EQ(getsockname(fds_[0], reinterpret_cast<sockaddr*>(&at), &size), 0);
    address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    EXPECT_EQ(connect(fds_[1], reinterpret_cast<sockaddr*>(&at), size), 0);
  }
  ~SilentMachine() {
    for (const int fd : fds_) close(fd);
  }
  std::string address;

 private:
  int fds_[2] = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                 socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST(HttpOfSeveral, TheFirstThatAnswersIsUsed) {
  FakeServer first, second;
  first.answer("POST /a", 201, "{}");
  ApiClient client(first.address() + "," + second.address());
  EXPECT_EQ(client.post("/a", "{}")->status, 201);
  EXPECT_EQ(client.address(), first.address());
  EXPECT_TRUE(second.requests().empty());
}

TEST(HttpOfSeveral, WhatCannotBeConnectedToIsPassedOver) {
  FakeServer second;
  second.answer("POST /a", 201, "{}");
  second.answer("GET /b", 200, "{}");
  ApiClient client(closed_address() + "," + second.address());
  EXPECT_EQ(client.post("/a", "{}")->status, 201);
  EXPECT_EQ(client.address(), second.address());
  EXPECT_EQ(client.get("/b")->status, 200);
  EXPECT_EQ(second.requests().size(), 2u);
}

TEST(HttpOfSeveral, AMachineThatIsGoneIsPassedOverInTime) {
  SilentMachine gone;
  FakeServer second;
  second.answer("GET /a", 200, "{}");
  ApiClient client(gone.address + "," + second.address());
  const Millis begin = boot_now();
  EXPECT_EQ(client.get("/a")->status, 200);
  EXPECT_LT(boot_now() - begin, 20'000) << "one address would be waited for until the timeout";
  EXPECT_EQ(client.address(), second.address());
}

TEST(HttpOfSeveral, OneThatDoesNotLeadIsPassedOver) {
  FakeServer follower, leader;
  follower.answer("POST /a", 503, kNotLeading);
  leader.answer("POST /a", 201, "{}");
  ApiClient client(follower.address() + "," + leader.address());
  EXPECT_EQ(client.post("/a", "{}")->status, 201);
  EXPECT_EQ(client.address(), leader.address());
}

TEST(HttpOfSeveral, OneThatIsStartingIsWaitedFor) {
  FakeServer starting, other;
  starting.answer("POST /a", 503, R"({"kind":"Status","reason":"ServiceUnavailable"})");
  starting.answer("POST /a", 201, "{}");
  other.answer("POST /a", 201, "{}");
  ApiClient client(starting.address() + "," + other.address());
  client.set_patience(30'000);
  EXPECT_EQ(client.post("/a", "{}")->status, 201);
  EXPECT_TRUE(other.requests().empty());
}

TEST(HttpOfSeveral, TheyAreTriedAgainWhilePatienceLasts) {
  FakeServer late;
  for (int i = 0; i < 3; ++i) late.answer("POST /a", 503, kNotLeading);
  late.answer("POST /a", 201, "{}");
  ApiClient client(closed_address() + "," + late.address());
  client.set_patience(30'000);
  EXPECT_EQ(client.post("/a", "{}")->status, 201);
  EXPECT_EQ(late.requests().size(), 4u);
}

TEST(HttpOfSeveral, TheErrorSaysWhatBecameOfEach) {
  FakeServer follower;
  follower.answer("GET /a", 503, kNotLeading);
  const std::string closed = closed_address();
  ApiClient client(closed + "," + follower.address(), "from MUSTER_API");
  const auto answer = client.get("/a");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Errc::unavailable);
  EXPECT_TRUE(answer.error().message.starts_with("cannot reach a coordinator: " + closed +
                                                 ": connection refused; " + follower.address() +
                                                 ": b leads (from MUSTER_API)\n"))
      << answer.error().message;
}

// A request that may have taken effect goes nowhere else.
TEST(HttpOfSeveral, WhatMayHaveTakenEffectIsNotRepeated) {
  FakeServer second;
  second.answer("POST /a", 201, "{}");
  second.answer("GET /a", 200, "{}");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(listen(fd, 4), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
  std::thread dying([fd] {  // twice, after it has read a request
    for (int i = 0; i < 2; ++i) {
      const int connection = accept(fd, nullptr, nullptr);
      char request[4096];
      EXPECT_GT(recv(connection, request, sizeof request, 0), 0);
      close(connection);
    }
  });
  const std::string dying_address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  ApiClient client(dying_address + "," + second.address());
  const auto posted = client.post("/a", "{}");
  ASSERT_FALSE(posted.ok());
  EXPECT_TRUE(
      posted.error().message.starts_with("cannot reach the coordinator at " + dying_address))
      << posted.error().message;
  EXPECT_TRUE(second.requests().empty());
  EXPECT_EQ(client.get("/a")->status, 200) << "a GET changes nothing";
  dying.join();
  close(fd);
}

TEST(HttpOfSeveral, AGetThatGetsNoAnswerGoesToTheNext) {
  FakeServer second;
  second.answer("GET /a", 200, "{}");
  const int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(bind(deaf, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(listen(deaf, 4), 0);
  ASSERT_EQ(getsockname(deaf, reinterpret_cast<sockaddr*>(&at), &size), 0);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  ApiClient client(address + "," + second.address());
  client.set_timeout(300);
  const auto posted = client.post("/a", "{}");
  ASSERT_FALSE(posted.ok()) << "it may have taken effect";
  EXPECT_TRUE(second.requests().empty());
  EXPECT_EQ(client.get("/a")->status, 200);
  close(deaf);
}

TEST(HttpOfSeveral, ATokenIsSentOverTlsOnly) {
  FakeServer plain;
  plain.answer("GET /a", 200, "{}");
  const std::string path = testing::TempDir() + "muster-http-token-" + std::to_string(getpid());
  std::ofstream(path) << std::string(core::kTokenIdDigits, 'a') << "."
                      << std::string(core::kTokenSecretDigits, 'b') << "\n"
                      << tls::Authority::make("cluster", wall_now()).pems().certificate;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  ApiClient client("https://" + closed_address() + "," + plain.address(), "",
                   {.token_file = path, .token_named = true});
  ASSERT_TRUE(client.token().ok()) << client.token().error().message;
  EXPECT_EQ(client.get("/a")->status, 200);
  ASSERT_EQ(plain.requests().size(), 1u);
  EXPECT_EQ(plain.requests()[0].find("Authorization"), std::string::npos) << plain.requests()[0];
  std::filesystem::remove(path);
}

TEST(HttpOfSeveral, OneOfAnotherClusterIsRefused) {
  FakeServer first, other;
  first.answer("GET /api/v1/namespaces/default/pods/p/log", 200, "x", "Muster-Cluster: c1\r\n");
  first.answer("GET /api/v1/namespaces/default/pods/q/log", 503, kNotLeading);
  other.answer("GET /api/v1/namespaces/default/pods/q/log", 200, "y", "Muster-Cluster: c2\r\n");
  ApiClient client(first.address() + "," + other.address());
  EXPECT_EQ(client.get("/api/v1/namespaces/default/pods/p/log", "*/*")->body, "x");
  const auto answer = client.get("/api/v1/namespaces/default/pods/q/log", "*/*");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Errc::foreign) << answer.error().message;
}

TEST(Http, StreamsLines) {
  FakeServer server;
  const std::string log = "/api/v1/namespaces/default/pods/p/log";
  server.answer("GET " + log, 200, "one\ntwo\n\nthree\nrest");
  ApiClient client(server.address());
  std::vector<std::string> lines;
  EXPECT_TRUE(client
                  .lines(log, kJson,
                         [&lines](std::string_view line) { return lines.emplace_back(line), true; })
                  .ok());
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "three", "rest"}));
  lines.clear();
  EXPECT_TRUE(
      client
          .lines(log, kJson,
                 [&lines](std::string_view line) { return lines.emplace_back(line), false; })
          .ok());
  EXPECT_EQ(lines, std::vector<std::string>{"one"});
}

TEST(Objects, RefusalsBecomeErrors) {
  Error e = refusal(
      {404, R"({"kind":"Status","message":"jobs.batch \"x\" not found","reason":"NotFound"})"});
  EXPECT_EQ(e.code, Errc::not_found);
  EXPECT_EQ(e.message, "jobs.batch \"x\" not found");
  e = refusal(
      {422,
       R"({"message":"long","reason":"Invalid","details":{"name":"x","kind":"Job","causes":[)"
       R"({"field":"spec.parallelism","message":"Invalid value: -1: must be >= 0"},{"field":"b","message":"c"}]}})"});
  EXPECT_EQ(e.code, Errc::invalid);
  EXPECT_EQ(e.message, "Job \"x\" is invalid:");
  ASSERT_EQ(e.violations.size(), 2u);
  EXPECT_EQ(e.violations[0].path, "spec.parallelism");
  EXPECT_EQ(exit_code(refusal({409, R"({"reason":"AlreadyExists"})"}).code), kRejected);
  EXPECT_EQ(exit_code(refusal({503, "starting"}).code), kUnreachable);
  EXPECT_NE(refusal({500, "oops"}).message.find("oops"), std::string::npos);
}

TEST(Objects, AttemptIsReadFromPodUid) {
  const std::string job_uid = "0f2ad3b4-5c6d-4e7f-8a9b-0c1d2e3f4a5b";
  Json pod = {{"metadata",
               {{"annotations", {{"batch.kubernetes.io/job-completion-index", "7"}}},
                {"uid", core::pod_uid(job_uid, {7, 3})},
                {"ownerReferences", Json::array({{{"uid", job_uid}}})}}}};
  EXPECT_EQ(index_of(pod), 7);
  EXPECT_EQ(attempt_of(pod), 3);
  pod["metadata"].erase("ownerReferences");
  EXPECT_EQ(attempt_of(pod), std::nullopt);
}

}  // namespace
}  // namespace muster::cli
