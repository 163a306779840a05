// The forms and encodings in which the server answers, and the options that it takes.
#include "api/kube/schema/protobuf.hpp"
#include "core/pod_name.hpp"
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

const std::string kProtobuf = "Accept: application/vnd.kubernetes.protobuf\r\n";

class EncodingsTest : public ServerTest {
 protected:
  EncodingsTest() {
    feed.admit(1, make_job("a", uid_of(1)));
    feed.create(1, 0, 3);
  }
  Json read(const Answer& answer) {
    EXPECT_NE(answer.head.find(kProtobufType), std::string::npos) << answer.head;
    auto text = protobuf_to_json(answer.body);
    EXPECT_TRUE(text.ok()) << text.error().message;
    return text.ok() ? Json::parse(*text) : Json();
  }
};

TEST_F(EncodingsTest, ObjectsListsAndErrorsInProtobuf) {
  const Json plain = get(kJobs + "/a").json();
  Json job = read(call(request("GET", kJobs + "/a", kProtobuf)));
  EXPECT_EQ(job["metadata"], plain["metadata"]);
  EXPECT_EQ(job["spec"]["template"], plain["spec"]["template"]);
  const Json status = read(call(request("GET", kJobs + "/none", kProtobuf)));
  EXPECT_EQ(status["reason"], "NotFound");
  EXPECT_EQ(status["code"], 404);
  const Answer list = call(request("GET", kPods + "?limit=2", kProtobuf));
  EXPECT_NE(list.head.find(kProtobufType), std::string::npos);
  EXPECT_NE(list.body.find("PodList"), std::string::npos);
  const Answer made =
      call(request("POST", kJobs, kProtobuf + "Content-Type: application/json\r\n", kManifest));
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(read(made)["metadata"]["name"], "new");
}

// What a client has read, it can write back.
TEST_F(EncodingsTest, PutOfWhatWasReadChangesNothing) {
  const Answer seen = call(request("GET", kJobs + "/a", kProtobuf));
  const int before = backend.updates;
  const Answer put = call(request(
      "PUT", kJobs + "/a", std::string("Content-Type: ") + kProtobufType + "\r\n", seen.body));
  EXPECT_EQ(put.code, 200) << put.body;
  EXPECT_EQ(backend.updates, before);
}

TEST_F(EncodingsTest, WatchSendsFrames) {
  auto client = connect(request("GET", kPods + "?watch=true&timeoutSeconds=60", kProtobuf));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  const auto frames = [&] {
    std::vector<std::string> found;
    const std::string body = parsed(client->raw).body;
    for (size_t at = 0; at + 4 <= body.size();) {
      uint32_t size = 0;
      for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(body[at + i]);
      if (at + 4 + size > body.size()) break;
      found.push_back(body.substr(at + 4, size));
      at += 4 + size;
    }
    return found;
  };
  ASSERT_TRUE(until([&] { return frames().size() == 3; })) << client->raw;
  EXPECT_EQ(frames()[0].substr(0, 7), std::string("\x0a\x05") + "ADDED");
  EXPECT_NE(client->raw.find(kProtobufWatchType), std::string::npos);
}

TEST_F(EncodingsTest, MetadataOnly) {
  const std::string accept =
      "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n";
  const Json one = call(request("GET", kPods, accept)).json();
  EXPECT_EQ(one["kind"], "PartialObjectMetadataList");
  EXPECT_EQ(one["items"][0]["kind"], "PartialObjectMetadata");
  EXPECT_FALSE(one["items"][0].contains("spec"));
  EXPECT_EQ(call(request("GET", kJobs + "/a", accept)).json()["metadata"]["name"], "a");
}

TEST_F(EncodingsTest, NothingAcceptableIs406) {
  EXPECT_TRUE(call(request("GET", kJobs, "Accept: text/html\r\n")).is_status("NotAcceptable"));
  const Answer yaml = call(request("GET", kJobs, "Accept: application/yaml\r\n"));
  EXPECT_EQ(yaml.code, 200);
  EXPECT_NE(yaml.head.find("application/yaml"), std::string::npos);
}

