// Writes to jobs and leases over HTTP.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

TEST_F(ServerTest, P04OtherRequestsAreAnsweredWhileLargeBodyIsValidated) {
  backend.hold_computing = true;
  Json job = Json::parse(kManifest);
  job["metadata"]["annotations"]["long"] = std::string(kHereMax, 'x');
  const std::string body = job.dump(), json = "Content-Type: application/json\r\n";
  auto large = connect(request("POST", kJobs, json, body));
  auto reading = large->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return backend.held.size() == 1; }));
  EXPECT_EQ(get("/livez").code, 200);
  EXPECT_EQ(backend.creates, 0);
  EXPECT_TRUE(large->raw.empty());
  auto [work, done] = std::move(backend.held.front());
  backend.held.pop_front();
  work();
  done();
  ASSERT_TRUE(until([&] { return whole(large->raw); }));
  EXPECT_EQ(parsed(large->raw).code, 201) << large->raw;
  // If the client disconnects meanwhile, nothing of its request is used later.
  auto pipe = io.provider->newTwoWayPipe();
  auto serving = server.serve_connection(kj::mv(pipe.ends[0])).eagerlyEvaluate([](auto&&) {});
  const std::string put = request("PUT", kJobs + "/new", json, body);
  auto writing = pipe.ends[1]->write(put.data(), put.size()).eagerlyEvaluate([](auto&&) {});
  ASSERT_TRUE(until([&] { return backend.held.size() == 1; }));
  serving = nullptr;
  std::tie(work, done) = std::move(backend.held.front());
  backend.held.clear();
  work();
  done();
  EXPECT_EQ(get("/livez").code, 200);
}

TEST_F(ServerTest, P04LargeBodyIsRefusedForOtherKinds) {
  const std::string body = "{\"kind\": \"" + std::string(kSmallBodyMax, 'x') + "\"}";
  EXPECT_EQ(post("/apis/coordination.k8s.io/v1/namespaces/default/leases", body).code, 413);
}

TEST_F(ServerTest, CreatesAndGetsJob) {
  const Answer created = post(kJobs, kManifest);
  ASSERT_EQ(created.code, 201) << created.body;
  const Json json = created.json();
  EXPECT_EQ(json["metadata"]["name"], "new");
  EXPECT_EQ(json["metadata"]["uid"].get<std::string>().size(), 36u);
  EXPECT_EQ(json["status"], Json::object());
  const Answer got = get(kJobs + "/new");
  ASSERT_EQ(got.code, 200);
  EXPECT_EQ(got.json(), json);
  EXPECT_EQ(get(kJobs + "/new/status").code, 200);
  EXPECT_NE(got.head.find("application/json"), std::string::npos);
}

TEST_F(ServerTest, CreatesFromYamlAndGeneratedNames) {
  const Answer yaml =
      post(kJobs,
           "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: gen-}\nspec:\n  template:\n  "
           "  spec:\n"
           "      restartPolicy: Never\n      containers: [{name: main, command: [\"true\"]}]\n",
           "application/yaml; charset=utf-8");
  ASSERT_EQ(yaml.code, 201) << yaml.body;
  EXPECT_EQ(yaml.json()["metadata"]["name"].get<std::string>().size(), 9u);
  EXPECT_EQ(post(kJobs, "a: [", "application/yaml").code, 400);
}

TEST_F(ServerTest, DryRunStoresNothing) {
  EXPECT_EQ(post(kJobs + "?dryRun=All", kManifest).code, 201);
  EXPECT_EQ(backend.creates, 0);
  EXPECT_EQ(get(kJobs + "/new").code, 404);
  EXPECT_EQ(post(kJobs + "?dryRun=Some", kManifest).code, 422);
}

TEST_F(ServerTest, MalformedProtobufJobIsBadRequest) {
  const char* type = "Content-Type: application/vnd.kubernetes.protobuf\r\n";
  const Answer a = call(request("POST", kJobs, type, "not in the frame"));
  EXPECT_EQ(a.code, 400);
  EXPECT_NE(a.body.find("k8s"), std::string::npos);
}

