// Expected: which answers of a server are a coordinator's.
#include "client/connect/expected.hpp"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

const std::string kPods = "/api/v1/namespaces/team/pods";

// What is met instead in a successful JSON answer; empty: it fits.
std::string met(const char* method, const std::string& path, const std::string& body,
                const char* accept = "application/json", const std::string& sent = "") {
  Response answer{200, body};
  answer.content_type = "application/json";
  const Expected expected(method, path, accept, sent.empty() ? nullptr : &sent);
  return expected.misfit(answer).value_or("");
}

std::string pod(const std::string& name, const std::string& more = R"(,"uid":"u")") {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"team","name":")" + name +
         "\"" + more + "}}";
}

TEST(Expected, P26OneObjectHasItsKindNameNamespaceAndUid) {
  EXPECT_EQ(met("GET", kPods + "/p?x=1", pod("p")), "");
  EXPECT_EQ(met("PATCH", kPods + "/p", pod("p")), "");
  EXPECT_EQ(met("GET", kPods + "/p", pod("q")), R"(Pod of v1 with the name "q" instead of "p")");
  EXPECT_EQ(met("GET", "/api/v1/namespaces/a/pods/p", pod("p")),
            R"(Pod of v1 in the namespace "team" instead of "a")");
  EXPECT_EQ(met("GET", kPods + "/p", pod("p", "")), "Pod of v1 without a uid");
  EXPECT_EQ(met("GET", "/apis/batch/v1/namespaces/team/jobs/p", pod("p")),
            "Pod of v1 instead of Job of batch/v1");
  EXPECT_EQ(met("GET", kPods + "/p", R"({"kind":"Pod","apiVersion":"v1","spec":"x"})"),
            R"(Pod of v1 whose spec is ""x"")");
}

TEST(Expected, P26ACreatedObjectHasTheNameThatWasSent) {
  const auto created = [](const std::string& sent) {
    return met("POST", kPods + "?dryRun=All", pod("p-1"), "application/json", sent);
  };
  EXPECT_EQ(created(R"({"metadata":{"name":"p-1"}})"), "");
  EXPECT_EQ(created(R"({"metadata":{"generateName":"p-"}})"), "");
  EXPECT_NE(created(R"({"metadata":{"name":"p"}})"), "");
  EXPECT_NE(created(R"({"metadata":{"generateName":"q-"}})"), "");
}

TEST(Expected, P26ListsAndTablesHaveNamedItems) {
  const std::string list = R"({"kind":"PodList","apiVersion":"v1","items":)";
  EXPECT_EQ(met("GET", kPods, list + "[]}"), "");
  EXPECT_EQ(met("GET", "/api/v1/pods", list + "[" + pod("p") + "]}"), "");
  EXPECT_NE(met("GET", kPods, list + "[{}]}"), "");
  EXPECT_NE(met("GET", kPods, list + "[1]}"), "");
  EXPECT_NE(met("GET", kPods, list + "{}}"), "");
  EXPECT_NE(met("GET", "/api/v1/nodes", list + "[]}"), "");
  const char* const as_table = "application/json;as=Table;v=v1";
  const std::string table = R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[)";
  const std::string row = R"({"cells":["p"],"object":)" + pod("p") + "}";
  EXPECT_EQ(met("GET", kPods, table + "]}", as_table), "");
  EXPECT_EQ(met("GET", kPods + "/p", table + row + "]}", as_table), "");
  EXPECT_NE(met("GET", kPods + "/q", table + row + "]}", as_table), "");
  EXPECT_NE(met("GET", kPods + "/p", table + "]}", as_table), "");
  EXPECT_NE(met("GET", kPods, list + "[]}", as_table), "");
  const std::string cells = R"({"cells":["p"],"object":null}]})";
  EXPECT_EQ(met("GET", kPods + "?includeObject=None", table + cells, as_table), "");
  EXPECT_EQ(met("GET", kPods + "?includeObject=None", table + row + "]}", as_table), "");
  EXPECT_NE(met("GET", kPods, table + cells, as_table), "");
}

TEST(Expected, P26AnswerToDeletionMustNameObject) {
  const std::string success = R"({"kind":"Status","apiVersion":"v1","status":"Success")";
  EXPECT_EQ(met("DELETE", kPods + "/p", success + R"(,"details":{"name":"p"}})"), "");
  EXPECT_EQ(met("DELETE", kPods + "/p", pod("p")), "");  // it is going
  EXPECT_NE(met("DELETE", kPods + "/p", success + "}"), "");
  EXPECT_NE(met("DELETE", kPods + "/p", success + R"(,"details":{"name":"q"}})"), "");
  EXPECT_NE(met("POST", kPods + "/p/eviction", success + "}"), "");
}

