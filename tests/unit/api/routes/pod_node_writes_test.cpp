// Writes to pods and nodes over HTTP.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

TEST_F(ServerTest, AppliesANode) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  auto apply = [&](const std::string& name, const std::string& body,
                   const std::string& query = "") {
    return call(request("PATCH", "/api/v1/nodes/" + name + "?fieldManager=me" + query,
                        "Content-Type: application/apply-patch+yaml\r\n", body));
  };
  const std::string head = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1")";
  const Answer labelled =
      apply("n1", head + R"(,"labels":{"disk":"ssd"}},"spec":{"unschedulable":true}})");
  ASSERT_EQ(labelled.code, 200) << labelled.body;
  EXPECT_EQ(labelled.json()["metadata"]["labels"]["disk"], "ssd");
  EXPECT_EQ(labelled.json()["metadata"]["labels"]["zone"], "a");
  EXPECT_EQ(labelled.json()["spec"]["unschedulable"], true);
  EXPECT_EQ(labelled.json()["metadata"]["managedFields"][0]["manager"], "me");
  ASSERT_EQ(call(request("PATCH", "/api/v1/nodes/n1?fieldManager=other",
                         "Content-Type: application/merge-patch+json\r\n",
                         R"({"metadata":{"labels":{"disk":"hdd"}}})"))
                .code,
            200);
  EXPECT_EQ(apply("n1", head + R"(,"labels":{"disk":"ssd"}}})").code, 409);
  const Answer forced = apply("n1", head + R"(,"labels":{"disk":"ssd"}}})", "&force=true");
  ASSERT_EQ(forced.code, 200) << forced.body;
  EXPECT_FALSE(forced.json()["spec"].contains("unschedulable")) << "left out, so taken back";
  EXPECT_EQ(apply("n2", head + "}}").code, 400) << "another name than the path's";
  EXPECT_EQ(apply("n2", R"({"apiVersion":"v1","kind":"Node"})").code, 404);
  EXPECT_EQ(apply("n1", head + R"(},"spec":{"colour":1}})", "&fieldValidation=Strict").code, 400);
}

class P22Pods : public ServerTest {
 protected:
  // The name of the first pod of a new job with two pods.
  std::string pod() {
    EXPECT_EQ(post(kJobs, kManifest).code, 201);
    const JobId id = view.job("default", "new")->job->id();
    feed.create(id, 0, 2);
    feed.bind(id, {0, 0});
    return get(kPods).json()["items"][0]["metadata"]["name"];
  }
  Answer merge(const std::string& path, const std::string& body) {
    return call(request("PATCH", kPods + "/" + path,
                        "Content-Type: application/merge-patch+json\r\n", body));
  }
};

TEST_F(P22Pods, UnsupportedPodChangesAreRefused) {
  const std::string name = pod();
  const Answer phase = merge(name + "/status", R"({"status":{"phase":"Failed"}})");
  EXPECT_TRUE(phase.is_status("Invalid"));
  EXPECT_EQ(phase.json()["details"]["causes"][0]["field"], "status.phase");
  const Answer ready =
      call(request("PATCH", kPods + "/" + name + "/status",
                   "Content-Type: application/strategic-merge-patch+json\r\n",
                   R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})"));
  EXPECT_TRUE(ready.is_status("Invalid"));
  EXPECT_EQ(ready.json()["details"]["causes"][0]["field"], "status.conditions[Ready]");
  EXPECT_EQ(merge(name + "/status", "{}").code, 200);
  EXPECT_TRUE(merge(name, R"({"spec":{"nodeName":"x"}})").is_status("Invalid"));
  EXPECT_TRUE(merge(name, R"({"metadata":{"resourceVersion":"1","labels":{"a":"b"}}})")
                  .is_status("Conflict"));
}