TEST_F(ServerTest, DeletesJobByPropagationPolicyAndPreconditions) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  auto remove = [&](const std::string& name, const std::string& body) {
    return call(request("DELETE", kJobs + "/" + name,
                        body.empty() ? "" : "Content-Type: application/json\r\n", body));
  };
  EXPECT_TRUE(remove("a", R"({"propagationPolicy":"Sideways"})").is_status("Invalid"));
  EXPECT_TRUE(remove("a", R"({"preconditions":{"uid":"x"}})").is_status("Conflict"));
  EXPECT_EQ(remove("a", R"({"dryRun":["All"]})").code, 200);
  EXPECT_EQ(get(kJobs + "/a").code, 200);
  const Answer gone = remove(
      "a", R"({"propagationPolicy":"Background","preconditions":{"uid":")" + uid_of(1) + R"("}})");
  EXPECT_EQ(gone.code, 200);
  EXPECT_EQ(gone.json()["status"], "Success");
  EXPECT_EQ(backend.last_uid, uid_of(1));
  EXPECT_EQ(get(kJobs + "/a").code, 404);
  EXPECT_TRUE(remove("a", "").is_status("NotFound"));
  const Answer leaving = call(request("DELETE", kJobs + "/b?propagationPolicy=Foreground"));
  EXPECT_EQ(leaving.code, 200);
  EXPECT_TRUE(leaving.json()["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(get(kJobs + "/b").code, 200);
  EXPECT_EQ(backend.last_propagation, Propagation::foreground);
  feed.admit(3, make_job("c", uid_of(3)));
  EXPECT_EQ(remove("c", "").code, 200);
  EXPECT_EQ(backend.last_propagation, Propagation::orphan) << "the raw API's default for batch/v1";
}

TEST_F(ServerTest, NameOfWhatIsBeingDeletedIsTaken) {
  const std::string deleted = "object is being deleted: ";
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  const std::string exists = R"(jobs.batch "new" already exists)";
  EXPECT_EQ(post(kJobs, kManifest).json()["message"], exists);
  ASSERT_EQ(call(request("DELETE", kJobs + "/new?propagationPolicy=Foreground")).code, 200);
  for (const char* query : {"", "?dryRun=All"}) {
    const Answer again = post(kJobs + query, kManifest);
    EXPECT_EQ(again.code, 409);
    EXPECT_TRUE(again.is_status("AlreadyExists"));
    EXPECT_EQ(again.json()["message"], deleted + exists);
    EXPECT_EQ(again.json()["details"]["name"], "new");
  }
  // It can still be changed, but gets no new finalizer.
  const auto patch = [&](const std::string& body) {
    return call(request("PATCH", kJobs + "/new", "Content-Type: application/merge-patch+json\r\n",
                        R"({"metadata":)" + body + "}"));
  };
  EXPECT_EQ(patch(R"({"labels":{"a":"b"}})").code, 200);
  const Answer refused = patch(R"({"finalizers":["a.io/b"]})");
  EXPECT_EQ(refused.code, 422);
  EXPECT_EQ(refused.json()["details"]["causes"][0]["message"],
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            "finalizers []string{\"a.io/b\"}");

  // A namespace is shown until its contents are gone.
  const std::string spaces = "/api/v1/namespaces", blue = R"({"metadata":{"name":"blue"}})";
  ASSERT_EQ(post(spaces, blue).code, 201);
  feed.admit(7, make_job("a", uid_of(7), 1, "", "blue"));
  feed.create(7, 0, 1);
  ASSERT_EQ(call(request("DELETE", spaces + "/blue")).code, 200);
  EXPECT_EQ(post(spaces, blue).json()["message"], deleted + R"(namespaces "blue" already exists)");
}

TEST_F(ServerTest, P20WarnsAsKubernetesDoes) {
  const std::string orphans = "Warning: 299 - \"child pods are preserved by default";
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  auto remove = [&](const std::string& name, const std::string& body) {
    return call(request("DELETE", kJobs + "/" + name,
                        body.empty() ? "" : "Content-Type: application/json\r\n", body));
  };
  EXPECT_NE(remove("a", "").head.find(orphans), std::string::npos);
  EXPECT_EQ(remove("b", R"({"propagationPolicy":"Orphan"})").head.find(orphans), std::string::npos);
  EXPECT_NE(call(request("DELETE", kJobs)).head.find(orphans), std::string::npos) << "all of them";
  std::string dotted = kManifest;
  dotted.replace(dotted.find("\"new\""), 5, "\"new.one\"");
  dotted.replace(dotted.find("Indexed"), 7, "NonIndexed");  // an index is part of a host name
  const Answer created = post(kJobs, dotted);
  EXPECT_EQ(created.code, 201) << created.body;
  EXPECT_NE(created.head.find("a DNS label is recommended: [must not contain dots]"),
            std::string::npos)
      << created.head;
  EXPECT_EQ(post(kJobs, kManifest).head.find("Warning:"), std::string::npos);
}

TEST_F(ServerTest, PatchesJobByMergeStrategicAndJsonPatch) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  const std::string path = kJobs + "/new";
  auto patch = [&](const std::string& type, const std::string& body,
                   const std::string& query = "") {
    return call(request("PATCH", path + query, "Content-Type: application/" + type + "\r\n", body));
  };
  const Answer merged = patch("merge-patch+json", R"({"spec":{"parallelism":1}})");
  ASSERT_EQ(merged.code, 200) << merged.body;
  EXPECT_EQ(merged.json()["spec"]["parallelism"], 1);
  EXPECT_EQ(merged.json()["metadata"]["generation"], 2);
  const Answer listed =
      patch("json-patch+json", R"([{"op":"test","path":"/spec/parallelism","value":1},)"
                               R"({"op":"replace","path":"/spec/parallelism","value":2}])");
  ASSERT_EQ(listed.code, 200) << listed.body;
  EXPECT_EQ(listed.json()["spec"]["parallelism"], 2);
  EXPECT_EQ(
      patch("json-patch+json", R"([{"op":"test","path":"/spec/parallelism","value":9}])").code,
      422);
  const Answer labelled =
      patch("strategic-merge-patch+json", R"({"metadata":{"labels":{"a":"b"}}})");
  ASSERT_EQ(labelled.code, 200) << labelled.body;
  EXPECT_EQ(labelled.json()["metadata"]["labels"]["a"], "b");
  EXPECT_EQ(labelled.json()["metadata"]["generation"], 3) << "metadata is no change of the spec";
  const int before = backend.updates;
  EXPECT_EQ(patch("merge-patch+json", R"({"spec":{"parallelism":2}})").code, 200);
  EXPECT_EQ(patch("merge-patch+json", R"({"spec":{"parallelism":5}})", "?dryRun=All").code, 200);
  EXPECT_EQ(backend.updates, before) << "nothing changed, or nothing was to be stored";
  EXPECT_EQ(get(path).json()["spec"]["parallelism"], 2);
  EXPECT_TRUE(patch("merge-patch+json", R"({"spec":{"completionMode":"NonIndexed"}})")
                  .is_status("Invalid"));
  EXPECT_TRUE(patch("merge-patch+json", R"({"spec":{"paralelism":1}})", "?fieldValidation=Strict")
                  .is_status("BadRequest"));
  EXPECT_EQ(patch("merge-patch+json", R"({"spec":{"paralelism":1}})").code, 200) << "a warning";
  EXPECT_TRUE(patch("merge-patch+json", "{}", "?force=true").is_status("Invalid"));
  EXPECT_EQ(patch("json", "{}").code, 415);
  EXPECT_EQ(call(request("PATCH", kJobs + "/none", "Content-Type: application/merge-patch+json\r\n",
                         "{}"))
                .code,
            404);
}

