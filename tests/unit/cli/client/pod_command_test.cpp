// What a command in a pod asks of the coordinator, and how answers are read.
#include "cli/client/pod_command.hpp"

#include "tests/unit/cli/client/fake_server.hpp"

namespace muster::cli {
namespace {

const std::string kExecPath = "/apis/muster.dev/v1/namespaces/team/pods/p-0-abcde/exec";

std::string status_of(int code, const std::string& message) {
  return R"({"kind":"Status","status":"Failure","code":)" + std::to_string(code) +
         R"(,"message":")" + message + R"("})";
}

TEST(PodCommand, RefusalsSayWhatTheCallerMayDo) {
  FakeServer server;
  ApiClient client(server.address());
  const PodCommand command("team", "p-0-abcde");
  EXPECT_EQ(command.start(client, {"ls"}).error().code, Errc::not_found);
  server.answer("POST " + kExecPath, 409, status_of(409, "pod p-0-abcde has ended"));
  const auto ended = command.start(client, {"ls"});
  EXPECT_EQ(ended.error().code, Errc::conflict);
  EXPECT_EQ(ended.error().message, "pod p-0-abcde has ended");
  EXPECT_EQ(command.resume(client).error().code, Errc::conflict);
}

TEST(PodCommand, StartsAndResumesOneSession) {
  FakeServer server;
  ApiClient client(server.address());
  const PodCommand command("team", "p-0-abcde"), other("team", "p-0-abcde");
  server.answer("POST " + kExecPath, 201, "{}", "Warning: 299 - \"of two\"\r\n");
  const auto started = command.start(client, {"ls", "-l"});
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->warnings, std::vector<std::string>{"of two"});
  EXPECT_TRUE(command.resume(client).ok());
  EXPECT_TRUE(other.resume(client).ok());
}

TEST(PodCommand, ReadsBytes) {
  FakeServer server;
  ApiClient client(server.address());
  const PodCommand command("team", "p-0-abcde");
  server.answer("GET " + kExecPath, 200, R"({"stdout":"AP8K","stderr":"","ended":false})");
  server.answer("GET " + kExecPath, 200,
                R"({"stdout":"","stderr":"b29wcw==","ended":true,"exitCode":143,"message":"why"})");
  server.answer("GET " + kExecPath, 200, R"({"stdout":"%%%"})");
  const auto first = command.read(client, 5, 7);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->out, std::string("\0\xff\n", 3));
  EXPECT_FALSE(first->ended);
  EXPECT_NE(server.requests().front().find("&stdout=5&stderr=7"), std::string::npos);
  const auto last = command.read(client, 8, 7);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->err, "oops");
  EXPECT_TRUE(last->ended);
  EXPECT_EQ(last->exit_code, 143);
  EXPECT_EQ(last->message, "why");
  EXPECT_FALSE(command.read(client, 8, 7).ok());
}

}  // namespace
}  // namespace muster::cli