TEST_F(P22Pods, LabelsAndAnnotationsArePatched) {
  const std::string name = pod();
  const Answer patched =
      merge(name, R"({"metadata":{"labels":{"queue":"fast"},"annotations":{"note":"n"}}})");
  ASSERT_EQ(patched.code, 200) << patched.body;
  const Json meta = get(kPods + "/" + name).json()["metadata"];
  EXPECT_EQ(meta["labels"]["queue"], "fast");
  EXPECT_EQ(meta["annotations"]["note"], "n");
  EXPECT_EQ(meta["labels"]["job-name"], "new") << "what it had it keeps";
  auto found = [this](const std::string& selector) {
    return get(kPods + "?labelSelector=" + selector).json()["items"].size();
  };
  EXPECT_EQ(found("queue%3Dfast"), 1u);
  EXPECT_EQ(found("queue!%3Dfast"), 1u);
  ASSERT_EQ(merge(name, R"({"metadata":{"labels":{"queue":null}}})").code, 200);
  EXPECT_EQ(found("queue"), 0u);
  const Answer own = merge(name, R"({"metadata":{"labels":{"job-name":"x"}}})");
  EXPECT_TRUE(own.is_status("Invalid"));
  EXPECT_EQ(own.json()["details"]["causes"][0]["field"], "metadata.labels[job-name]");
  EXPECT_TRUE(merge(name, R"({"metadata":{"labels":{"-":"x"}}})").is_status("Invalid"));
}

// As by PUT and PATCH, labels and annotations can be applied, and nothing else.
TEST_F(P22Pods, LabelsAndAnnotationsAreApplied) {
  const std::string name = pod();
  auto apply = [&](const std::string& sub, const std::string& rest, const std::string& query = "") {
    return call(request("PATCH", kPods + "/" + name + sub + "?fieldManager=me" + query,
                        "Content-Type: application/apply-patch+yaml\r\n",
                        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + rest));
  };
  const auto meta = [&] { return get(kPods + "/" + name).json()["metadata"]; };
  const Answer first = apply("", R"(","labels":{"queue":"fast"},"annotations":{"a":"b"}}})");
  ASSERT_EQ(first.code, 200) << first.body;
  EXPECT_EQ(first.json()["metadata"]["labels"]["queue"], "fast");
  EXPECT_EQ(first.json()["metadata"]["managedFields"][0]["manager"], "me");
  EXPECT_EQ(meta()["labels"]["job-name"], "new");
  EXPECT_FALSE(meta()["annotations"].contains("muster.dev/managed-fields"));
  ASSERT_EQ(apply("", R"(","labels":{"queue":"fast"}}})").code, 200);
  EXPECT_FALSE(meta()["annotations"].contains("a")) << "left out, so taken back";
  // Another manager's field is a conflict.
  ASSERT_EQ(merge(name, R"({"metadata":{"labels":{"queue":"slow"}}})").code, 200);
  EXPECT_EQ(apply("", R"(","labels":{"queue":"fast"}}})").code, 409);
  EXPECT_EQ(apply("", R"(","labels":{"queue":"fast"}}})", "&force=true").code, 200);
  EXPECT_EQ(meta()["labels"]["queue"], "fast");
  EXPECT_EQ(apply("/status", R"("},"status":{}})").code, 415);

  const Answer own = apply("", R"(","labels":{"job-name":"x"}}})", "&force=true");
  EXPECT_EQ(own.json()["details"]["causes"][0]["field"], "metadata.labels[job-name]");
  EXPECT_TRUE(apply("", R"("},"spec":{"nodeName":"x"}})", "&force=true").is_status("Invalid"));
  EXPECT_TRUE(merge(name, R"({"metadata":{"annotations":{"muster.dev/managed-fields":"x"}}})")
                  .is_status("Invalid"));
  EXPECT_EQ(call(request("PATCH", kPods + "/none?fieldManager=me",
                         "Content-Type: application/apply-patch+yaml\r\n",
                         R"({"apiVersion":"v1","kind":"Pod"})"))
                .code,
            404);
}