TEST_F(ServerTest, AppliesAJob) {
  const std::string path = kJobs + "/new";
  auto apply = [&](const std::string& who, const std::string& body, const std::string& query = "") {
    return call(request("PATCH", path + "?fieldManager=" + who + query,
                        "Content-Type: application/apply-patch+yaml\r\n", body));
  };
  auto manifest = [](const std::string& parallelism, const std::string& more = "") {
    return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: new" + more +
           "}\nspec:\n  completionMode: Indexed\n  completions: 2\n  parallelism: " + parallelism +
           "\n  template:\n    spec:\n      restartPolicy: Never\n"
           "      containers: [{name: main, command: [\"true\"]}]\n";
  };
  EXPECT_TRUE(apply("", manifest("2")).is_status("Invalid")) << "no fieldManager";
  EXPECT_EQ(apply("me", "{}").code, 400);
  EXPECT_EQ(apply("me", "[").code, 400);
  EXPECT_EQ(apply("me", manifest("2", ", resourceVersion: '7'")).code, 409);
  EXPECT_EQ(apply("me", manifest("2"), "&dryRun=All").code, 201);
  EXPECT_EQ(backend.creates, 0);
  const Answer created = apply("me", manifest("2"));
  ASSERT_EQ(created.code, 201) << created.body;
  EXPECT_EQ(created.json()["metadata"]["managedFields"].size(), 1u);
  EXPECT_EQ(created.json()["metadata"]["generation"], 1);
  const Json owned = created.json()["metadata"]["managedFields"][0];
  EXPECT_EQ(owned["manager"], "me");
  EXPECT_EQ(owned["operation"], "Apply");
  EXPECT_EQ(owned["apiVersion"], "batch/v1");
  EXPECT_EQ(owned["time"], "2023-11-14T22:13:20Z");
  EXPECT_TRUE(owned["fieldsV1"]["f:spec"].contains("f:parallelism"));
  EXPECT_FALSE(owned["fieldsV1"]["f:spec"].contains("f:backoffLimit")) << "a default";

  const int before = backend.updates;
  EXPECT_EQ(apply("me", manifest("2")).code, 200);
  EXPECT_EQ(backend.updates, before) << "nothing changed";

  const Answer scaled =
      call(request("PATCH", path + "/scale",
                   "Content-Type: application/merge-patch+json\r\nUser-Agent: kubectl/v1.32\r\n",
                   R"({"spec":{"replicas":1}})"));
  ASSERT_EQ(scaled.code, 200) << scaled.body;
  const Answer refused = apply("me", manifest("2"));
  ASSERT_EQ(refused.code, 409) << refused.body;
  EXPECT_TRUE(refused.is_status("Conflict"));
  EXPECT_EQ(refused.json()["message"],
            "Apply failed with 1 conflict: conflict with \"kubectl\" with subresource \"scale\" "
            "using batch/v1: .spec.parallelism");
  const Json cause = refused.json()["details"]["causes"][0];
  EXPECT_EQ(cause["reason"], "FieldManagerConflict");
  EXPECT_EQ(cause["field"], ".spec.parallelism");
  const Answer forced = apply("me", manifest("2"), "&force=true");
  ASSERT_EQ(forced.code, 200) << forced.body;
  EXPECT_EQ(forced.json()["spec"]["parallelism"], 2);
  EXPECT_EQ(forced.json()["metadata"]["managedFields"].size(), 1u) << "the scaler has nothing left";

  // An apply that only changes the managers does not increase the generation.
  const auto generation = forced.json()["metadata"]["generation"];
  const Answer shared = apply("you", manifest("2"));
  ASSERT_EQ(shared.code, 200) << shared.body;
  EXPECT_EQ(shared.json()["metadata"]["managedFields"].size(), 2u);
  EXPECT_EQ(shared.json()["metadata"]["generation"], generation);
  EXPECT_TRUE(apply("me", manifest("-1"), "&force=true").is_status("Invalid"));
  EXPECT_EQ(apply("me", manifest("2", ", colour: red"), "&fieldValidation=Strict").code, 400);
  EXPECT_EQ(apply("me", manifest("2", ", colour: red")).code, 200) << "a warning by default";
  EXPECT_EQ(call(request("PATCH", path + "/status?fieldManager=x",
                         "Content-Type: application/apply-patch+yaml\r\n", "{}"))
                .code,
            415);
}

