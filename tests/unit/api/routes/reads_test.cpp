// Reads over HTTP: lists, watches, logs, histories and reasons.
#include "tests/unit/api/routes/server_fixture.hpp"

namespace muster::api {
namespace {

using namespace testing;

const std::string kOurs = "/apis/muster.dev/v1/namespaces/default/jobs/";

TEST_F(ServerTest, ReturnsStateOfEachIndex) {
  const std::string path = "/apis/muster.dev/v1/namespaces/default/jobs/a/indexes";
  feed.admit(1, make_job("a", uid_of(1), 9));
  feed.create(1, 0, 4);
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  feed.end(1, {0, 0}, 0);
  feed.bind(1, {2, 0});
  const uint64_t version = feed.start(1, {2, 0});
  const Answer map = get(path);
  ASSERT_EQ(map.code, 200) << map.body;
  EXPECT_EQ(map.json(), (Json{{"kind", "IndexMap"},
                              {"apiVersion", "muster.dev/v1"},
                              {"metadata",
                               {{"name", "a"},
                                {"namespace", "default"},
                                {"uid", uid_of(1)},
                                {"resourceVersion", std::to_string(version)}}},
                              {"completions", 9},
                              {"succeeded", "0"},
                              {"failed", ""},
                              {"cancelled", ""},
                              {"running", "2"},
                              {"pending", "1,3"},
                              {"backoff", ""}}));
  EXPECT_TRUE(call(request("POST", path, "Content-Type: application/json\r\n", "{}"))
                  .is_status("MethodNotAllowed"));
  const Answer none = get("/apis/muster.dev/v1/namespaces/default/jobs/b/indexes");
  EXPECT_TRUE(none.is_status("NotFound"));
  EXPECT_EQ(none.json()["message"], "jobs.batch \"b\" not found");
  for (const char* nowhere : {"/apis/muster.dev/v1/namespaces/default/jobs/a/other",
                              "/apis/muster.dev/v1/namespaces/default/jobs/a",
                              "/apis/muster.dev/v1/namespaces/default/pods/a/indexes",
                              "/apis/muster.dev/v1/namespaces/default/jobs/a/indexes/1",
                              "/apis/muster.dev/v1/jobs", "/apis/muster.dev/v2/nodes"})
    EXPECT_TRUE(get(nowhere).is_status("NotFound")) << nowhere;
  server.set_ready(false, "recovering");
  EXPECT_TRUE(get(path).is_status("ServiceUnavailable"));
}

TEST_F(ServerTest, ReturnsRunningAndWaitingPodsOfEachNode) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  feed.node(make_node(2, "n2", core::NodeInfo::Health::ready));
  feed.admit(1, make_job("a", uid_of(1), 4));
  feed.create(1, 0, 4);
  for (uint32_t i = 0; i < 3; ++i) feed.bind(1, {i, 0});
  feed.start(1, {0, 0});
  feed.start(1, {1, 0});
  feed.end(1, {1, 0}, 0);
  const Answer use = get("/apis/muster.dev/v1/nodes");
  ASSERT_EQ(use.code, 200) << use.body;
  EXPECT_EQ(use.json()["kind"], "NodeUseList");
  EXPECT_EQ(use.json()["items"], (Json::array({{{"name", "n1"}, {"running", 1}, {"waiting", 1}},
                                               {{"name", "n2"}, {"running", 0}, {"waiting", 0}}})));
}

TEST_F(ServerTest, ListsNamespacesInUse) {
  feed.admit(1, make_job("a", uid_of(1), 1, "", "blue"));
  const auto names = [this](const std::string& query) {
    std::string text;
    const Json list = get("/api/v1/namespaces" + query).json();
    for (const Json& item : list["items"])
      text += item["metadata"]["name"].get<std::string>() + " ";
    return text;
  };
  EXPECT_EQ(names(""), "blue default ");
  EXPECT_EQ(names("?fieldSelector=metadata.name%3Dblue"), "blue ");
  EXPECT_EQ(names("?labelSelector=kubernetes.io/metadata.name%21%3Dblue"), "default ");
  EXPECT_EQ(get("/api/v1/namespaces/blue").json()["status"]["phase"], "Active");
  EXPECT_EQ(get("/api/v1/namespaces/unused").code, 404);
  EXPECT_EQ(post("/api/v1/namespaces", R"({"metadata":{"name":"default"}})").code, 409);
  EXPECT_EQ(call(request("DELETE", "/api/v1/namespaces/default")).code, 403);
  EXPECT_EQ(call(request("DELETE", "/api/v1/namespaces")).code, 405);
  EXPECT_EQ(get("/api/v1/namespaces/blue/serviceaccounts").json()["items"].size(), 1u);
  EXPECT_EQ(get("/api/v1/namespaces/unused/serviceaccounts/default").code, 404);
  EXPECT_EQ(
      get("/api/v1/namespaces", "Accept: application/json;as=Table\r\n").json()["rows"].size(), 2u);
}

TEST_F(ServerTest, ListsKindsThatNeverExistAsEmpty) {
  EXPECT_EQ(get("/api/v1/namespaces/default/services").json()["kind"], "ServiceList");
  EXPECT_EQ(get("/api/v1/services/x").code, 404);
  EXPECT_EQ(get("/apis/policy/v1/poddisruptionbudgets").json()["items"].size(), 0u);
  EXPECT_EQ(post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "{}").code, 405);
  EXPECT_EQ(get("/api/v1/secrets").code, 404);
}