TEST_F(ServerTest, DeletesEvictsAndSetsConditionsOfPods) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  const JobId id = view.job("default", "new")->job->id();
  feed.create(id, 0, 2);
  feed.bind(id, {0, 0});
  feed.bind(id, {1, 0});
  std::vector<std::string> names;
  const Json pods = get(kPods).json();
  for (const Json& pod : pods["items"]) names.push_back(pod["metadata"]["name"]);
  ASSERT_EQ(names.size(), 2u);
  const Answer marked =
      call(request("PATCH", kPods + "/" + names[0] + "/status",
                   "Content-Type: application/strategic-merge-patch+json\r\n",
                   R"({"status":{"conditions":[{"type":"ConfigIssue","status":"True"}]}})"));
  ASSERT_EQ(marked.code, 200) << marked.body;
  ASSERT_EQ(view.pod("default", names[0])->pod->conditions.size(), 1u);
  EXPECT_EQ(view.pod("default", names[0])->pod->conditions[0].type, "ConfigIssue");
  EXPECT_TRUE(call(request("PATCH", kPods + "/" + names[0],
                           "Content-Type: application/merge-patch+json\r\n",
                           R"({"metadata":{"finalizers":null}})"))
                  .is_status("Invalid"));
  const Answer removed = call(request("DELETE", kPods + "/" + names[0] + "?gracePeriodSeconds=3"));
  ASSERT_EQ(removed.code, 200) << removed.body;
  EXPECT_EQ(backend.last_grace_ms, 3000);
  EXPECT_FALSE(backend.last_evict);
  EXPECT_EQ(removed.json()["metadata"]["deletionGracePeriodSeconds"], 3);
  const Answer evicted =
      post(kPods + "/" + names[1] + "/eviction", R"({"apiVersion":"policy/v1","kind":"Eviction"})");
  EXPECT_EQ(evicted.code, 201) << evicted.body;
  EXPECT_TRUE(backend.last_evict);
  EXPECT_EQ(call(request("DELETE", kPods + "/none")).code, 404);
}

TEST_F(ServerTest, CordonsTaintsAndDeletesNodes) {
  core::NodeInfo node{.id = 1, .name = "n1", .slots = 4};
  node.labels = {{"zone", "a"}};
  feed.node(node);
  auto patch = [&](const std::string& body) {
    return call(request("PATCH", "/api/v1/nodes/n1",
                        "Content-Type: application/strategic-merge-patch+json\r\n", body));
  };
  const Answer cordoned = patch(R"({"spec":{"unschedulable":true}})");
  ASSERT_EQ(cordoned.code, 200) << cordoned.body;
  EXPECT_EQ(cordoned.json()["spec"]["taints"][0]["key"], "node.kubernetes.io/unschedulable");
  ASSERT_EQ(patch(R"({"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})").code, 200);
  ASSERT_EQ(patch(R"({"metadata":{"labels":{"mine":"1"}}})").code, 200);
  const core::NodeSpec& spec = view.node("n1")->node->spec;
  EXPECT_TRUE(spec.unschedulable);
  EXPECT_EQ(spec.taints, (std::vector<core::Taint>{{"k", "", "NoSchedule"}}));
  EXPECT_EQ(spec.labels, (core::StringMap{{"mine", "1"}})) << "the agent's labels stay its own";
  Json read = get("/api/v1/nodes/n1").json();
  read["spec"]["taints"].push_back(
      {{"key", "node.kubernetes.io/out-of-service"}, {"value", "v"}, {"effect", "NoExecute"}});
  ASSERT_EQ(
      call(request("PUT", "/api/v1/nodes/n1", "Content-Type: application/json\r\n", read.dump()))
          .code,
      200);
  EXPECT_EQ(spec.taints,
            (std::vector<core::Taint>{{"k", "", "NoSchedule"},
                                      {"node.kubernetes.io/out-of-service", "v", "NoExecute"}}))
      << "only what the server shows by itself is left out";
  EXPECT_TRUE(patch(R"({"spec":{"taints":[{"key":"k","effect":"Never"}]}})").is_status("Invalid"));
  EXPECT_EQ(call(request("DELETE", "/api/v1/nodes/n1")).code, 200);
  EXPECT_EQ(get("/api/v1/nodes/n1").code, 404);
}