TEST_F(ServerTest, RecordsFieldManagerOfEachWrite) {
  auto managers = [&] {
    std::vector<std::string> found;
    const Json job = get(kJobs + "/new").json();
    for (const Json& one : job["metadata"]["managedFields"]) found.push_back(one["manager"]);
    return found;
  };
  ASSERT_EQ(
      call(request("POST", kJobs, "Content-Type: application/json\r\nUser-Agent: maker/1.0 (x)\r\n",
                   kManifest))
          .code,
      201);
  const Json fields = get(kJobs + "/new").json()["metadata"]["managedFields"][0]["fieldsV1"];
  EXPECT_EQ(managers(), std::vector<std::string>{"maker"});
  EXPECT_TRUE(fields["f:spec"].contains("f:backoffLimit")) << "the creator owns the defaults too";
  EXPECT_FALSE(fields["f:spec"].contains("f:selector")) << "the server's";
  EXPECT_FALSE(fields["f:spec"]["f:template"].contains("f:metadata")) << "generated labels";
  ASSERT_EQ(call(request("PATCH", kJobs + "/new?fieldManager=labeller",
                         "Content-Type: application/merge-patch+json\r\n",
                         R"({"metadata":{"labels":{"a":"b"}}})"))
                .code,
            200);
  EXPECT_EQ(managers(), (std::vector<std::string>{"labeller", "maker"}));
  Json json = get(kJobs + "/new").json();
  json["metadata"].erase("managedFields");  // a client unaware of the field
  json["spec"]["parallelism"] = 1;
  ASSERT_EQ(call(request("PUT", kJobs + "/new?fieldManager=putter",
                         "Content-Type: application/json\r\n", json.dump()))
                .code,
            200);
  EXPECT_EQ(managers(), (std::vector<std::string>{"labeller", "maker", "putter"}));
  EXPECT_EQ(call(request("PATCH", kJobs + "/new?fieldManager=" + std::string(129, 'x'),
                         "Content-Type: application/merge-patch+json\r\n", "{}"))
                .code,
            422);
  EXPECT_EQ(call(request("PATCH", kJobs + "/new?fieldManager=%07",
                         "Content-Type: application/merge-patch+json\r\n", "{}"))
                .code,
            422);
}

