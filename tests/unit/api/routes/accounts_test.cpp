// Service accounts: one in each namespace in use.
#include "tests/unit/api/routes/server_fixture.hpp"

#include <memory>

namespace muster::api {
namespace {

using namespace testing;

const std::string kAccounts = "/api/v1/serviceaccounts";

class AccountsTest : public ServerTest {
 protected:
  AccountsTest() { feed.admit(1, make_job("a", uid_of(1), 1, "", "blue")); }
  // Opens a watch, and reads it while the loop runs.
  void watch(const std::string& query, const std::string& headers = "") {
    opened_ = std::make_unique<Opened>();
    opened_->client = connect(request("GET", kAccounts + "?watch=true" + query, headers));
    opened_->reading = opened_->client->read().eagerlyEvaluate([](kj::Exception&&) {});
  }
  std::vector<Json> events() const {
    std::vector<Json> found;
    const std::string body = parsed(client().raw).body;
    for (size_t at = 0, end; (end = body.find('\n', at)) != std::string::npos; at = end + 1)
      found.push_back(Json::parse(body.substr(at, end - at), nullptr, false));
    return found;
  }
  // "ADDED blue, BOOKMARK"
  std::string told() const {
    std::string text;
    for (const Json& event : events()) {
      text += (text.empty() ? "" : ", ") + event["type"].get<std::string>();
      const Json meta = event["object"].value("metadata", Json::object());
      if (meta.contains("namespace")) text += " " + meta["namespace"].get<std::string>();
    }
    return text;
  }
  const Client& client() const { return *opened_->client; }

 private:
  struct Opened {  // whose destructors may throw
    kj::Own<Client> client;
    kj::Promise<void> reading = kj::READY_NOW;
  };
  std::unique_ptr<Opened> opened_;
};

TEST_F(AccountsTest, AreSelectedByNamespaceAndFields) {
  const auto count = [&](const std::string& path) { return get(path).json()["items"].size(); };
  EXPECT_EQ(count(kAccounts), 2u);
  EXPECT_EQ(count(kAccounts + "?fieldSelector=metadata.name%3Dother"), 0u);
  EXPECT_EQ(count(kAccounts + "?fieldSelector=metadata.namespace%3Dblue"), 1u);
  EXPECT_EQ(count(kAccounts + "?labelSelector=a"), 0u);
  EXPECT_EQ(count("/api/v1/namespaces/blue/serviceaccounts"), 1u);
  EXPECT_EQ(get(kAccounts + "?resourceVersionMatch=Exact").code, 422);
  const std::string bare =
      "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n";
  EXPECT_EQ(get("/api/v1/namespaces/blue/serviceaccounts/default", bare).json()["kind"],
            "PartialObjectMetadata");
  EXPECT_EQ(post("/api/v1/namespaces/blue/serviceaccounts", "{}").code, 405);
}

TEST_F(AccountsTest, ComeAndGoWithTheirNamespaces) {
  watch("&timeoutSeconds=60");
  ASSERT_TRUE(until([&] { return told() == "ADDED blue, ADDED default"; })) << client().raw;
  EXPECT_EQ(events()[0]["object"]["metadata"]["name"], "default");
  EXPECT_EQ(events()[0]["object"]["metadata"]["resourceVersion"], std::to_string(view.version()));
  ASSERT_EQ(post("/api/v1/namespaces", R"({"metadata":{"name":"red"}})").code, 201);
  ASSERT_TRUE(until([&] { return told() == "ADDED blue, ADDED default, ADDED red"; }));
  ASSERT_EQ(call(request("DELETE", "/api/v1/namespaces/red")).code, 200);
  EXPECT_TRUE(until([&] { return told() == "ADDED blue, ADDED default, ADDED red, DELETED red"; }));
}

// What changed between the list and the watch is told, even if it may be known.
TEST_F(AccountsTest, WatchContinuesFromAnyVersion) {
  ASSERT_EQ(post("/api/v1/namespaces", R"({"metadata":{"name":"red"}})").code, 201);
  const std::string seen = get(kAccounts).json()["metadata"]["resourceVersion"];
  watch("&resourceVersion=" + seen + "&timeoutSeconds=60");
  ASSERT_TRUE(until([&] { return parsed(client().raw).code == 200; }));
  EXPECT_EQ(told(), "");
  ASSERT_EQ(call(request("DELETE", "/api/v1/namespaces/red")).code, 200);
  ASSERT_EQ(post("/api/v1/namespaces", R"({"metadata":{"name":"green"}})").code, 201);
  ASSERT_TRUE(until([&] { return get("/api/v1/namespaces/red").code == 404; }));
  ASSERT_TRUE(until([&] { return events().size() == 2; })) << client().raw;
  watch("&resourceVersion=" + seen + "&timeoutSeconds=60");
  ASSERT_TRUE(until([&] { return told() == "ADDED green, DELETED red"; })) << client().raw;
  const Answer later = get(kAccounts + "?watch=true&timeoutSeconds=1&resourceVersion=" +
                           std::to_string(view.version() + (1 << 20)));
  EXPECT_EQ(later.code, 200) << "it waits for that version";
  EXPECT_EQ(later.body, "");
}

TEST_F(AccountsTest, WatchSendsBookmarksAndEndsInTime) {
  server.streams().watch_idle = 1 * kj::MILLISECONDS;
  watch(
      "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
      "&timeoutSeconds=1");
  ASSERT_TRUE(until([&] { return client().ended || whole(client().raw); }));
  const std::vector<Json> all = events();
  ASSERT_GE(all.size(), 4u) << client().raw;
  EXPECT_TRUE(told().starts_with("ADDED blue, ADDED default, BOOKMARK, BOOKMARK")) << told();
  EXPECT_EQ(all[2]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
  EXPECT_EQ(all[3]["object"]["kind"], "ServiceAccount");
  EXPECT_EQ(all[3]["object"]["metadata"]["resourceVersion"], std::to_string(view.version()));
}

TEST_F(AccountsTest, WatchIsSentAsTables) {
  watch("&timeoutSeconds=60", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n");
  ASSERT_TRUE(until([&] { return events().size() == 2; })) << client().raw;
  EXPECT_EQ(events()[0]["object"]["columnDefinitions"].size(), 3u);
  EXPECT_TRUE(events()[1]["object"]["columnDefinitions"].is_null());
  EXPECT_EQ(events()[1]["object"]["rows"][0]["object"]["metadata"]["namespace"], "default");
}

}  // namespace
}  // namespace muster::api
