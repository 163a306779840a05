// The requests that a command in a pod sends, and how answers are read.
#include "client/inputs/pod_command.hpp"

#include "tests/unit/client/fake_server.hpp"

namespace muster::cli {
namespace {

const std::string kExecPath = "/apis/muster.dev/v1/namespaces/team/pods/p-0-abcde/exec";

std::string status_of(int code, const std::string& message) {
  return R"({"kind":"Status","status":"Failure","code":)" + std::to_string(code) +
         R"(,"message":")" + message + R"("})";
}

const std::string kEcho = R"("session":"SESSION")";  // the one that was asked for

// An answer of this kind, with these members.
std::string exec_text(const char* kind, const std::string& members) {
  return std::string(R"({"kind":")") + kind + R"(","apiVersion":"muster.dev/v1",)" + members + "}";
}

TEST(PodCommand, RefusalsKeepTheirCodeAndMessage) {
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
  server.answer("POST " + kExecPath, 201, exec_text("Exec", kEcho),
                "Warning: 299 - \"of two\"\r\n");
  const auto started = command.start(client, {"ls", "-l"});
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->warnings, std::vector<std::string>{"of two"});
  EXPECT_TRUE(command.resume(client).ok());
  EXPECT_TRUE(other.resume(client).ok());
}

TEST(PodCommand, ReadsOutputFromOffsets) {
  FakeServer server;
  ApiClient client(server.address());
  const PodCommand command("team", "p-0-abcde");
  server.answer("GET " + kExecPath, 200,
                exec_text("ExecOutput", R"("stdout":"AP8K","stderr":"","ended":false)"));
  server.answer(
      "GET " + kExecPath, 200,
      exec_text("ExecOutput",
                R"("stdout":"","stderr":"b29wcw==","ended":true,"exitCode":143,"message":"why")"));
  server.answer("GET " + kExecPath, 200,
                exec_text("ExecOutput", R"("stdout":"%%%","stderr":"","ended":false)"));
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

TEST(PodCommand, WritesInputAtOffset) {
  FakeServer server;
  ApiClient client(server.address());
  const PodCommand command("team", "p-0-abcde");
  server.answer("PUT " + kExecPath, 200, exec_text("ExecInput", R"("taken":7,"closed":false)"));
  server.answer("PUT " + kExecPath, 200, exec_text("ExecInput", R"("taken":9,"closed":true)"));
  const auto some = command.write(client, 5, std::string("\0\xff\r\n", 4), false);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->bytes, 7u);
  EXPECT_FALSE(some->closed);
  const auto last = command.write(client, 7, "rest", true);
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(last->closed);
  const auto sent = server.requests();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_NE(sent[0].find("&offset=5 "), std::string::npos) << sent[0];
  EXPECT_NE(sent[0].find("application/octet-stream"), std::string::npos) << sent[0];
  EXPECT_NE(sent[1].find("&offset=7&eof=1 "), std::string::npos) << sent[1];
  EXPECT_EQ(PodCommand("team", "other").write(client, 0, "x", false).error().code, Errc::not_found);
}

TEST(PodCommand, RequestsStdinAndTtyOnlyIfUsed) {
  FakeServer server;
  ApiClient client(server.address());
  server.answer("POST " + kExecPath, 201, exec_text("Exec", kEcho));
  const PodCommand command("team", "p-0-abcde");
  using Reads = PodCommand::Reads;
  for (const Reads reads : {Reads::nothing, Reads::input, Reads::terminal})
    ASSERT_TRUE(command.start(client, {"ls"}, reads).ok());
  const auto sent = server.requests();
  EXPECT_EQ(sent[0].find("stdin"), std::string::npos) << sent[0];
  EXPECT_NE(sent[1].find(R"("stdin":true)"), std::string::npos) << sent[1];
  EXPECT_EQ(sent[1].find("tty"), std::string::npos) << sent[1];
  EXPECT_NE(sent[2].find(R"("tty":true)"), std::string::npos) << sent[2];
}

// A write on a connection that the server has closed is sent again.
TEST(PodCommand, RetriesWriteOnClosedConnection) {
  FakeServer server;
  ApiClient client(server.address());
  server.answer("PUT " + kExecPath, 200, exec_text("ExecInput", R"("taken":1,"closed":false)"));
  server.close_each = true;
  const PodCommand command("team", "p-0-abcde");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(command.write(client, 0, "x", false).ok()) << i;
}

}  // namespace
}  // namespace muster::cli