TEST_F(ServerTest, PatchIsRetriedWhenJobChangedMeanwhile) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  backend.before_update = [this](JobId id) {
    auto object = std::make_shared<core::JobObject>(view.job("default", "new")->job->object());
    Json json = Json::parse(object->json);
    json["metadata"]["labels"]["other"] = "1";
    object->json = json.dump();
    object->meta.labels["other"] = "1";
    feed.records(id, {core::JobSpecChanged{kStart, 1, 2, 2, object}});
  };
  const Answer patched =
      call(request("PATCH", kJobs + "/new", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"parallelism":1}})"));
  ASSERT_EQ(patched.code, 200) << patched.body;
  EXPECT_EQ(backend.updates, 2);
  EXPECT_EQ(patched.json()["metadata"]["labels"]["other"], "1") << "the other change is kept";
  EXPECT_EQ(patched.json()["spec"]["parallelism"], 1);
}

TEST_F(ServerTest, ReplaceOfStaleVersionConflicts) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  Json json = get(kJobs + "/new").json();
  auto put = [&] {
    return call(request("PUT", kJobs + "/new", "Content-Type: application/json\r\n", json.dump()));
  };
  const JobId id = view.job("default", "new")->job->id();
  feed.records(id, {core::JobStarted{kStart}});  // a status change is not a conflict
  json["spec"]["parallelism"] = 1;
  ASSERT_EQ(put().code, 200);
  json["spec"]["parallelism"] = 2;
  const Answer late = put();
  EXPECT_TRUE(late.is_status("Conflict"));
  EXPECT_NE(late.body.find("the object has been modified; please apply your changes"),
            std::string::npos);
}

TEST_F(ServerTest, ScaleSubresourceSetsParallelism) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  EXPECT_EQ(get(kJobs + "/new/scale").json()["spec"]["replicas"], 2);
  const Answer scaled =
      call(request("PATCH", kJobs + "/new/scale", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"replicas":1}})"));
  ASSERT_EQ(scaled.code, 200) << scaled.body;
  EXPECT_EQ(scaled.json()["kind"], "Scale");
  EXPECT_EQ(get(kJobs + "/new").json()["spec"]["parallelism"], 1);
  EXPECT_TRUE(
      call(request("PATCH", kJobs + "/new/scale", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"replicas":-1}})"))
          .is_status("Invalid"));
}

