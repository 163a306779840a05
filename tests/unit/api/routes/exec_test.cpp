// Commands in pods: which requests are valid, what they reach, and whose sessions they reach.
#include "core/pod_name.hpp"
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api::testing {
namespace {

constexpr uid_t kOwner = 2001, kStranger = 2002, kOperator = 2003;
const std::string kSession(32, 'a'), kOther(32, 'b');

Account exec_account(uid_t uid) {
  return {{uid, uid, "u" + std::to_string(uid)}, {uid == kOperator ? "ops" : "hpc"}};
}

class ExecTest : protected AuditLines, public ServerTest {
 protected:
  explicit ExecTest(bool private_jobs = false)
      : ServerTest([this, private_jobs](ServerOptions& o) {
          o.roles = {{"hpc"}, {"ops"}, {}, {}};
          o.access.private_jobs = private_jobs;
          o.read_account = exec_account;
          o.audit = [this](const OrderedJson& object) { audited.push_back(dumped(object)); };
        }) {
    uid = kOwner;
    EXPECT_EQ(post(kJobs, manifest(R"({"name":"main","command":["true"]})")).code, 201);
    feed.create(100, 0, 1);
    const core::JobMeta& meta = view.job("default", "j")->job->object().meta;
    pod = core::pod_name(meta.name, meta.uid, true, {0, 0});
    path = "/apis/muster.dev/v1/namespaces/default/pods/" + pod + "/exec";
  }

  static std::string manifest(const std::string& containers) {
    return R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"completionMode":"Indexed",)"
           R"("completions":2,"parallelism":2,"template":{"spec":{"restartPolicy":"Never","containers":[)" +
           containers + "]}}}}";
  }
  void begin() {
    feed.bind(100, {0, 0}, 7);
    feed.start(100, {0, 0});
  }
  Answer start(const std::string& session = kSession) {
    return post(path, R"({"session":")" + session + R"(","command":["hostname","-f"]})");
  }
  Answer read(const std::string& more = "", const std::string& session = kSession) {
    return get(path + "?session=" + session + more);
  }
  // `text` must not contain NUL.
  Answer write(const std::string& more, const std::string& text,
               const std::string& type = "application/octet-stream",
               const std::string& session = kSession) {
    return call(request("PUT", path + "?session=" + session + more,
                        "Content-Type: " + type + "\r\n", text));
  }
  Answer end(const std::string& session = kSession) {
    return call(request("DELETE", path + "?session=" + session));
  }

  std::string pod, path;
};

class PrivateExecTest : public ExecTest {
 protected:
  PrivateExecTest() : ExecTest(true) {}
};

TEST_F(ExecTest, StartsReadsAndEndsSession) {
  begin();
  const Answer started = start();
  EXPECT_EQ(started.code, 201) << started.body;
  EXPECT_EQ(started.json()["session"], kSession);
  EXPECT_EQ(started.json()["container"], "main");
  EXPECT_EQ(started.head.find("Warning"), std::string::npos);
  ASSERT_TRUE(backend.session);
  EXPECT_EQ(backend.session->command, (std::vector<std::string>{"hostname", "-f"}));
  EXPECT_EQ(backend.session->pod, (PodId{100, 0, 0}));
  EXPECT_EQ(backend.session->node, 7u);
  EXPECT_EQ(backend.session->session, (ExecSession{kSession, "default", pod, kOwner}));

  EXPECT_EQ(read().json()["stdout"], "b25lCnR3bwp0aHJlZQo=");
  const Json later = read("&stdout=4&stderr=5").json();
  EXPECT_EQ(later["stdout"], "dHdvCnRocmVlCg==");
  EXPECT_EQ(later["stderr"], "");
  EXPECT_EQ(later["ended"], false);
  EXPECT_FALSE(later.contains("exitCode"));
  backend.session_output.ended = true;
  backend.session_output.exit_code = 143;
  EXPECT_EQ(read().json()["exitCode"], 143);

  EXPECT_EQ(end().code, 200);
  EXPECT_EQ(end().code, 404);
  EXPECT_EQ(read().code, 404);
}

TEST_F(ExecTest, WritesInputToSession) {
  begin();
  EXPECT_EQ(write("&offset=0", "x").code, 404);
  ASSERT_EQ(start().code, 201);
  EXPECT_FALSE(backend.session->input);
  const std::string with = R"({"session":")" + kSession + R"(","command":["sh"],"stdin":true)";
  ASSERT_EQ(post(path, with + "}").code, 201);
  EXPECT_TRUE(backend.session->input);
  EXPECT_FALSE(backend.session->terminal);
  ASSERT_EQ(post(path, with + R"(,"tty":true})").code, 201);
  EXPECT_TRUE(backend.session->terminal);

  const Answer some = write("&offset=7", "\x01\xff bytes");
  EXPECT_EQ(some.code, 200) << some.body;
  EXPECT_EQ(some.json()["taken"], 15);
  EXPECT_EQ(some.json()["closed"], false);
  ASSERT_TRUE(backend.written);
  EXPECT_EQ(backend.written->offset, 7u);
  EXPECT_EQ(backend.written->data, "\x01\xff bytes");
  EXPECT_FALSE(backend.written->eof);
  EXPECT_EQ(write("&offset=15&eof=1", "").json()["closed"], true);
  EXPECT_TRUE(backend.written->eof);
  EXPECT_EQ(write("&offset=0", std::string(kExecWriteMax, 'x')).code, 200);

  for (const auto& [more, text, type, code, why] :
       {std::tuple<std::string, std::string, std::string, int, const char*>{
            "", "x", "application/octet-stream", 400, "offset: must be a number of bytes"},
        {"&offset=-1", "x", "application/octet-stream", 400, "offset"},
        {"&offset=0&eof=yes", "x", "application/octet-stream", 400, "eof: must be 0 or 1"},
        {"&offset=0", "{}", "application/json", 415, "octet-stream"},
        {"&offset=0", std::string(kExecWriteMax + 1, 'x'), "application/octet-stream", 413,
         "64 KiB"}}) {
    const Answer refused = write(more, text, type);
    EXPECT_EQ(refused.code, code) << more;
    EXPECT_NE(refused.body.find(why), std::string::npos) << refused.body;
  }
  EXPECT_EQ(write("&offset=0", "x", "application/octet-stream", "x").code, 400);
  EXPECT_EQ(write("&offset=0", "x", "application/octet-stream", kOther).code, 404);
}

TEST_F(ExecTest, BadRequestNamesWrongParameter) {
  begin();
  const std::string id = R"("session":")" + kSession + "\"";
  for (const auto& [body, why] : {
           std::pair<std::string, const char*>{"[]", "JSON object"},
           {R"({"command":["a"]})", "session: must be 32"},
           {R"({"session":"A","command":["a"]})", "session: must be 32"},
           {"{" + id + "}", "command: Required"},
           {"{" + id + R"(,"command":[]})", "command: Required"},
           {"{" + id + R"(,"command":["a"],"resume":true})", "with resume"},
           {"{" + id + R"(,"resume":false})", "command: Required"},
           {"{" + id + R"(,"command":"a"})", "command: Required"},
           {"{" + id + R"(,"command":[1]})", "strings"},
           {"{" + id + R"(,"command":["","a"]})", "a name"},
           {"{" + id + R"(,"command":["a\u0000b"]})", "NUL"},
           {"{" + id + R"(,"command":["a"],"TTY":true})", "unknown field \\\"TTY"},
           {"{" + id + R"(,"command":["a"],"tty":true})", "tty: needs stdin"},
           {"{" + id + R"(,"command":["a"],"stdin":1})", "stdin: must be true or false"},
           {"{" + id + R"(,"command":["a"],"container":1})", "container: must be a string"},
           {"{" + id + R"(,"command":["a"],"container":"no"})",
            "container no is not valid for pod"},
           {"{" + id + R"(,"command":[")" + std::string(128 << 10, 'x') + R"("]})", "128 KiB"},
       }) {
    const Answer a = post(path, body);
    EXPECT_EQ(a.code, 400) << body.substr(0, 100);
    EXPECT_NE(a.body.find(why), std::string::npos) << a.body;
  }
  std::string words = "\"a\"";
  for (int i = 0; i < 4096; ++i) words += ",\"a\"";
  EXPECT_EQ(post(path, "{" + id + ",\"command\":[" + words + "]}").code, 400);
  EXPECT_EQ(post(path, "{" + id + ",\"command\":[\"" + std::string(600 << 10, 'x') + "\"]}").code,
            413);
  EXPECT_FALSE(backend.session);
  EXPECT_EQ(read("&stdout=-1").code, 400);
  EXPECT_EQ(read("", "x").code, 400);
  EXPECT_EQ(end("x").code, 400);
  const Answer patched = call(request("PATCH", path));
  EXPECT_EQ(patched.code, 403) << "no rule has this verb";
}

