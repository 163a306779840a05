// Coordinators: who may let another one copy the journal, and what the API shows and changes of
// those that there are.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api::testing {
namespace {

constexpr uid_t kUser = 1001, kOperator = 1002, kAdmin = 1003;
const std::string kCoordinators = "/apis/muster.dev/v1/coordinators";
const std::string kHead2 = kCoordinators + "/head2%3A7119";

Account coordinators_account(uid_t uid) {
  const char* name = uid == kUser ? "ada" : uid == kOperator ? "olga" : "alice";
  const char* group = uid == kUser ? "hpc" : uid == kOperator ? "ops" : "adm";
  return {{uid, uid, name}, {group}};
}

class CoordinatorsTest : protected AuditLines, public ServerTest {
 protected:
  CoordinatorsTest()
      : ServerTest([this](ServerOptions& o) {
          o.roles = {{"hpc"}, {"ops"}, {"adm"}, {}};
          o.read_account = coordinators_account;
          o.host_name = "head1";
          o.audit = [this](const OrderedJson& object) { audited.push_back(dumped(object)); };
        }) {}

  Answer as(uid_t who, const std::string& method, const std::string& path,
            const std::string& body = "{}") {
    uid = who;
    const std::string type = "Content-Type: application/json\r\n";
    return call(method == "GET" ? request(method, path) : request(method, path, type, body));
  }
};

TEST_F(CoordinatorsTest, P13OnlyAdminsCreateTokensForCoordinators) {
  for (const uid_t who : {kUser, kOperator})
    EXPECT_TRUE(as(who, "POST", kHead2 + "/token").is_status("Forbidden"));
  EXPECT_TRUE(backend.tokens_made.empty());
  const Answer made = as(kAdmin, "POST", kHead2 + "/token", R"({"ttlSeconds":600})");
  ASSERT_EQ(made.code, 201) << made.body;
  EXPECT_EQ(made.json()["coordinator"], "head2:7119");
  EXPECT_FALSE(made.json().contains("used")) << "it may be used again and again";
  const TokenWanted& wanted = backend.tokens_made.at(0);
  EXPECT_EQ(std::tuple(wanted.kind, wanted.subject, wanted.by, wanted.life_ms),
            std::tuple(core::TokenKind::coordinator, "head2:7119", "alice", 600'000));
  ASSERT_FALSE(audited.empty());
  EXPECT_NE(audited.back().find(R"("resource":"coordinators","subresource":"token")"),
            std::string::npos)
      << audited.back();
}

TEST_F(CoordinatorsTest, TokenOfACoordinatorHasANameAndALifetime) {
  const std::string name = "HOST or HOST:PORT", day = "a whole number, 60 to 604800";
  const struct {
    std::string path, body;
    int code;
    std::string why;
  } cases[] = {
      {kHead2, "{}", 201, ""},
      {kCoordinators + "/%5B::1%5D:7119", "{}", 201, ""},
      {kCoordinators + "/head2", R"({"ttlSeconds":604800})", 201, ""},
      {kCoordinators + "/head%0A2", "{}", 422, name},
      {kCoordinators + "/head%202", "{}", 422, name},
      {kCoordinators + "/" + std::string(261, 'a'), "{}", 422, name},
      {kHead2, R"({"ttlSeconds":604801})", 400, day},
      {kHead2, R"({"ttlSeconds":59})", 400, day},
      {kHead2, R"({"labels":["a"]})", 400, "labels"},
  };
  for (const auto& one : cases) {
    const Answer answer = as(kAdmin, "POST", one.path + "/token", one.body);
    EXPECT_EQ(answer.code, one.code) << one.path << " " << answer.body;
    EXPECT_NE(answer.body.find(one.why), std::string::npos) << one.path << " " << answer.body;
  }
  backend.refuse = invalid("the coordinator runs without --store");
  const Answer refused = as(kAdmin, "POST", kHead2 + "/token");
  EXPECT_EQ(refused.code, 400);
  EXPECT_NE(refused.body.find("without --store"), std::string::npos) << refused.body;
}

// A stolen token of an admin must not lead to the key of the authority.
TEST_F(CoordinatorsTest, P13NoTokenOfACoordinatorByAToken) {
  serve_remote();
  backend.valid_token = "good";
  backend.token_uid = kAdmin;
  auto client = connect_remote(
      request("POST", kHead2 + "/token",
              "Authorization: Bearer good\r\nContent-Type: application/json\r\n", "{}"));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->ended || whole(client->raw); }));
  const Answer answer = parsed(client->raw);
  EXPECT_TRUE(answer.is_status("Forbidden")) << answer.body;
  EXPECT_NE(answer.body.find("run this on a coordinator's machine"), std::string::npos)
      << answer.body;
  EXPECT_TRUE(backend.tokens_made.empty());
}

core::standby::LeadFigures two_coordinators() {
  using core::standby::MemberFigures;
  core::standby::LeadFigures figures{.term = 7, .store_answers = true, .commit = 40};
  figures.members.push_back(
      MemberFigures{.name = "head1:7119",
                    .place = {.peers = "head1:7119", .api_tls = "head1:7443", .version = "1.2.3"},
                    .leads = true,
                    .in_sync = true,
                    .connected = true,
                    .commit = 42});
  figures.members.push_back(MemberFigures{.name = "head2:7119",
                                          .place = {.peers = "head2:7119", .version = "1.2.2"},
                                          .in_sync = true,
                                          .connected = true,
                                          .commit = 40,
                                          .round_trip_us = 250});
  figures.members.push_back(MemberFigures{.name = "head3:7119", .place = {.peers = "head3:7119"}});
  return figures;
}