TEST_F(ServerTest, StatusIsWritableOnlyForExternallyManagedJobs) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  auto write = [&](const std::string& name, const std::string& body) {
    return call(request("PATCH", kJobs + "/" + name + "/status",
                        "Content-Type: application/merge-patch+json\r\n", body));
  };
  EXPECT_EQ(write("new", "{}").code, 200);
  const Answer refused = write("new", R"({"status":{"succeeded":7}})");
  EXPECT_TRUE(refused.is_status("Invalid"));
  EXPECT_EQ(refused.json()["details"]["causes"][0]["field"], "status.succeeded");
  Json other = Json::parse(kManifest);
  other["metadata"]["name"] = "other";
  other["spec"]["managedBy"] = "example.com/queue";
  ASSERT_EQ(post(kJobs, other.dump()).code, 201);
  const Answer written = write("other", R"({"status":{"active":2,"ready":1}})");
  ASSERT_EQ(written.code, 200) << written.body;
  EXPECT_EQ(get(kJobs + "/other").json()["status"], Json({{"active", 2}, {"ready", 1}}));
  EXPECT_TRUE(write("other", R"({"status":{"ready":3}})").is_status("Invalid"))
      << "more ready than active";
  for (const char* shape :
       {R"({"conditions":7})", R"({"conditions":[7]})", R"({"conditions":[{"type":7}]})",
        R"({"conditions":[{"type":"Complete","status":true}]})", R"({"startTime":7})",
        R"({"uncountedTerminatedPods":[]})", R"({"completedIndexes":7})", R"({"active":"x"})"})
    EXPECT_TRUE(write("other", std::string(R"({"status":)") + shape + "}").is_status("BadRequest"))
        << shape;
  EXPECT_TRUE(write("other", R"({"status":7})").is_status("BadRequest"));
}

// A job of another controller, with `spec` merged into its spec, and writes to its status.
class P21Status : public ServerTest {
 protected:
  void foreign(const std::string& name, const Json& spec = Json::object()) {
    Json job = Json::parse(kManifest);
    job["metadata"]["name"] = name;
    job["spec"]["managedBy"] = "example.com/queue";
    job["spec"].update(spec);
    const Answer created = post(kJobs, job.dump());
    ASSERT_EQ(created.code, 201) << created.body;
  }
  Answer merge(const std::string& name, const std::string& body, const std::string& query = "") {
    return call(request("PATCH", kJobs + "/" + name + "/status" + query,
                        "Content-Type: application/merge-patch+json\r\n", body));
  }
  Answer put(const Json& job) {
    return call(request("PUT", kJobs + "/" + job["metadata"]["name"].get<std::string>() + "/status",
                        "Content-Type: application/json\r\n", job.dump()));
  }
  Json status(const std::string& name) { return get(kJobs + "/" + name).json()["status"]; }
};

TEST_F(P21Status, StatusWriteOfStaleVersionConflicts) {
  foreign("other");
  Json first = get(kJobs + "/other").json(), second = first;
  first["status"]["active"] = 1;
  second["status"]["ready"] = 0;
  ASSERT_EQ(put(first).code, 200);
  EXPECT_TRUE(put(second).is_status("Conflict")) << "the first write would be lost";
  EXPECT_EQ(status("other"), Json({{"active", 1}}));
  const std::string version = second["metadata"]["resourceVersion"];
  EXPECT_TRUE(merge("other", R"({"metadata":{"resourceVersion":")" + version +
                                 R"("},"status":{"active":2}})")
                  .is_status("Conflict"));
  // A patch without a version is reapplied if another write comes first.
  backend.before_update = [this](JobId id) {
    feed.records(id, {core::StatusWritten{kStart, R"({"active":1,"failed":3})"}});
  };
  ASSERT_EQ(merge("other", R"({"status":{"active":2}})").code, 200);
  EXPECT_EQ(status("other"), Json({{"active", 2}, {"failed", 3}}));
}

TEST_F(P21Status, StatusWriteValidatesOnlyChangedFields) {
  foreign("other", {{"completionMode", "Indexed"}, {"completions", 5}, {"parallelism", 5}});
  ASSERT_EQ(merge("other", R"({"status":{"active":1,"completedIndexes":"0-4"}})").code, 200);
  ASSERT_EQ(
      call(request("PATCH", kJobs + "/other", "Content-Type: application/merge-patch+json\r\n",
                   R"({"spec":{"completions":3,"parallelism":3}})"))
          .code,
      200);
  const Answer later = merge("other", R"({"status":{"active":2}})");
  EXPECT_EQ(later.code, 200) << later.body;
  EXPECT_TRUE(merge("other", R"({"status":{"completedIndexes":"0-3"}})").is_status("Invalid"));
  EXPECT_EQ(merge("other", R"({"status":{"completedIndexes":"0-2"}})").code, 200);
}