TEST_F(EncodingsTest, OptionsOfListsAreChecked) {
  for (const char* query :
       {"watch=true&sendInitialEvents=true", "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact&resourceVersion=0",
        "watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=0",
        "resourceVersionMatch=Maybe&resourceVersion=1"}) {
    const Answer answer = get(kJobs + "?" + query);
    EXPECT_TRUE(answer.is_status("Invalid")) << query << answer.body;
    EXPECT_EQ(answer.json()["details"]["kind"], "ListOptions");
  }
  EXPECT_EQ(get(kJobs + "?timeout=soon").code, 400);
  EXPECT_EQ(get(kJobs + "?timeout=1m30s").code, 200);
}

TEST_F(EncodingsTest, LogOfSeveralContainersNeedsAName) {
  feed.admit(2,
             make_job("two", uid_of(2), 1, "", "default", R"(},{"name":"side","command":["x"])"));
  feed.create(2, 0, 1);
  const std::string pod = core::pod_name("two", uid_of(2), true, {0, 0});
  const Answer answer = get(kPods + "/" + pod + "/log");
  EXPECT_EQ(answer.code, 400);
  EXPECT_EQ(answer.json()["message"],
            "a container name must be specified for pod " + pod + ", choose one of: [main side]");
}

// A config map that belongs to a job goes with it.
TEST_F(EncodingsTest, OwnedObjectsGoWithTheirOwners) {
  const auto map = [&](const std::string& name, const std::string& uid) {
    return call(request("POST", "/api/v1/namespaces/default/configmaps",
                        "Content-Type: application/json\r\n",
                        R"({"metadata":{"name":")" + name +
                            R"(","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job",)" +
                            R"("name":"a","uid":")" + uid + R"("}]}})"))
        .code;
  };
  const auto code = [&](const char* name) {
    return get(std::string("/api/v1/namespaces/default/configmaps/") + name).code;
  };
  ASSERT_EQ(map("of-a", uid_of(1)), 201);
  ASSERT_EQ(map("of-nobody", uid_of(9)), 201);
  EXPECT_TRUE(until([&] { return code("of-nobody") == 404; }));
  EXPECT_EQ(code("of-a"), 200);
  EXPECT_EQ(call(request("DELETE", kJobs + "/a?propagationPolicy=Background")).code, 200);
  EXPECT_TRUE(until([&] { return code("of-a") == 404; }));
}

// Kinds of other groups may exist elsewhere, and a namespace is not deleted with anything.
TEST_F(EncodingsTest, OnlyOwnersThatMusterWouldHaveCount) {
  const auto create = [&](const std::string& where, const std::string& name,
                          const std::string& owner) {
    return call(request("POST", where, "Content-Type: application/json\r\n",
                        R"({"metadata":{"name":")" + name + R"(","ownerReferences":[{)" + owner +
                            R"(,"name":"a","uid":")" + uid_of(9) + R"("}]}})"))
        .code;
  };
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  ASSERT_EQ(create("/api/v1/namespaces", "n", R"("apiVersion":"batch/v1","kind":"Job")"), 201);
  ASSERT_EQ(create(maps, "foreign", R"("apiVersion":"example.com/v1","kind":"Lease")"), 201);
  ASSERT_EQ(create(maps, "of-lease", R"("apiVersion":"coordination.k8s.io/v1","kind":"Lease")"),
            201);
  EXPECT_TRUE(until([&] { return get(maps + "/of-lease").code == 404; }));
  EXPECT_EQ(get(maps + "/foreign").code, 200);
  EXPECT_EQ(get("/api/v1/namespaces/n").json()["status"]["phase"], "Active");
}

TEST_F(EncodingsTest, OrphansLoseTheirReference) {
  ASSERT_EQ(call(request("POST", "/api/v1/namespaces/default/configmaps",
                         "Content-Type: application/json\r\n",
                         R"({"metadata":{"name":"m","ownerReferences":[{"apiVersion":"batch/v1",)"
                         R"("kind":"Job","name":"a","uid":")" +
                             uid_of(1) + R"("}]}})"))
                .code,
            201);
  EXPECT_EQ(call(request("DELETE", kJobs + "/a?propagationPolicy=Orphan")).code, 200);
  const Json map = get("/api/v1/namespaces/default/configmaps/m").json();
  EXPECT_FALSE(map["metadata"].contains("ownerReferences")) << map.dump();
}

}  // namespace
}  // namespace muster::api