TEST_F(CoordinatorsTest, ListHasTheFiguresOfEach) {
  backend.lead = two_coordinators();
  const Json list = as(kUser, "GET", kCoordinators).json();
  EXPECT_EQ(list["kind"], "CoordinatorList");
  EXPECT_EQ(list["apiVersion"], "muster.dev/v1");
  ASSERT_EQ(list["items"].size(), 3u);
  EXPECT_EQ(list["items"][0]["metadata"]["name"], "head1:7119");
  EXPECT_EQ(list["items"][0]["status"],
            Json::parse(R"({"role":"leader","inSync":true,"connected":true,"term":7,"commit":42,)"
                        R"("lag":0,"storeAnswers":true,"addresses":{"peers":"head1:7119",)"
                        R"("apiTls":"head1:7443"},"version":"1.2.3"})"));
  EXPECT_EQ(list["items"][1]["status"],
            Json::parse(R"({"role":"follower","inSync":true,"connected":true,"term":7,"commit":40,)"
                        R"("lag":2,"roundTripSeconds":0.00025,)"
                        R"("addresses":{"peers":"head2:7119"},"version":"1.2.2"})"));
  // What is not known of it is left out.
  EXPECT_EQ(list["items"][2]["status"],
            Json::parse(R"({"role":"follower","inSync":false,"connected":false,"term":7,)"
                        R"("addresses":{"peers":"head3:7119"},"version":""})"));
}

TEST_F(CoordinatorsTest, AWipedStoreIsToldOfEach) {
  backend.lead = two_coordinators();
  backend.lead->store_wiped = true;
  const Json list = as(kUser, "GET", kCoordinators).json();
  EXPECT_EQ(list["items"].size(), 3u);
  for (const Json& one : list["items"]) EXPECT_EQ(one["status"]["storeWiped"], true) << one;
}

TEST_F(CoordinatorsTest, OneThatIsAloneLeads) {
  const Json list = as(kUser, "GET", kCoordinators).json();
  ASSERT_EQ(list["items"].size(), 1u);
  EXPECT_EQ(list["items"][0]["metadata"]["name"], "head1");
  EXPECT_EQ(list["items"][0]["status"],
            Json::parse(R"({"role":"leader","inSync":true,"connected":true,)"
                        R"("addresses":{"api":"127.0.0.1:7117"},"version":"1.2.3"})"));
  for (const char* change : {"/promotion", "/demotion"}) {
    const Answer refused = as(kOperator, "POST", kHead2 + change);
    EXPECT_TRUE(refused.is_status("Conflict")) << refused.body;
    EXPECT_NE(refused.body.find("this coordinator is alone"), std::string::npos) << refused.body;
  }
}

TEST_F(CoordinatorsTest, OperatorsChangeWhoLeads) {
  using core::standby::LeadChange;
  backend.lead = two_coordinators();
  const struct {
    std::string method, path;
    LeadChange change;
  } cases[] = {{"POST", kHead2 + "/promotion", LeadChange::promote},
               {"POST", kHead2 + "/demotion", LeadChange::demote},
               {"DELETE", kHead2, LeadChange::remove}};
  for (const auto& one : cases) {
    backend.lead_changes.clear();
    EXPECT_TRUE(as(kUser, one.method, one.path).is_status("Forbidden")) << one.path;
    EXPECT_TRUE(backend.lead_changes.empty()) << one.path;
    audited.clear();
    for (const uid_t who : {kOperator, kAdmin}) {
      const Answer done = as(who, one.method, one.path);
      EXPECT_EQ(done.code, 200) << done.body;
      EXPECT_EQ(done.json()["status"], "Success") << done.body;
    }
    EXPECT_EQ(backend.lead_changes,
              std::vector(2, std::pair(one.change, std::string("head2:7119"))));
    ASSERT_EQ(audited.size(), 2u);
    EXPECT_NE(audited[0].find(R"("user":"olga")"), std::string::npos) << audited[0];
    EXPECT_NE(audited[0].find(R"("name":"head2:7119")"), std::string::npos) << audited[0];
  }
}

TEST_F(CoordinatorsTest, RefusedChangeSaysWhy) {
  backend.lead = two_coordinators();
  backend.refuse = Error{Errc::conflict, "head2:7119 is not in sync", {}};
  const Answer conflict = as(kOperator, "POST", kHead2 + "/promotion");
  EXPECT_TRUE(conflict.is_status("Conflict")) << conflict.body;
  EXPECT_EQ(conflict.json()["message"], "head2:7119 is not in sync");
  backend.refuse = Error{Errc::not_found, "", {}};
  const Answer missing = as(kOperator, "DELETE", kHead2);
  EXPECT_TRUE(missing.is_status("NotFound")) << missing.body;
  EXPECT_NE(missing.body.find("head2:7119"), std::string::npos) << missing.body;
}

TEST_F(CoordinatorsTest, OtherMethodsAreNotAllowed) {
  EXPECT_EQ(as(kAdmin, "POST", kCoordinators).code, 405);
  EXPECT_EQ(as(kAdmin, "GET", kHead2).code, 405);
  EXPECT_EQ(as(kAdmin, "DELETE", kHead2 + "/promotion").code, 405);
  EXPECT_EQ(as(kAdmin, "POST", kHead2 + "/election").code, 404);
}

}  // namespace
}  // namespace muster::api::testing
