// The subresources of namespaces: `status` and `finalize`.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

const std::string kSpaces = "/api/v1/namespaces";

class NamespaceWritesTest : public ServerTest {
 protected:
  NamespaceWritesTest() { EXPECT_EQ(post(kSpaces, R"({"metadata":{"name":"blue"}})").code, 201); }
  Answer put(const std::string& sub, const Json& body) {
    return call(request("PUT", kSpaces + "/blue/" + sub, "Content-Type: application/json\r\n",
                        body.dump()));
  }
  Answer patch(const std::string& path, const std::string& body) {
    return call(
        request("PATCH", kSpaces + path, "Content-Type: application/merge-patch+json\r\n", body));
  }
  Json blue() { return get(kSpaces + "/blue").json(); }
};

TEST_F(NamespaceWritesTest, StatusTakesConditionsAndMetadataOnly) {
  const Json read = get(kSpaces + "/blue/status").json();
  EXPECT_EQ(read, blue());
  EXPECT_EQ(read["status"], Json::parse(R"({"phase":"Active"})"));
  const Answer patched = patch("/blue/status", R"({"metadata":{"annotations":{"a":"b"}},)"
                                               R"("spec":{"finalizers":["x.io/y"]},"status":)"
                                               R"({"conditions":[{"type":"A","status":"True"}]}})");
  ASSERT_EQ(patched.code, 200) << patched.body;
  const Json now = blue();
  EXPECT_EQ(now["metadata"]["annotations"]["a"], "b");
  EXPECT_EQ(now["status"]["conditions"][0]["type"], "A");
  EXPECT_EQ(now["spec"]["finalizers"], Json::array({"kubernetes"}));
  Json next = now;
  next["status"]["conditions"].push_back({{"type", "B"}, {"status", "False"}});
  EXPECT_EQ(put("status", next).json()["status"]["conditions"].size(), 2u);
  EXPECT_EQ(put("status", now).code, 409) << "a stale version";
  next = blue();
  next["status"]["phase"] = "Terminating";
  const Answer refused = put("status", next);
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(refused.json()["message"],
            "Namespace \"blue\" is invalid: status.Phase: Invalid value: \"Terminating\": may only "
            "be 'Active' if `deletionTimestamp` is empty");
  // The namespace itself is not the way to its status.
  EXPECT_EQ(patch("/blue", R"({"status":{"conditions":null}})").code, 200);
  EXPECT_EQ(blue()["status"]["conditions"].size(), 2u);
}

TEST_F(NamespaceWritesTest, NamespaceStaysUntilItHasNoFinalizers) {
  Json next = blue();
  next["spec"]["finalizers"].push_back("plain");
  EXPECT_EQ(put("finalize", next).code, 422);
  next["spec"]["finalizers"][1] = "example.com/hold";
  next["status"]["phase"] = "Odd";
  const Answer held = put("finalize", next);
  ASSERT_EQ(held.code, 200) << held.body;
  EXPECT_EQ(held.json()["spec"], next["spec"]);
  EXPECT_EQ(held.json()["status"]["phase"], "Active");
  ASSERT_EQ(call(request("DELETE", kSpaces + "/blue")).code, 200);
  const Json alone = {{"finalizers", {"example.com/hold"}}};
  ASSERT_TRUE(until([&] { return blue()["spec"] == alone; })) << "nothing is left in it";
  EXPECT_EQ(blue()["status"]["phase"], "Terminating");
  next = blue();
  next["spec"]["finalizers"] = Json::array();
  EXPECT_EQ(put("finalize", next).code, 200);
  EXPECT_TRUE(until([&] { return get(kSpaces + "/blue").code == 404; }));
}

TEST_F(NamespaceWritesTest, SubresourcesKnowTheirMethodsAndNames) {
  const Answer refused = call(request("GET", kSpaces + "/blue/finalize"));
  EXPECT_EQ(refused.code, 405);
  EXPECT_NE(refused.head.find("Allow: PUT"), std::string::npos);
  EXPECT_EQ(patch("/blue/finalize", "{}").code, 405);
  EXPECT_EQ(call(request("DELETE", kSpaces + "/blue/status")).code, 405);
  EXPECT_EQ(get(kSpaces + "/none/status").code, 404);
  EXPECT_EQ(patch("/none/status", "{}").code, 404);
  for (const char* sub : {"status", "finalize"})
    EXPECT_EQ(call(request("PUT", kSpaces + "/none/" + sub, "Content-Type: application/json\r\n",
                           R"({"metadata":{"name":"none"}})"))
                  .code,
              404);
  const Json resources = get("/api/v1").json()["resources"];
  std::map<std::string, Json> verbs;
  for (const Json& one : resources) verbs[one["name"]] = one["verbs"];
  EXPECT_EQ(verbs["namespaces/finalize"], Json::array({"update"}));
  EXPECT_EQ(verbs["namespaces/status"], Json::array({"get", "patch", "update"}));
}

}  // namespace
}  // namespace muster::api
