// Munge log-ins: what unauthenticated callers get, and what is audited.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api::testing {
namespace {

constexpr uid_t kAda = 60'001, kEve = 60'002;
const std::string kMunge = "/apis/muster.dev/v1/munge";
const std::string kBody = R"({"credential":"MUNGE:x:"})";

class MungeTest : protected AuditLines, public ServerTest {
 protected:
  explicit MungeTest(const std::function<void(ServerOptions&)>& adapt = {})
      : ServerTest([this, adapt](ServerOptions& o) {
          o.roles = {{"hpc"}, {}, {}, {}};
          o.read_account = [](uid_t uid) {
            return Account{{uid, uid, uid == kAda ? "alice" : "other"},
                           {uid == kAda ? "hpc" : "none"}};
          };
          o.audit = [this](const OrderedJson& object) { audited.push_back(dumped(object)); };
          o.munge = true;
          o.munge_patience = 20 * kj::MILLISECONDS;
          if (adapt) adapt(o);
        }) {
    serve_remote();
  }

  // A request from another machine.
  Answer remote(const std::string& method, const std::string& path, const std::string& body = "",
                const std::string& headers = "") {
    const std::string type = body.empty() ? "" : "Content-Type: application/json\r\n";
    auto client = connect_remote(request(method, path, headers + type, body));
    auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
    EXPECT_TRUE(until([&] { return client->ended || whole(client->raw); })) << method << path;
    return parsed(client->raw);
  }
};

TEST_F(MungeTest, ACredentialIsExchangedForAToken) {
  const Json audience = remote("GET", kMunge).json();
  EXPECT_EQ(audience["cluster"], "0123456789abcdef");
  EXPECT_EQ(audience["start"], "fedcba9876543210");
  EXPECT_EQ(audience["uid"], geteuid());
  EXPECT_TRUE(audited.empty());
  backend.munge_says = kAda;
  const Answer made = remote("POST", kMunge, kBody);
  EXPECT_EQ(made.code, 201) << made.body;
  EXPECT_EQ(made.json()["user"], "alice");
  EXPECT_EQ(made.json()["text"], "text");
  EXPECT_EQ(backend.munge_asked, std::vector<std::string>{"MUNGE:x: from 127.0.0.1"});
  ASSERT_EQ(backend.tokens_made.size(), 1u);
  const TokenWanted& wanted = backend.tokens_made[0];
  EXPECT_EQ(std::tuple(wanted.kind, wanted.subject, wanted.uid, wanted.by, wanted.life_ms),
            std::tuple(core::TokenKind::user, "alice", kAda, "munge", core::kMungeTokenLife));
  ASSERT_EQ(audited.size(), 1u);
  for (const char* part : {R"("user":"alice")", R"("resource":"munge")", R"("code":201)"})
    EXPECT_NE(audited[0].find(part), std::string::npos) << audited[0];
  EXPECT_EQ(audited[0].find("MUNGE:"), std::string::npos);
}

TEST_F(MungeTest, RefusalsLookAlikeAndAreNotAudited) {
  std::string first;
  for (const char* why : {"Expired credential", "it was used before"}) {
    backend.munge_says = invalid(why);
    const Answer refused = remote("POST", kMunge, kBody);
    EXPECT_EQ(refused.code, 401);
    EXPECT_TRUE(refused.is_status("Unauthorized")) << refused.body;
    if (first.empty()) first = refused.body;
    EXPECT_EQ(refused.body, first);
  }
  EXPECT_TRUE(audited.empty());
  EXPECT_TRUE(backend.tokens_made.empty());
}

TEST_F(MungeTest, UserWithoutRoleIsForbiddenAndAudited) {
  for (const uid_t uid : {uid_t{0}, geteuid(), kEve}) {
    audited.clear();
    backend.munge_says = uid;
    EXPECT_TRUE(remote("POST", kMunge, kBody).is_status("Forbidden")) << uid;
    EXPECT_EQ(audited.size(), 1u) << uid;
  }
  EXPECT_TRUE(backend.tokens_made.empty());
}

TEST_F(MungeTest, UnresponsiveMungedMakesServiceUnavailable) {
  EXPECT_TRUE(remote("POST", kMunge, kBody).is_status("ServiceUnavailable"));
  ASSERT_EQ(backend.munge_held.size(), 1u);
  backend.munge_held[0](kAda);  // too late
  EXPECT_EQ(remote("GET", "/healthz").code, 200);
  EXPECT_TRUE(backend.tokens_made.empty());
  backend.munge_says = Error{Errc::unavailable, "no such socket", {}};
  EXPECT_TRUE(remote("POST", kMunge, kBody).is_status("ServiceUnavailable"));
  backend.munge_says = Error{Errc::overloaded, "", {}};
  EXPECT_TRUE(remote("POST", kMunge, kBody).is_status("TooManyRequests"));
}

TEST_F(MungeTest, OtherMethodsAndMalformedBodiesAreRefused) {
  backend.munge_says = kAda;
  EXPECT_EQ(remote("POST", kMunge, R"({"credential":")" + std::string(8192, 'x') + "\"}").code,
            413);
  for (const char* body : {"", "{", "[]", R"("MUNGE:x:")", "{}", R"({"credential":1})",
                           R"({"credential":"x","ttlSeconds":1})"})
    EXPECT_EQ(remote("POST", kMunge, body).code, 400) << body;
  EXPECT_EQ(remote("DELETE", kMunge).code, 405);
  EXPECT_EQ(remote("GET", kMunge + "/x").code, 401);
  EXPECT_EQ(remote("POST", kMunge, kBody, "Authorization: Bearer x\r\n").code, 401);
  EXPECT_TRUE(backend.munge_asked.empty());
  server.set_ready(false, "recovering");
  EXPECT_EQ(remote("POST", kMunge, kBody).code, 503);
}

TEST_F(MungeTest, LoginIsForbiddenOnLocalConnections) {
  backend.munge_says = kAda;
  uid = kAda;
  EXPECT_EQ(call(request("POST", kMunge, "Content-Type: application/json\r\n", kBody)).code, 403);
  EXPECT_EQ(get(kMunge).code, 403);
  EXPECT_TRUE(backend.munge_asked.empty());
}

class NoMungeTest : public MungeTest {
 protected:
  NoMungeTest() : MungeTest([](ServerOptions& o) { o.munge = false; }) {}
};

TEST_F(NoMungeTest, LoginIsUnauthorizedUnlessEnabled) {
  backend.munge_says = kAda;
  EXPECT_EQ(remote("GET", kMunge).code, 401);
  EXPECT_EQ(remote("POST", kMunge, kBody).code, 401);
  EXPECT_TRUE(backend.munge_asked.empty());
}

}  // namespace
}  // namespace muster::api::testing