TEST_F(ServerTest, ListsPodsAsListAndTable) {
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  feed.admit(1, make_job("a", uid_of(1), 500));
  feed.admit(2, make_job("b", uid_of(2), 3, "", "other"));
  feed.create(1, 0, 500);
  feed.create(2, 0, 3);
  const Json pods = get(kPods).json();
  EXPECT_EQ(pods["kind"], "PodList");
  EXPECT_EQ(pods["items"].size(), 500u);
  EXPECT_EQ(pods["metadata"]["resourceVersion"], std::to_string(view.version()));
  EXPECT_EQ(get("/api/v1/pods").json()["items"].size(), 503u);
  EXPECT_EQ(get("/apis/batch/v1/jobs").json()["items"].size(), 2u);
  EXPECT_EQ(get("/api/v1/nodes").json()["items"][0]["metadata"]["name"], "n1");
  EXPECT_EQ(get("/api/v1/namespaces/other/events").json()["items"].size(), 3u);
  EXPECT_EQ(get("/api/v1/pods?labelSelector=job-name%3Db").json()["items"].size(), 3u);
  EXPECT_EQ(get(kPods + "?fieldSelector=status.phase%3DRunning").json()["items"], Json::array());
  const Json table =
      get(kPods, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n")
          .json();
  EXPECT_EQ(table["kind"], "Table");
  EXPECT_EQ(table["rows"].size(), 500u);
  EXPECT_EQ(table["rows"][7]["object"]["kind"], "PartialObjectMetadata");
  const char* const as_table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
  for (const std::string& path :
       {kPods + "?includeObject=None", std::string("/api/v1/namespaces") + "?includeObject=None"}) {
    const Json cells = get(path, as_table).json();
    EXPECT_EQ(cells["kind"], "Table") << path;
    for (const Json& row : cells["rows"]) EXPECT_TRUE(row.at("object").is_null()) << path;
  }
  EXPECT_EQ(get(kPods + "?includeObject=None", as_table).json()["rows"][7]["cells"],
            table["rows"][7]["cells"]);
  EXPECT_EQ(get(kPods + "?includeObject=None").json()["items"].size(), 500u) << "it is for tables";
  const std::string name = pods["items"][7]["metadata"]["name"];
  EXPECT_EQ(get(kPods + "/" + name).json(), pods["items"][7]);
}

TEST_F(ServerTest, P10SelectiveListOverManyObjectsIsComplete) {
  for (JobId id = 1; id <= 5'000; ++id)
    feed.admit(id, make_job("j" + std::to_string(id), uid_of(id), 1));
  const std::string found = kJobs + "?fieldSelector=metadata.name!%3Dj7&limit=4999";
  EXPECT_EQ(get(found).json()["items"].size(), 4'999u);
  EXPECT_FALSE(get(found).json()["metadata"].contains("continue")) << "nothing is left";
  const Json page = get(kJobs + "?fieldSelector=metadata.name!%3Dj7&limit=4998").json();
  EXPECT_EQ(page["items"].size(), 4'998u);
  const std::string rest = page["metadata"].value("continue", "");
  EXPECT_EQ(get(found + "&continue=" + rest).json()["items"].size(), 1u);
  const Json one = get(kJobs + "?fieldSelector=metadata.name%3Dj4321").json();
  ASSERT_EQ(one["items"].size(), 1u);
  EXPECT_EQ(one["items"][0]["metadata"]["name"], "j4321");
  EXPECT_EQ(get(kPods + "?labelSelector=no%3Dpod").json()["items"].size(), 0u);
}

TEST_F(ServerTest, ListsInPages) {
  feed.admit(1, make_job("b", uid_of(1), 10));
  feed.admit(2, make_job("a", uid_of(2), 10));
  feed.create(1, 0, 10);
  feed.create(2, 0, 10);
  const Json whole = get(kPods).json();
  EXPECT_FALSE(whole["metadata"].contains("continue"));
  Json items = Json::array();
  std::string token;
  do {
    const Json page = get(kPods + "?limit=3" + (token.empty() ? "" : "&continue=" + token)).json();
    ASSERT_EQ(page["kind"], "PodList") << page.dump();
    ASSERT_LE(page["items"].size(), 3u);
    for (const Json& item : page["items"]) items.push_back(item);
    token = page["metadata"].value("continue", "");
    EXPECT_EQ(page["metadata"].value("remainingItemCount", size_t{0}), 20 - items.size());
    // Changes between two pages do not change the version: a watch from there reports them.
    EXPECT_EQ(page["metadata"]["resourceVersion"], whole["metadata"]["resourceVersion"]);
    feed.records(1, {core::JobStarted{kStart}});
  } while (!token.empty());
  ASSERT_EQ(items.size(), 20u);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(items[i]["metadata"]["name"], whole["items"][i]["metadata"]["name"]);
  EXPECT_EQ(items[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "a");

  const Json selected = get(kPods + "?limit=9&labelSelector=job-name%3Db").json();
  EXPECT_FALSE(selected["metadata"].contains("remainingItemCount"));
  const std::string rest = selected["metadata"]["continue"];
  EXPECT_EQ(
      get(kPods + "?limit=9&labelSelector=job-name%3Db&continue=" + rest).json()["items"].size(),
      1u);
  EXPECT_FALSE(
      get(kPods + "?limit=10&labelSelector=job-name%3Db").json()["metadata"].contains("continue"));
  EXPECT_TRUE(get(kPods + "?limit=-1").is_status("BadRequest"));
  EXPECT_TRUE(get(kPods + "?continue=nonsense").is_status("BadRequest"));
  EXPECT_TRUE(get(kPods + "?resourceVersion=5&continue=" + rest).is_status("BadRequest"));
  EXPECT_EQ(get(kPods + "?resourceVersion=" + std::to_string(view.version() + 1)).code, 504);
}

// A page looks only at pods near those that it shows, wherever they are in their job.
TEST_F(ServerTest, PagesMergeOpenDeferredAndFinishedPods) {
  feed.admit(1, make_job("a", uid_of(1), 3'000));
  feed.create(1, 0, 3'000);
  for (uint32_t index = 0; index < 3'000; index += 7) {
    feed.bind(1, {index, 0});
    feed.end(1, {index, 0}, 0);
  }
  for (uint32_t index = 3; index < 3'000; index += 70) {
    feed.bind(1, {index, 0});
    feed.end(1, {index, 0}, 1, core::Counted::not_yet);
  }
  const Json whole = get(kPods).json();
  ASSERT_EQ(whole["items"].size(), 3'000u);
  for (const int limit : {1, 127, 128, 700, 1'023, 1'024, 1'500, 2'999, 3'000}) {
    std::string token;
    size_t seen = 0;
    for (int pages = 0; pages < 3; ++pages) {
      const Json page = get(kPods + "?limit=" + std::to_string(limit) +
                            (token.empty() ? "" : "&continue=" + token))
                            .json();
      for (const Json& item : page["items"])
        ASSERT_EQ(item["metadata"]["name"], whole["items"][seen++]["metadata"]["name"]) << limit;
      token = page["metadata"].value("continue", "");
      ASSERT_EQ(page["metadata"].value("remainingItemCount", size_t{0}), 3'000 - seen) << limit;
      if (token.empty()) break;
    }
    EXPECT_EQ(seen, std::min(3'000, 3 * limit));
  }
  // Of 3,000 pods, the selector leaves two.
  const std::string last = whole["items"][2'999]["metadata"]["name"];
  for (const char* limit : {"1", "2"}) {
    const Json found =
        get(kPods + "?fieldSelector=metadata.name%3D" + last + "&limit=" + limit).json();
    ASSERT_EQ(found["items"].size(), 1u);
    EXPECT_FALSE(found["metadata"].contains("continue"));
  }
}

// The rest of such a list can be had as of now, with the token in the answer.
TEST_F(ServerTest, ContinueTokenOfEarlierStartIsExpired) {
  ListPage page{.limit = 1};
  page.version = 7;
  feed.admit(1, make_job("a", uid_of(1)));
  feed.admit(2, make_job("b", uid_of(2)));
  view.start_at(1000, {});
  const Answer late = get(kJobs + "?continue=" + continue_token(page, {"default", "a", 1, {}, 0}));
  EXPECT_EQ(late.code, 410);
  EXPECT_TRUE(late.is_status("Expired"));
  const std::string token = late.json()["metadata"].value("continue", "");
  const Json rest = get(kJobs + "?continue=" + token).json();
  ASSERT_EQ(rest["items"].size(), 1u) << rest.dump();
  EXPECT_EQ(rest["items"][0]["metadata"]["name"], "b");
  EXPECT_EQ(rest["metadata"]["resourceVersion"], std::to_string(view.version()));
}

class FewChangesTest : public ServerTest {
 protected:
  FewChangesTest() : ServerTest({}, 8) {}
};

// However much changes between two pages, the list ends and has each object once. A watch from its
// version would miss changes, so it is refused.
TEST_F(FewChangesTest, ListInPagesEndsWhileEverythingChanges) {
  feed.admit(1, make_job("a", uid_of(1), 20));
  feed.create(1, 0, 20);
  std::vector<std::string> names;
  std::string token, version;
  int rounds = 0;
  do {
    const Json page = get(kPods + "?limit=3" + (token.empty() ? "" : "&continue=" + token)).json();
    ASSERT_EQ(page["kind"], "PodList") << page.dump();
    for (const Json& item : page["items"]) names.push_back(item["metadata"]["name"]);
    token = page["metadata"].value("continue", "");
    const std::string its = page["metadata"]["resourceVersion"];
    EXPECT_EQ(version.empty() ? its : version, its);
    version = its;
    const std::string value = std::to_string(++rounds);
    for (uint32_t index = 0; index < 20; ++index)
      feed.records(1, {core::PodMetaSet{kStart, {index, 0}, {{true, "round", value}}}});
  } while (!token.empty());
  EXPECT_EQ(names.size(), 20u);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 20u);
  EXPECT_TRUE(get(kPods + "?watch=true&resourceVersion=" + version).is_status("Expired"));
}

TEST_F(ServerTest, AWatcherThatStopsReadingIsCut) {
  feed.admit(1, make_job("a", uid_of(1), 200));
  feed.create(1, 0, 200);
  server.streams().write_patience = 20 * kj::MILLISECONDS;
  auto client = connect(request("GET", kPods + "?watch=true&resourceVersion=0"));
  auto gone = client->stream->whenWriteDisconnected()
                  .then([] { return true; })
                  .eagerlyEvaluate([](kj::Exception&&) { return true; });
  bool cut = false;
  auto seen = gone.then([&cut](bool) { cut = true; }).eagerlyEvaluate([](kj::Exception&&) {});
  EXPECT_TRUE(until([&cut] { return cut; })) << "nothing unread is left in its pipe";
}

TEST_F(ServerTest, WatchSendsAddedModifiedAndDeleted) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  auto client = connect(request("GET", kPods + "?watch=true&timeoutSeconds=60"));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  auto lines = [&] {
    std::vector<Json> found;
    const std::string body = parsed(client->raw).body;
    for (size_t at = 0, end; (end = body.find('\n', at)) != std::string::npos; at = end + 1)
      found.push_back(Json::parse(body.substr(at, end - at), nullptr, false));
    return found;
  };
  ASSERT_TRUE(until([&] { return lines().size() == 1; })) << client->raw;
  EXPECT_EQ(lines()[0]["type"], "ADDED");
  feed.bind(1, {0, 0});
  ASSERT_TRUE(until([&] { return lines().size() == 2; }));
  EXPECT_EQ(lines()[1]["type"], "MODIFIED");
  EXPECT_EQ(lines()[1]["object"]["metadata"]["resourceVersion"],
            std::to_string(first_version(3) + 1));
  feed.records(1, {core::PodsStopping{kStart, {{{0, 0}, core::Counted::released}}}});
  feed.end(1, {0, 0}, 143, core::Counted::not_yet);
  ASSERT_TRUE(until([&] { return lines().size() == 3 || (lines().size() == 4); }));
  EXPECT_EQ(lines().back()["type"], "DELETED");
  EXPECT_EQ(lines().back()["object"]["status"]["phase"], "Failed");
}

TEST_F(ServerTest, WatchEndsAtTimeoutAndOnDrain) {
  const Answer a = get(kJobs + "?watch=true&timeoutSeconds=1");
  EXPECT_EQ(a.code, 200);
  EXPECT_EQ(a.body, "");
  auto client = connect(request("GET", kJobs + "?watch=true"));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until([&] { return client->raw.find("\r\n\r\n") != std::string::npos; }))
      << "the head comes at once";
  auto drained = server.drain().eagerlyEvaluate(nullptr);
  EXPECT_TRUE(until([&] { return client->ended; }));
}

TEST_F(ServerTest, WaitsForTheFirstRequestOfEachYoungConnection) {
  const auto heard = [this](kj::Duration patience) {
    auto all = server.first_requests(patience).eagerlyEvaluate(nullptr);
    for (int i = 0; i < 5; ++i) io.waitScope.poll();
    return all.poll(io.waitScope);
  };
  EXPECT_TRUE(heard(1 * kj::MINUTES)) << "there is none";
  auto silent = connect("");
  EXPECT_FALSE(heard(1 * kj::MINUTES));
  EXPECT_TRUE(heard(0 * kj::MINUTES)) << "it is as old as that";
  auto half = connect("GET /readyz HTTP/1.1\r\n");
  auto waits = server.first_requests(1 * kj::MINUTES).eagerlyEvaluate(nullptr);
  silent = nullptr;
  EXPECT_FALSE(waits.poll(io.waitScope));
  ASSERT_TRUE(until([&] { return heard(1 * kj::MILLISECONDS); }));
  EXPECT_FALSE(waits.poll(io.waitScope)) << "a part of a request is none";
  const std::string rest = "Host: 127.0.0.1:7117\r\n\r\n";
  half->stream->write(rest.data(), rest.size()).wait(io.waitScope);
  EXPECT_TRUE(until([&] { return waits.poll(io.waitScope); }));
}

TEST_F(ServerTest, WatchSendsBookmarksAndRefusesExpiredVersions) {
  feed.admit(1, make_job("a", uid_of(1)));
  const std::string now = std::to_string(view.version());
  server.streams().watch_idle = 1 * kj::MILLISECONDS;
  auto client = connect(
      request("GET", kJobs + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + now));
  auto reading = client->read().eagerlyEvaluate([](kj::Exception&&) {});
  ASSERT_TRUE(until(
      [&] { return client->raw.find("\n", client->raw.find("BOOKMARK")) != std::string::npos; }));
  const std::string body = parsed(client->raw).body;
  EXPECT_EQ(Json::parse(body.substr(0, body.find('\n')))["object"]["metadata"]["resourceVersion"],
            now);
  const Answer later = get(
      kJobs + "?watch=true&timeoutSeconds=1&resourceVersion=" + std::to_string(view.version() + 1));
  EXPECT_EQ(later.code, 200) << "it waits for that version";
  EXPECT_EQ(later.body, "");
  EXPECT_EQ(get(kJobs + "?watch=true&resourceVersion=x").code, 400);
}

TEST_F(ServerTest, WatchEndsWhenItsClientDisconnects) {
  server.streams().watch_idle = 1 * kj::MILLISECONDS;
  auto client = connect(request("GET", kJobs + "?watch=true"));
  client = nullptr;
  EXPECT_TRUE(until([&] { return connections_.isEmpty(); }));
}

TEST_F(ServerTest, ReturnsAndFollowsPodLogs) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 2);
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  const std::string log = kPods + "/" + pod_name_of(0) + "/log";
  EXPECT_EQ(get(log).body, "one\ntwo\nthree\noops\n");
  EXPECT_NE(get(log).head.find("text/plain"), std::string::npos);
  EXPECT_EQ(get(log + "?stream=Stdout").body, "one\ntwo\nthree\n");
  EXPECT_EQ(get(log + "?stream=Stderr&container=main").body, "oops\n");
  EXPECT_EQ(get(log + "?stream=Stdout&tailLines=1").body, "three\n");
  EXPECT_EQ(get(log + "?stream=Stdout&tailLines=0").body, "");
  EXPECT_EQ(get(log + "?stream=Stdout&limitBytes=5").body, "one\nt");
  EXPECT_EQ(get(log + "?container=other").code, 400);
  EXPECT_EQ(get(log + "?previous=true").code, 400);
  EXPECT_EQ(get(log + "?tailLines=x").code, 400);
  EXPECT_EQ(get(kPods + "/" + pod_name_of(1) + "/log").code, 400) << "it has not started";
  EXPECT_EQ(get(kPods + "/none/log").code, 404);
  backend.running = true;
  backend.grow_at = backend.reads + 6;
  EXPECT_EQ(get(log + "?follow=true&stream=Stdout").body, "one\ntwo\nthree\ngrown\n");
  backend.refuse = Error{Errc::unavailable, "node n1 is not connected", {}};
  EXPECT_TRUE(get(log).is_status("ServiceUnavailable"));
}

TEST_F(ServerTest, LogsHaveTimesAndBeginWhereTheNodeSays) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  const std::string pod = pod_name_of(0), log = kPods + "/" + pod + "/log";
  EXPECT_EQ(get(log).json()["message"],
            "container \"main\" in pod \"" + pod + "\" is waiting to start: ContainerCreating");
  feed.start(1, {0, 0});
  const std::string at = "2023-11-14T22:13:20.000000000Z ";
  EXPECT_EQ(get(log + "?timestamps=true&stream=Stdout").body,
            at + "one\n" + at + "two\n" + at + "three\n");
  EXPECT_EQ(get(log + "?timestamps=true&limitBytes=33").body, at + "on");
  EXPECT_EQ(backend.run, 0);
  backend.begins = {8, 5};
  EXPECT_EQ(get(log + "?tailLines=1").body, "three\n");
  EXPECT_EQ(backend.searched.last_lines, 1);
  EXPECT_TRUE(backend.searched.out && backend.searched.err);
  backend.begins = {4, 0};
  EXPECT_EQ(get(log + "?sinceSeconds=10").body, "two\nthree\noops\n");
  EXPECT_EQ(backend.searched.since, kStart - 10'000);
  backend.begins = {.known = false};
  const Answer old = get(log + "?sinceSeconds=10");
  EXPECT_EQ(old.body, "one\ntwo\nthree\noops\n");
  EXPECT_NE(old.head.find("does not know the times of lines"), std::string::npos);
  EXPECT_EQ(get(log + "?tailLines=1").body, "three\noops\n") << "of each";
  // Also of all processes together, as muster asks, and of one that is followed.
  for (const char* query : {"?tailLines=1&stream=All", "?tailLines=1&stream=All&follow=true"}) {
    backend.begins = {8, 5};
    backend.searched = {};
    EXPECT_EQ(get(log + query).body, "three\n") << query;
    EXPECT_EQ(backend.searched.last_lines, 1);
    EXPECT_EQ(backend.searched.run, -1);
  }
  backend.searched = {};
  EXPECT_EQ(get(log + "?tailLines=1&stream=Stderr").body, "oops\n");
  EXPECT_FALSE(backend.searched.last_lines) << "one output has its own";
}

TEST_F(ServerTest, LogsAreOfOneProcessOfAContainer) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  feed.bind(1, {0, 0});
  feed.start(1, {0, 0});
  const std::string log = kPods + "/" + pod_name_of(0) + "/log";
  EXPECT_EQ(get(log + "?previous=true").json()["message"],
            "previous terminated container \"main\" in pod \"" + pod_name_of(0) + "\" not found");
  core::ContainerNow now{.phase = core::ContainerPhase::running, .restarts = 2};
  feed.records(
      1, {core::PodsStarted{kStart, {{{0, 0}, 7, 2, kStart, core::Readiness::ready, {now}}}}});
  backend.begins = {8, 5};
  EXPECT_EQ(get(log).body, "three\n");
  EXPECT_EQ(backend.run, 2);
  EXPECT_EQ(get(log + "?previous=true").body, "three\n");
  EXPECT_EQ(backend.run, 1);
  EXPECT_EQ(get(log + "?stream=Stdout").body, "one\ntwo\nthree\n");
  EXPECT_EQ(backend.run, -1) << "muster's own commands read all";
  EXPECT_EQ(get(log + "?stream=All&tailLines=1").body, "three\n") << "of both together";
}

TEST_F(ServerTest, WrongLogOptionsAreInvalid) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 1);
  const std::string log = kPods + "/" + pod_name_of(0) + "/log";
  const Answer answer = get(log + "?tailLines=-1");
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(answer.json()["message"], "PodLogOptions \"" + pod_name_of(0) +
                                          "\" is invalid: tailLines: Invalid value: -1: must be "
                                          "greater than or equal to 0");
  EXPECT_EQ(answer.json()["details"]["causes"][0]["field"], "tailLines");
  EXPECT_TRUE(get(log + "?tailLines=x").is_status("BadRequest"));
}

TEST_F(ServerTest, AttemptEndedByAnotherPodNamesThatPod) {
  feed.admit(1, make_job("a", uid_of(1)));
  core::Pod pod;
  pod.node = 1;
  pod.created_ms = pod.bound_ms = kStart;
  pod.ended = true;
  pod.end = {.exit_code = 255, .ended_at = kStart + 1500};
  pod.counted = core::Counted::released;
  pod.conditions = {{"DisruptionTarget", "True", kStart, "WorkerFailed",
                     "index 2 (attempt 0) failed with exit code 9"}};
  backend.closed.push_back(pod);
  const Json list = get(kOurs + "a/attempts").json();
  EXPECT_EQ(list["items"][0]["disruption"], "WorkerFailed");
  EXPECT_EQ(list["items"][0]["message"], "index 2 (attempt 0) failed with exit code 9");
}

TEST_F(ServerTest, AttemptsHaveTheTimesOfTheirSteps) {
  feed.admit(1, make_job("a", uid_of(1)));
  feed.create(1, 0, 3);
  feed.bind(1, {0, 0});
  feed.bind(1, {1, 0});
  feed.start(1, {1, 0});
  core::Pod pod;
  pod.key = {2, 0};
  pod.node = 1;
  pod.created_ms = pod.bound_ms = kStart;
  pod.stopping_at = kStart + 500;
  pod.ended = true;
  pod.end = {.exit_code = 1, .ended_at = kStart + 1500};
  pod.counted = core::Counted::failed;
  backend.closed.push_back(pod);
  Json list = get(kOurs + "a/attempts").json();
  EXPECT_EQ(list["metadata"]["jobCreated"], "2023-11-14T22:13:20.000Z");
  ASSERT_EQ(list["items"].size(), 1u);
  EXPECT_EQ(list["items"][0]["stopping"], "2023-11-14T22:13:20.500Z");
  EXPECT_EQ(list["items"][0]["recorded"], "2023-11-14T22:13:21.600Z");
  const Json open = get(kOurs + "a/attempts?open=true&index=0-1").json()["items"];
  ASSERT_EQ(open.size(), 2u);
  for (const Json& one : open) {
    EXPECT_EQ(one["counted"], "not-yet");
    for (const char* field : {"ended", "recorded", "cause", "exitCode", "stopping"})
      EXPECT_FALSE(one.contains(field)) << field;
  }
  EXPECT_EQ(open[0]["bound"], "2023-11-14T22:13:21.000Z");
  EXPECT_FALSE(open[0].contains("started"));
  EXPECT_EQ(open[1]["started"], "2023-11-14T22:13:22.000Z");
  EXPECT_EQ(get(kOurs + "a/attempts?open=true&failed=true").json()["items"].size(), 1u)
      << "one that has not ended has not failed";
}

TEST_F(ServerTest, AttemptHasTheRunsBeforeItsLast) {
  const std::string job =
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"template":{"spec":)"
      R"({"restartPolicy":"OnFailure","initContainers":[{"name":"prepare","command":["true"]}],)"
      R"("containers":[{"name":"main","command":["true"]}]}}}})";
  ASSERT_EQ(post(kJobs, job).code, 201);
  core::Pod pod;
  pod.node = 1;
  pod.restarts = 2;
  pod.ended = true;
  pod.end = {.exit_code = 3, .ended_at = kStart + 1500};
  pod.counted = core::Counted::failed;
  core::RunEnd run;
  run.end = {.exit_code = 137, .signal = 9, .started_at = kStart, .ended_at = kStart + 700};
  run.end.cause = core::EndCause::out_of_memory;
  pod.runs.push_back(run);
  run = {.container = 1, .end = {.exit_code = 3, .restarts = 4, .ended_at = kStart + 900}};
  run.used = {1'500'000, 250'000, 4096};
  pod.runs.push_back(run);
  backend.closed.push_back(pod);
  const Json runs = get(kOurs + "a/attempts").json()["items"][0]["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["container"], "prepare");
  EXPECT_EQ(runs[0]["run"], 0);
  EXPECT_EQ(runs[0]["cause"], "out-of-memory");
  EXPECT_EQ(runs[0]["signal"], 9);
  EXPECT_TRUE(runs[0].contains("started"));
  EXPECT_FALSE(runs[0].contains("usage"));
  EXPECT_EQ(runs[1]["container"], "main");
  EXPECT_EQ(runs[1]["run"], 4);
  EXPECT_EQ(runs[1]["exitCode"], 3);
  EXPECT_EQ(runs[1]["usage"]["userSeconds"], 1.5);
}

TEST_F(ServerTest, AttemptsOfNonIndexedJobHaveNumbers) {
  const std::string job =
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"template":{"spec":)"
      R"({"restartPolicy":"Never","containers":[{"name":"main","command":["true"]}]}}}})";
  ASSERT_EQ(post(kJobs, job).code, 201);
  for (uint32_t i = 0; i < 3; ++i) {
    core::Pod pod;
    pod.key = {i, 0};
    pod.node = 1;
    pod.created_ms = pod.bound_ms = kStart;
    pod.ended = true;
    pod.end = {.exit_code = 3, .ended_at = kStart + 1500};
    pod.counted = core::Counted::failed;
    backend.closed.push_back(pod);
  }
  const Json items = get(kOurs + "a/attempts").json()["items"];
  ASSERT_EQ(items.size(), 3u);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(items[i]["number"], i);
    EXPECT_EQ(items[i]["attempt"], i);
  }
  const std::string log = kOurs + "a/log?stream=Stdout&";
  for (const auto& [query, code] : {std::pair{"attempt=2", 200},
                                    {"index=2&attempt=2", 200},
                                    {"index=2&attempt=0", 200},
                                    {"index=2&attempt=1", 404},
                                    {"attempt=3", 404},
                                    {"index=2", 400},
                                    {"index=x&attempt=2", 400}})
    EXPECT_EQ(get(log + query).code, code) << query;
}

TEST_F(ServerTest, ReturnsHistoryOfAttempts) {
  feed.admit(1, make_job("a", uid_of(1)));
  for (uint32_t i = 0; i < 3; ++i) {
    core::Pod pod;
    pod.key = {i, i == 2 ? 1u : 0u};
    pod.node = 1;
    pod.created_ms = pod.bound_ms = kStart;
    pod.started_at = kStart;
    pod.ended = true;
    pod.end = {.exit_code = i == 0 ? 0 : 137, .signal = i == 0 ? 0 : 9, .ended_at = kStart + 1500};
    pod.counted = i == 0 ? core::Counted::succeeded : core::Counted::failed;
    if (i > 0) pod.end.used = {1'500'000 * i, 250'000, 4096};
    backend.closed.push_back(pod);
  }
  Json list = get(kOurs + "a/attempts").json();
  ASSERT_EQ(list["items"].size(), 3u);
  EXPECT_FALSE(list["items"][0].contains("usage")) << "not known";
  EXPECT_EQ(list["items"][1]["usage"].dump(),
            R"({"peakMemoryBytes":4096,"systemSeconds":0.25,"userSeconds":1.5})");
  EXPECT_EQ(list["kind"], "AttemptList");
  const Json& last = list["items"][2];
  EXPECT_EQ(last["index"], 2);
  EXPECT_EQ(last["attempt"], 1);
  EXPECT_EQ(last["exitCode"], 137);
  EXPECT_EQ(last["signal"], 9);
  EXPECT_EQ(last["counted"], "failed");
  EXPECT_EQ(last["ended"], "2023-11-14T22:13:21.500Z");
  EXPECT_EQ(get(kOurs + "a/attempts?failed=true").json()["items"].size(), 2u);
  EXPECT_EQ(get(kOurs + "a/attempts?index=0-1").json()["items"].size(), 2u);
  list = get(kOurs + "a/attempts?limit=2").json();
  EXPECT_EQ(list["items"].size(), 2u);
  const std::string token = list["metadata"]["continue"].get<std::string>();
  list = get(kOurs + "a/attempts?limit=2&continue=" + token).json();
  EXPECT_EQ(list["items"].size(), 1u);
  EXPECT_FALSE(list["metadata"].contains("continue"));
  EXPECT_EQ(get(kOurs + "a/attempts?index=3-1").code, 400);
  EXPECT_EQ(get(kOurs + "a/attempts?limit=0").code, 400);
  EXPECT_EQ(get(kOurs + "a/attempts?continue=x").code, 400);
  EXPECT_EQ(get(kOurs + "none/attempts").code, 404);
  EXPECT_EQ(post(kOurs + "a/attempts", "{}").code, 405);
  EXPECT_EQ(get(kOurs + "a/log?index=2&attempt=1&stream=Stdout").body, "one\ntwo\nthree\n")
      << "though its Pod is gone";
  EXPECT_EQ(get(kOurs + "a/log?index=2&attempt=5").code, 404);
  EXPECT_EQ(get(kOurs + "a/log?index=2").code, 400);
}

TEST_F(ServerTest, WhyExplainsWhatJobWaitsFor) {
  feed.admit(1, make_job("a", uid_of(1), 3, R"(,"backoffLimitPerIndex":1)"));
  auto why = [&](const std::string& query = "") { return get(kOurs + "a/why" + query).json(); };
  EXPECT_EQ(why()["state"], "Waiting");
  EXPECT_EQ(why("?index=1")["state"], "Waiting");
  feed.create(1, 0, 3);
  EXPECT_EQ(why()["state"], "Pending");
  EXPECT_EQ(why("?index=1")["summary"],
            "attempt 0 is waiting for a slot: there are no nodes (start one with `muster agent`)");
  auto node = make_node(1, "n1", core::NodeInfo::Health::ready);
  node.spec.unschedulable = true;
  feed.node(node);
  EXPECT_EQ(why("?index=1")["details"][0], "1 node: cordoned (n1)");
  feed.node(make_node(2, "n2", core::NodeInfo::Health::lost));
  EXPECT_EQ(why()["summary"],
            "3 pods are waiting for a slot: 0 of 2 nodes fit (1 cordoned, 1 not ready)");
  feed.bind(1, {1, 0});
  feed.start(1, {1, 0});
  EXPECT_EQ(why()["state"], "Running");
  EXPECT_EQ(why("?index=1")["state"], "Running");
  feed.records(1, {core::PodsEnded{
                      kStart + 3000, {Feeder::end_of({1, 0}, 3, core::Counted::not_yet)}, 0, 0}});
  const Json backoff = why("?index=1");
  EXPECT_EQ(backoff["state"], "Backoff") << backoff;
  EXPECT_EQ(backoff["until"], "2023-11-14T22:13:33.000Z");
  EXPECT_EQ(backoff["details"][0], "attempt 0: exit 3; counted once its replacement exists");
  EXPECT_EQ(why()["state"], "Pending");
  EXPECT_EQ(why()["nextRetry"], "2023-11-14T22:13:33.000Z");
  feed.bind(1, {2, 0});
  feed.start(1, {2, 0});
  auto killed = Feeder::end_of({2, 0}, 137, core::Counted::not_yet);
  killed.end.signal = 9;
  feed.records(1, {core::PodsEnded{kStart + 3000, {killed}, 0, 0}});
  EXPECT_EQ(why("?index=2")["details"][0],
            "attempt 0: SIGKILL (exit 137); counted once its replacement exists");
  EXPECT_FALSE(why().contains("until"));
  feed.bind(1, {0, 0});
  feed.end(1, {0, 0}, 0);
  EXPECT_EQ(why("?index=0")["state"], "Succeeded");
  EXPECT_EQ(get(kOurs + "a/why?index=3").code, 400);
  EXPECT_EQ(get(kOurs + "a/why?index=x").code, 400);
}

TEST_F(ServerTest, WhyNamesTheOnlyEligibleNode) {
  auto job = std::make_shared<core::JobObject>(*make_job("a", uid_of(1), 1));
  job->spec.pod.node_name = "n7";
  feed.admit(1, job);
  feed.create(1, 0, 1);
  feed.node(make_node(1, "n1", core::NodeInfo::Health::ready));
  EXPECT_EQ(get(kOurs + "a/why").json()["summary"],
            "1 pod is waiting for a slot: spec.nodeName is n7, and there is no such node");
  auto node = make_node(2, "n7", core::NodeInfo::Health::ready);
  node.spec.unschedulable = true;
  feed.node(node);
  const Json why = get(kOurs + "a/why").json();
  EXPECT_EQ(why["summary"], "1 pod is waiting for a slot: 0 of 1 nodes fit (1 cordoned)");
  EXPECT_EQ(why["details"][1], "spec.nodeName is n7: its pods run on no other node");
}

TEST_F(ServerTest, WhyCountsNodesThatFitPod) {
  const auto requests = [](const char* what) {
    return std::string(R"(,"resources":{"requests":{)") + what + "}}";
  };
  auto node = make_node(1, "n1", core::NodeInfo::Health::ready);
  node.slots = 1;
  feed.node(node);
  node = make_node(2, "n2", core::NodeInfo::Health::ready);
  node.cpu_millis = 2500;
  feed.node(node);
  feed.admit(1, make_job("cpu", uid_of(1), 1, "", "default", requests(R"("cpu":"64")")));
  feed.create(1, 0, 1);
  Json why = get(kOurs + "cpu/why").json();
  EXPECT_EQ(why["summary"], "1 pod is waiting for a slot: 0 of 2 nodes fit (2 too small)");
  EXPECT_EQ(why["details"][0], "2 nodes: the pod requests 64 cpu; the largest has 4 (n1, n2)");
  feed.admit(2, make_job("busy", uid_of(2), 1, "", "default", requests(R"("cpu":"1500m")")));
  feed.create(2, 0, 1);
  feed.bind(2, {0, 0}, 2);
  feed.admit(3, make_job("full", uid_of(3), 1));
  feed.create(3, 0, 1);
  feed.bind(3, {0, 0}, 1);
  feed.admit(4, make_job("next", uid_of(4), 1, "", "default",
                         requests(R"("cpu":"1500m","memory":"5Mi")")));
  feed.create(4, 0, 1);
  why = get(kOurs + "next/why").json();
  EXPECT_EQ(why["summary"],
            "1 pod is waiting for a slot: 0 of 2 nodes fit (1 full, 1 short of cpu)");
  EXPECT_EQ(why["details"], Json({"1 node: its slot is in use (n1)",
                                  "1 node: the pod requests 1500m cpu; at most 1 free (n2)"}));
  feed.admit(5, make_job("big", uid_of(5), 1, "", "default", requests(R"("memory":"1Gi")")));
  feed.create(5, 0, 1);
  EXPECT_EQ(get(kOurs + "big/why?index=0").json()["details"][0],
            "2 nodes: the pod requests 1Gi memory; the largest has 8Mi (n1, n2)");
  feed.admit(6, make_job("fits", uid_of(6), 1));
  feed.create(6, 0, 1);
  EXPECT_EQ(get(kOurs + "fits/why").json()["summary"],
            "1 pod is waiting for a slot: 1 of 2 nodes fits (1 full)");
}

}  // namespace
}  // namespace muster::api