TEST_F(P21Status, StatusTimesAreComparedAsInstants) {
  foreign("other");
  const Answer bad = merge("other", R"({"status":{"startTime":"yesterday"}})");
  EXPECT_TRUE(bad.is_status("BadRequest"));
  EXPECT_NE(bad.body.find("status.startTime: not a time"), std::string::npos);
  ASSERT_EQ(merge("other", R"({"status":{"startTime":"2026-03-01T12:00:00Z"}})").code, 200);
  // The same instant in another time zone is no change. A completion time may be later although its
  // text looks earlier.
  EXPECT_EQ(merge("other", R"({"status":{"startTime":"2026-03-01T14:00:00+02:00"}})").code, 200);
  const Answer done = merge(
      "other",
      R"({"status":{"completionTime":"2026-03-01T08:00:00-05:00","conditions":[)"
      R"({"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}})");
  ASSERT_EQ(done.code, 200) << done.body;
  EXPECT_EQ(status("other")["completionTime"], "2026-03-01T13:00:00Z");
}

TEST_F(P21Status, UnknownStatusFieldsFollowFieldValidation) {
  foreign("other");
  const std::string body = R"({"status":{"active":1,"bogus":7}})";
  const Answer strict = merge("other", body, "?fieldValidation=Strict");
  EXPECT_TRUE(strict.is_status("BadRequest"));
  EXPECT_NE(strict.body.find("unknown field \\\"status.bogus\\\""), std::string::npos);
  ASSERT_EQ(merge("other", body, "?fieldValidation=Ignore").code, 200);
  EXPECT_EQ(status("other"), Json({{"active", 1}}));
}

TEST_F(P21Status, StatusWriteSetsLabelsAndAnnotationsButNotSpec) {
  foreign("other");
  const Answer written =
      merge("other", R"({"metadata":{"annotations":{"note":"n"},"labels":{"queue":"fast"}},)"
                     R"("spec":{"parallelism":1},"status":{"active":1}})");
  ASSERT_EQ(written.code, 200) << written.body;
  const Json job = get(kJobs + "/other").json();
  EXPECT_EQ(job["metadata"]["annotations"]["note"], "n");
  EXPECT_EQ(job["metadata"]["labels"]["queue"], "fast");
  EXPECT_EQ(job["status"], Json({{"active", 1}}));
  EXPECT_EQ(job["spec"]["parallelism"], 2) << "the spec is not written here";
}

TEST_F(P21Status, CustomConditionIsKeptOnJobRunByMuster) {
  ASSERT_EQ(post(kJobs, kManifest).code, 201);
  const JobId id = view.job("default", "new")->job->id();
  feed.records(id, {core::JobStarted{kStart}});
  auto strategic = [&](const std::string& body) {
    return call(request("PATCH", kJobs + "/new/status",
                        "Content-Type: application/strategic-merge-patch+json\r\n", body));
  };
  const Answer set = strategic(R"({"status":{"conditions":[{"type":"Quota","status":"True"}]}})");
  ASSERT_EQ(set.code, 200) << set.body;
  feed.records(id, {core::JobSuspended{kStart, true}});
  const Json conditions = status("new")["conditions"];
  ASSERT_EQ(conditions.size(), 2u) << "it stays while the controller goes on";
  EXPECT_EQ(conditions[0]["type"], "Suspended");
  EXPECT_EQ(conditions[1], Json({{"type", "Quota"}, {"status", "True"}}));
  for (const char* type : {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"}) {
    const Answer refused = strategic(std::string(R"({"status":{"conditions":[{"type":")") + type +
                                     R"(","status":"True"}]}})");
    EXPECT_TRUE(refused.is_status("Invalid"));
    EXPECT_EQ(refused.json()["details"]["causes"][0]["field"],
              std::string("status.conditions[") + type + "]");
  }
  EXPECT_TRUE(strategic(R"({"status":{"conditions":[{"type":"Suspended","status":"False"}]}})")
                  .is_status("Invalid"));
  EXPECT_TRUE(strategic(R"({"status":{"conditions":[{"type":"Quota","status":"Maybe"}]}})")
                  .is_status("Invalid"));
  ASSERT_EQ(strategic(R"({"status":{"conditions":[{"$patch":"delete","type":"Quota"}]}})").code,
            200);
  EXPECT_EQ(status("new")["conditions"].size(), 1u);
}

}  // namespace
}  // namespace muster::api