TEST_F(ExecTest, ResumeStartsNoCommand) {
  begin();
  EXPECT_EQ(post(path, R"({"session":")" + kSession + R"(","resume":true})").code, 201);
  ASSERT_TRUE(backend.session);
  EXPECT_TRUE(backend.session->command.empty());
}

TEST_F(ExecTest, StartIsRefusedUnlessPodRuns) {
  EXPECT_EQ(start().code, 409);
  EXPECT_NE(start().body.find("has not started yet"), std::string::npos);
  begin();
  backend.refuse = Error{Errc::conflict, "the pod is not on this node", {}};
  const Answer refused = start();
  EXPECT_EQ(refused.code, 409);
  EXPECT_EQ(refused.json()["message"], "the pod is not on this node");
  backend.refuse = Error{Errc::unavailable, "the node of this pod is not connected", {}};
  EXPECT_EQ(start().code, 503);
  backend.refuse.reset();
  path = "/apis/muster.dev/v1/namespaces/default/pods/nobody/exec";
  EXPECT_EQ(start().code, 404);
}

TEST_F(ExecTest, EndedPodServesOnlyEarlierSession) {
  begin();
  EXPECT_EQ(start().code, 201);
  feed.end(100, {0, 0}, 0);
  EXPECT_EQ(start().code, 201) << "its output is still there";
  backend.refuse = Error{Errc::unavailable, "the node of this pod is not connected", {}};
  const Answer late = start(kOther);
  EXPECT_EQ(late.code, 409);
  EXPECT_NE(late.body.find("has ended"), std::string::npos);
}