// The cluster must hear of it, even if the node is not cordoned.
TEST_F(ServerTest, P15UncordoningANodeWhoseStartsFailIsAChange) {
  core::NodeInfo node{.id = 1, .name = "n1", .slots = 4};
  feed.node(node);
  const auto patch = [&](const std::string& body) {
    ASSERT_EQ(call(request("PATCH", "/api/v1/nodes/n1",
                           "Content-Type: application/merge-patch+json\r\n", body))
                  .code,
              200);
  };
  patch(R"({"spec":{"unschedulable":null}})");
  EXPECT_EQ(backend.node_changes, 0);
  node.starts_failing = "pods of 2 users cannot start here";
  view.health(core::health_of(node));
  patch(R"({"metadata":{"labels":{}}})");
  EXPECT_EQ(backend.node_changes, 0);
  patch(R"({"spec":{"unschedulable":null}})");
  EXPECT_EQ(backend.node_changes, 1);
}

TEST_F(ServerTest, CordonAndTaintsShowWhoWhenAndWhy) {
  feed.node({.id = 1, .name = "n1", .slots = 4});
  auto patch = [&](const std::string& body) {
    return call(request("PATCH", "/api/v1/nodes/n1",
                        "Content-Type: application/merge-patch+json\r\n", body));
  };
  auto notes = [&]() -> Json {
    return get("/api/v1/nodes/n1").json()["metadata"].value("annotations", Json::object());
  };
  ASSERT_EQ(patch(R"({"metadata":{"annotations":{"muster.dev/cordon-reason":"replace\nDIMM\n"}},)"
                  R"("spec":{"unschedulable":true}})")
                .code,
            200);
  Json reasons = Json::parse(notes().value("muster.dev/reasons", ""), nullptr, false);
  ASSERT_EQ(reasons.size(), 1u) << notes().dump();
  EXPECT_EQ(reasons[0]["what"], "cordon");
  EXPECT_EQ(reasons[0]["reason"], "replace DIMM");
  const std::string by = reasons[0]["by"];
  EXPECT_FALSE(by.empty());
  EXPECT_FALSE(notes().contains("muster.dev/cordon-reason")) << "it is input only";
  const std::string events = get("/api/v1/events").body;
  EXPECT_NE(events.find(by + " cordoned the node: replace DIMM"), std::string::npos) << events;
  EXPECT_NE(events.find("NodeNotSchedulable"), std::string::npos) << events;
  // Only the server writes it, and sending it back changes nothing.
  ASSERT_EQ(patch(R"({"metadata":{"annotations":{"muster.dev/reasons":"[]"}}})").code, 200);
  EXPECT_EQ(Json::parse(notes().value("muster.dev/reasons", ""), nullptr, false), reasons);
  EXPECT_FALSE(view.node("n1")->node->spec.annotations.contains("muster.dev/reasons"));
  ASSERT_EQ(patch(R"({"spec":{"unschedulable":null}})").code, 200);
  EXPECT_FALSE(notes().contains("muster.dev/reasons"));
  ASSERT_EQ(
      patch(R"({"metadata":{"annotations":{"reservation.muster.dev/m":)"
            R"("from=2033-01-01T00:00:00Z until=2033-01-02T00:00:00Z reason=new\n\tdisks"}}})")
          .code,
      200);
  EXPECT_TRUE(notes()["reservation.muster.dev/m"].get<std::string>().ends_with("reason=new disks"));
  EXPECT_TRUE(patch(R"({"metadata":{"annotations":{"muster.dev/taint-reason":")" +
                    std::string(2000, 'x') + R"("}}})")
                  .is_status("Invalid"));
}

}  // namespace
}  // namespace muster::api