TEST(Expected, P26AnswersOfMustersOwnGroupHaveTheirFields) {
  const std::string group = "/apis/muster.dev/v1/",
                    head = R"({"apiVersion":"muster.dev/v1","kind":")";
  const std::string counts = R"("commit":1,"jobs":0,"attempts":0,"counted":0)";
  EXPECT_EQ(met("GET", group + "verification",
                head + R"(Verification","mismatches":["a"],)" + counts + "}"),
            "");
  EXPECT_NE(met("GET", group + "verification",
                head + R"(Verification","mismatches":[1],)" + counts + "}"),
            "");
  EXPECT_NE(met("GET", group + "verification", head + "Verification\"}"), "");
  const std::string token = head + R"(Token","id":"1","text":"t","user":"a b"})";
  EXPECT_EQ(met("POST", group + "users/a%20b/token", token), "");
  EXPECT_NE(met("POST", group + "users/c/token", token), "");
  EXPECT_NE(met("POST", group + "nodes/a/token", token), "");
  const std::string one = R"("items":[{"metadata":{"name":"a"}}]})";
  EXPECT_EQ(met("GET", group + "coordinators", head + R"(CoordinatorList",)" + one), "");
  EXPECT_NE(met("GET", group + "coordinators", head + R"(TokenList",)" + one), "");
  EXPECT_NE(met("POST", group + "coordinators/a%20b/token", token), "");
  const std::string joins = head + R"(Token","id":"1","text":"t","coordinator":"head2:7119"})";
  EXPECT_EQ(met("POST", group + "coordinators/head2%3A7119/token", joins), "");
  EXPECT_EQ(met("GET", "/version", R"({"gitVersion":"v1.32.0+muster.0.1.0"})"), "");
  EXPECT_NE(met("GET", "/version", R"({"gitVersion":"v1.32.0"})"), "");
}

TEST(Expected, P26RefusalsAreAStatus) {
  const auto refused = [](int status, const std::string& type, const std::string& body) {
    Response answer{status, body};
    answer.content_type = type;
    return Expected("GET", kPods + "/p", "application/json", nullptr).misfit(answer).value_or("");
  };
  const std::string failure = R"({"kind":"Status","status":"Failure","message":"m"})";
  for (const int status : {400, 401, 403, 404, 409, 410, 422, 429})
    EXPECT_EQ(refused(status, "application/json", failure), "");
  EXPECT_EQ(refused(404, "text/html", "<p>"), R"(HTTP 404 and text/html ("<p>"))");
  EXPECT_NE(refused(404, "application/json", "{}"), "");
  EXPECT_NE(refused(404, "text/plain", failure), "");
  EXPECT_NE(refused(302, "application/json", failure), "");
  EXPECT_EQ(refused(503, "text/plain", "recovering"), "");  // away, whoever says so
  EXPECT_EQ(refused(502, "text/html", "<p>"), "");
}

TEST(Expected, P26LogsAreText) {
  for (const char* path : {"/api/v1/namespaces/team/pods/p/log?follow=true",
                           "/apis/muster.dev/v1/namespaces/team/jobs/j/log?index=1"}) {
    const Expected log("GET", path, "*/*", nullptr);
    EXPECT_EQ(log.misfit_of_head(200, "Text/Plain; charset=utf-8", ""), std::nullopt);
    EXPECT_EQ(log.misfit_of_head(200, "application/json", "{}"), R"(application/json ("{}"))");
    EXPECT_EQ(log.misfit_of_head(200, "", ""), "no content type");
  }
}

TEST(Expected, P26AWatchHasEventsOfItsKind) {
  const Expected watch("GET", kPods + "?watch=true", "application/json", nullptr);
  const auto event = [](const std::string& type, const std::string& object) {
    return R"({"type":")" + type + R"(","object":)" + object + "}";
  };
  EXPECT_TRUE(watch.is_watch());
  EXPECT_EQ(watch.misfit_of_event(event("ADDED", pod("p")), false), std::nullopt);
  EXPECT_EQ(watch.misfit_of_event(event("BOOKMARK", R"({"kind":"Pod","apiVersion":"v1"})"), false),
            std::nullopt);
  EXPECT_EQ(watch.misfit_of_event(event("ERROR", R"({"kind":"Status"})"), false), std::nullopt);
  EXPECT_TRUE(watch.misfit_of_event(event("ERROR", "{}"), false));
  EXPECT_TRUE(
      watch.misfit_of_event(event("ADDED", R"({"kind":"Job","apiVersion":"batch/v1"})"), false));
  EXPECT_TRUE(watch.misfit_of_event(event("ODD", pod("p")), false));
  // Only the last line may be half an event, and only if its watch broke.
  EXPECT_EQ(watch.misfit_of_event(R"({"type":"ADDED","obj)", true), std::nullopt);
  EXPECT_TRUE(watch.misfit_of_event(R"({"type":"ADDED","obj)", false));
  EXPECT_TRUE(watch.misfit_of_event("<html>", true));
}

TEST(Expected, P26ShownBytesAreShortAndPrintable) {
  EXPECT_EQ(shown_bytes("a\x1b[2J\n"), R"("a\x1b[2J\n")");
  EXPECT_EQ(shown_bytes(std::string(100, 'x')), "\"" + std::string(60, 'x') + "...\"");
}

}  // namespace
}  // namespace muster::cli