TEST_F(ExecTest, StartJoinsTheChosenContainerOrTheFirstWithAWarning) {
  EXPECT_EQ(call(request("DELETE", kJobs + "/j")).code, 200);
  EXPECT_EQ(
      post(
          kJobs,
          manifest(
              R"({"name":"main","command":["true"]},{"name":"side","command":["true"]}],)"
              R"("initContainers":[{"name":"a","command":["true"]},{"name":"b","command":["true"]})"))
          .code,
      201);
  feed.create(101, 0, 1);
  feed.bind(101, {0, 0}, 7);
  feed.start(101, {0, 0});
  const core::JobMeta& meta = view.job("default", "j")->job->object().meta;
  path = "/apis/muster.dev/v1/namespaces/default/pods/" +
         core::pod_name(meta.name, meta.uid, true, {0, 0}) + "/exec";
  const Answer started = start();
  EXPECT_EQ(started.code, 201) << started.body;
  EXPECT_NE(started.head.find("container main, the first of main, side"), std::string::npos)
      << started.head;
  EXPECT_EQ(backend.session->container, 2) << "init containers come first";
  for (const auto& [name, position] : {std::pair{"a", 0}, {"b", 1}, {"main", 2}, {"side", 3}}) {
    const Answer chosen = post(path, R"({"session":")" + kSession + R"(","command":["ls"],)" +
                                         R"("container":")" + name + "\"}");
    EXPECT_EQ(chosen.json()["container"], name) << chosen.body;
    EXPECT_EQ(chosen.head.find("Warning"), std::string::npos);
    EXPECT_EQ(backend.session->container, position);
  }
}

TEST_F(ExecTest, OnlyOwnerAndAdminMayExec) {
  begin();
  for (const uid_t other : {kStranger, kOperator}) {
    uid = other;
    EXPECT_TRUE(start().is_status("Forbidden")) << other;
    EXPECT_TRUE(read().is_status("Forbidden")) << other;
    EXPECT_TRUE(write("&offset=0", "x").is_status("Forbidden")) << other;
    EXPECT_TRUE(end().is_status("Forbidden")) << other;
  }
  EXPECT_FALSE(backend.session);
  uid = geteuid();  // the coordinator's own user is an admin
  EXPECT_EQ(start().code, 201);
}

TEST_F(PrivateExecTest, PodsOfOtherUsersAreNotFound) {
  begin();
  uid = kStranger;
  EXPECT_EQ(start().code, 404);
  EXPECT_EQ(read().code, 404);
}

TEST_F(ExecTest, SessionIsReachableOnlyByItsStarter) {
  begin();
  ASSERT_EQ(start().code, 201);
  uid = geteuid();
  EXPECT_EQ(start().code, 404);
  EXPECT_EQ(read().code, 404);
  EXPECT_EQ(write("&offset=0", "x").code, 404);
  EXPECT_EQ(end().code, 404);
  uid = kOwner;
  EXPECT_EQ(read().code, 200);
  // Nor can it be reached through another pod, even one that is gone.
  path = "/apis/muster.dev/v1/namespaces/default/pods/gone/exec";
  EXPECT_EQ(read().code, 404);
  EXPECT_EQ(end().code, 404);
}

TEST_F(ExecTest, AuditLogHasNoCommandWords) {
  begin();
  start();
  read();
  write("&offset=0", "x");
  end();
  std::vector<std::string> of_exec;
  for (const std::string& line : audited)
    if (line.find(R"("subresource":"exec")") != std::string::npos) of_exec.push_back(line);
  ASSERT_EQ(of_exec.size(), 2u) << "its start and its end; output and input are not";
  EXPECT_NE(of_exec[0].find(R"("verb":"create")"), std::string::npos) << of_exec[0];
  EXPECT_NE(of_exec[1].find(R"("verb":"delete")"), std::string::npos) << of_exec[1];
  for (const std::string& line : of_exec) {
    EXPECT_EQ(line.find("hostname"), std::string::npos) << line;
    EXPECT_EQ(line.find(kSession), std::string::npos) << line;
    EXPECT_NE(line.find(pod), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace muster::api::testing
